//! Lists that functions of the host return, bounded before they grow: a limit that is reached is part of the result.

use rhai::{Array, Dynamic, INT, Map, NativeCallContext};

use super::{Refused, thrown, too_large};

/// Items that the map around a listing takes: `items` and `more`.
const AROUND: usize = 2;

/// A list within the limits that the engine sets to arrays, maps and texts.
pub(super) struct Listing {
    items: Array,
    most: usize,
    bytes_left: usize,
    more: bool,
}

impl Listing {
    /// An empty listing of items that take so many places each, where items of arrays and maps are places. It holds `most`
    /// items where the caller says so, and never more than the limits of the engine allow.
    pub(super) fn new(context: &NativeCallContext, places: usize, most: Option<INT>) -> Result<Listing, Refused> {
        let engine = context.engine();
        let room = engine.max_array_size().min(engine.max_map_size());
        // A script can hold what a function returns only while the map around it fits, too.
        let around = if most.is_some() { AROUND } else { 0 };
        let allowed = room.saturating_sub(around) / places.max(1);
        let most = match most.map(usize::try_from) {
            None => allowed,
            Some(Ok(most)) => most.min(allowed),
            Some(Err(_)) => return Err(thrown("the number of items to list is less than 0")),
        };
        Ok(Listing { items: Array::new(), most, bytes_left: engine.max_string_size(), more: false })
    }

    /// Adds an item with texts of so many bytes. Returns whether there was room.
    pub(super) fn push(&mut self, bytes: usize, item: impl FnOnce() -> Dynamic) -> bool {
        match self.bytes_left.checked_sub(bytes).filter(|_| self.items.len() < self.most) {
            Some(left) => {
                self.bytes_left = left;
                self.items.push(item());
                true
            }
            None => {
                self.more = true;
                false
            }
        }
    }

    /// Notes that something is not in the list.
    pub(super) fn leave_out(&mut self) {
        self.more = true;
    }

    /// `#{items, more}`: the list, and whether something was left out.
    pub(super) fn bounded(self) -> Map {
        Map::from_iter([
            ("items".into(), Dynamic::from_array(self.items)),
            ("more".into(), Dynamic::from_bool(self.more)),
        ])
    }

    /// The list alone, for callers that do not look at `more`: fails where something was left out.
    pub(super) fn whole(self, what: &str) -> Result<Array, Refused> {
        match self.more {
            false => Ok(self.items),
            true => Err(too_large(format!(
                "a list of more than {} {what} (the function takes the number of {what} to list, too) is",
                self.items.len()
            ))),
        }
    }
}
