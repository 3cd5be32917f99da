//! Measures the arrays and maps in a script's variables while they grow.
//!
//! rhai does not measure the values that `map[key] = value` adds. rhai may later format or traverse such a map in one
//! operation that cannot be interrupted. Therefore a variable is measured when the script uses it.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};

use rhai::{Dynamic, Engine, EvalAltResult, EvalContext, Position};
use rustc_hash::FxHasher;

use crate::limits::CallLimits;

/// The number of slots for variables. Variables that share a slot are measured more often than necessary.
const SLOTS: usize = 32;
/// The maximum number of uses of a variable between two measurements of the variable's size.
const MAX_PAUSE: usize = 16;
/// A variable with `n` items may be used `n / ITEMS_PER_PAUSE` times, but at most [`MAX_PAUSE`] times, before the
/// variable is measured again.
const ITEMS_PER_PAUSE: usize = 32;

/// The size of values: the number of items in arrays and maps, and the number of bytes in texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    items: usize,
    text: usize,
}

/// The state of the measurements in the call that is running on this thread.
struct CallSizes {
    /// The size of the arguments, which may exceed the size that a script may create.
    argument_size: Size,
    /// For each slot, the hash of a variable's name, and the number of uses left before the variable is measured again.
    pauses: [(u64, usize); SLOTS],
}

thread_local! {
    static CALL: RefCell<CallSizes> =
        const { RefCell::new(CallSizes { argument_size: Size { items: 0, text: 0 }, pauses: [(0, 0); SLOTS] }) };
}

/// Measures the arguments of a new call, and forgets the measurements of the previous call.
pub(super) fn begin(arguments: &[Dynamic]) {
    let mut argument_size = Size::default();
    arguments.iter().for_each(|argument| measure(argument, &mut argument_size));
    CALL.set(CallSizes { argument_size, pauses: [(0, 0); SLOTS] });
}

pub(super) fn watch(engine: &mut Engine, limits: &CallLimits) {
    let limits = *limits;
    #[expect(deprecated, reason = "rhai marks functions that may change in a later version as deprecated")]
    engine.on_var(move |name, _, context| check(name, &context, &limits).map(|()| None));
}

fn check(
    name: &str,
    context: &EvalContext<'_, '_, '_, '_, '_, '_>,
    limits: &CallLimits,
) -> Result<(), Box<EvalAltResult>> {
    let Some(value) = context.scope().get(name).filter(|value| value.is_map() || value.is_array()) else {
        return Ok(());
    };
    CALL.with_borrow_mut(|seen| {
        let mut hasher = FxHasher::default();
        name.hash(&mut hasher);
        let hash = hasher.finish();
        let pause = &mut seen.pauses[(hash >> 32) as usize % SLOTS];
        if pause.0 == hash && pause.1 > 0 {
            pause.1 -= 1;
            return Ok(());
        }
        let mut size = Size::default();
        measure(value, &mut size);
        *pause = (hash, (size.items / ITEMS_PER_PAUSE).min(MAX_PAUSE));
        let max_items = limits.array_items.max(limits.map_items).saturating_add(seen.argument_size.items);
        let max_text = limits.string_bytes.saturating_add(seen.argument_size.text);
        if size.items > max_items || size.text > max_text {
            let what = if size.text > max_text { "Length of string" } else { "Size of object map" };
            return Err(EvalAltResult::ErrorDataTooLarge(what.into(), Position::NONE).into());
        }
        Ok(())
    })
}

fn measure(value: &Dynamic, size: &mut Size) {
    if let Ok(text) = value.as_immutable_string_ref() {
        size.text = size.text.saturating_add(text.len());
    } else if let Ok(items) = value.as_array_ref() {
        size.items = size.items.saturating_add(items.len());
        items.iter().for_each(|item| measure(item, size));
    } else if let Ok(map) = value.as_map_ref() {
        size.items = size.items.saturating_add(map.len());
        map.values().for_each(|item| measure(item, size));
    }
}
