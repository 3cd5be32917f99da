//! Closed sets: enums without fields whose variants have names in requests, in responses and in the store.
//!
//! `strum` derives the names from the variants, so that a new variant cannot be missing from a list.

use strum::VariantArray;

/// Returns the names of a closed set's variants, in the order of their declaration.
pub fn names<T: VariantArray + Copy + Into<&'static str>>() -> Vec<&'static str> {
    T::VARIANTS.iter().map(|member| (*member).into()).collect()
}
