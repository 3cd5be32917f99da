//! A macro that declares the types in which models receive data of the engine. A declaration contains each field with
//! the expression for its value.

/// Declares a struct, and its conversion from a type of the engine. The name after `from` refers to the converted value
/// in the expressions of the fields. If the converted value is a tuple, a tuple of names can follow `from`, with a name
/// for each item of the value.
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
