//! Closed sets: enums without fields whose variants have names in requests, in responses and in the store.
//!
//! `strum` derives the names from the variants, so that a new variant cannot be missing from a list.

use strum::VariantArray;

/// Returns the names of a closed set's variants, in the order of their declaration.
pub fn names<T: VariantArray + Copy + Into<&'static str>>() -> Vec<&'static str> {
    T::VARIANTS.iter().map(|member| (*member).into()).collect()
}

/// Defines the function `name` for each enum. The function returns the name of a variant.
macro_rules! named {
    ($($set:ident),+) => {
        $(impl $set {
            /// Returns the name of the value.
            pub fn name(self) -> &'static str {
                self.into()
            }
        })+
    };
}

/// Defines the functions `name` and `parse` for each enum.
macro_rules! closed_set {
    ($($set:ident),+) => {
        $crate::model::closed_set::named!($($set),+);
        $(impl $set {
            /// Returns the value with this name, or `None` if no value has this name.
            pub fn parse(name: &str) -> Option<$set> {
                name.parse().ok()
            }
        })+
    };
}
pub(crate) use {closed_set, named};
