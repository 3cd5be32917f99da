//! Declares the types of responses that show data of the engine. Each declaration contains the fields and the
//! expressions of their values.

/// Declares a type of responses, and its conversion from data of the engine. In the values of the fields, the name
/// after `from` refers to the converted data. `where` contains statements that run before these values are computed. A
/// field with a mark, such as `@read_only`, is left out of a response if its value is `None`. The mark is an option of
/// `#[oai]`. In the OpenAPI document, a field with `@read_only` may be absent, but not null. A field with
/// `@skip_serializing_if_is_none` may be absent or null. This mark is for fields that requests contain as well.
macro_rules! shown {
    (
        $(#[$about:meta])*
        $visibility:vis struct $name:ident from $source:tt: $from:ty $(where { $($names:tt)* })?;
        $($(#[$note:meta])* $(@$mark:ident)? $seen:vis $field:ident: $type:ty = $value:expr,)+
    ) => {
        #[derive(poem_openapi::Object, serde::Serialize)]
        $(#[$about])*
        $visibility struct $name {
            $(
                $(#[$note])*
                $(#[oai($mark)] #[serde(skip_serializing_if = "Option::is_none")])?
                $seen $field: $type,
            )+
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
