//! Declares the types of responses that show data of the engine. Each declaration contains the fields and the
//! expressions of their values.

/// Declares a type of responses, and its conversion from data of the engine. In the values of the fields, the name
/// after `from` refers to the converted data. `where` contains statements that run before these values are computed.
macro_rules! shown {
    (
        $(#[$about:meta])*
        $visibility:vis struct $name:ident from $source:tt: $from:ty $(where { $($names:tt)* })?;
        $($(#[$note:meta])* $seen:vis $field:ident: $type:ty = $value:expr,)+
    ) => {
        #[derive(poem_openapi::Object, serde::Serialize)]
        $(#[$about])*
        $visibility struct $name {
            $($(#[$note])* $seen $field: $type,)+
        }

        impl From<$from> for $name {
            fn from($source: $from) -> $name {
                $($($names)*)?
                $name { $($field: $value,)+ }
            }
        }
    };
}
pub(crate) use shown;
