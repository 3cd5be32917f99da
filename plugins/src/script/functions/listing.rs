//! Lists that host functions return. The size of a list is limited while items are added, and the list records whether
//! items were left out.

use rhai::{Array, Dynamic, INT, Map, NativeCallContext};

use super::registration::{Refused, thrown, too_large};

/// The number of entries of the map that contains a list: `items` and `more`.
const WRAPPER_ENTRIES: usize = 2;

/// A list within the engine's limits on arrays, maps and strings.
pub(super) struct Listing {
    items: Array,
    max_items: usize,
    bytes_left: usize,
    more: bool,
}

impl Listing {
    /// Creates an empty list. Each item counts as `places` entries of arrays and maps. The list contains at most
    /// `max_items` items if `max_items` is given, and never more than the engine's limits allow. Fails if `max_items`
    /// is negative.
    pub(super) fn new(context: &NativeCallContext, places: usize, max_items: Option<INT>) -> Result<Listing, Refused> {
        let engine = context.engine();
        let capacity = engine.max_array_size().min(engine.max_map_size());
        // If a script stores the result, the map that contains the list counts towards the limit as well.
        let overhead = if max_items.is_some() { WRAPPER_ENTRIES } else { 0 };
        let allowed = capacity.saturating_sub(overhead) / places.max(1);
        let max_items = match max_items.map(usize::try_from) {
            None => allowed,
            Some(Ok(max_items)) => max_items.min(allowed),
            Some(Err(_)) => return Err(thrown("the number of items to list is less than 0")),
        };
        Ok(Listing { items: Array::new(), max_items, bytes_left: engine.max_string_size(), more: false })
    }

    /// Adds an item whose texts have `bytes` bytes in total. If the item exceeds a limit of the list, records that
    /// items were left out and returns `false`.
    pub(super) fn push(&mut self, bytes: usize, item: impl FnOnce() -> Dynamic) -> bool {
        let Some(remaining) = self.bytes_left.checked_sub(bytes).filter(|_| self.items.len() < self.max_items) else {
            self.more = true;
            return false;
        };
        self.bytes_left = remaining;
        self.items.push(item());
        true
    }

    /// Records that items were left out.
    pub(super) fn leave_out(&mut self) {
        self.more = true;
    }

    /// Returns `#{items, more}`: the list, and whether items were left out.
    pub(super) fn bounded(self) -> Map {
        Map::from_iter([
            ("items".into(), Dynamic::from_array(self.items)),
            ("more".into(), Dynamic::from_bool(self.more)),
        ])
    }

    /// Returns only the list. Fails if items were left out, because the caller could not notice the omission. `what`
    /// names the items in the error.
    pub(super) fn whole(self, what: &str) -> Result<Array, Refused> {
        match self.more {
            false => Ok(self.items),
            true => Err(too_large(format!(
                "a list of more than {} {what} (pass the maximum number of {what} as the last argument) is",
                self.items.len()
            ))),
        }
    }
}
