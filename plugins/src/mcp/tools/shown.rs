//! A macro that declares the types in which models receive data of the engine. A declaration contains each field with
//! the expression for its value.

/// Declares a struct, and its conversion from a type of the engine. The name after `from` refers to the converted value
/// in the expressions of the fields. A tuple of names after `from` takes a tuple of values apart.
macro_rules! shown {
    (
        $(#[$about:meta])*
        $visibility:vis struct $name:ident from $source:tt: $from:ty {
            $($(#[$note:meta])* $field:ident: $type:ty = $value:expr,)+
        }
    ) => {
        $(#[$about])*
        $visibility struct $name {
            $($(#[$note])* $field: $type,)+
        }

        impl From<$from> for $name {
            fn from($source: $from) -> $name {
                $name { $($field: $value,)+ }
            }
        }
    };
}
pub(super) use shown;
