//! The entries of the tables that document stages, operators and variables. The parsers and the catalogue of the
//! pipeline language use the same tables.

/// Declares the entries of a table of documented names. Each entry consists of a doc comment with the summary, the name
/// with its arguments, and the example. Method calls may follow, such as `.remark(...)`, and then a colon with further
/// arguments. `$make` creates the entry from the `NameDocumentation` and the further arguments. The methods are called
/// on the created entry. For entries without further arguments, `$make` is `identity`.
macro_rules! name_table {
    ($make:path: $($(#[doc = $summary:literal])+ $name:literal($arguments:expr) $example:tt
        $(.$method:ident($($value:tt)*))* $(: $($part:expr),+)?;)+) => {
        &[$(
            $make(
                $crate::pipeline::value::documentation::NameDocumentation::new(
                    $name, $arguments, concat!($($summary),+).trim_ascii(), $example,
                ),
                $($($part),+)?
            )
            $(.$method($($value)*))*,
        )+]
    };
}
pub(crate) use name_table;

/// The name of a stage, operator or variable with its documentation.
#[derive(Debug)]
pub struct NameDocumentation {
    pub name: &'static str,
    /// The names of the arguments, separated by commas. `?` marks an optional argument, and `...` marks a repeated
    /// argument. `: type` gives the type of an argument, unless the name of the argument is also the name of the type.
    pub arguments: &'static str,
    /// A summary of the effect, in one sentence.
    pub summary: &'static str,
    /// An example as JSON: the text of the example, the rows (or a single row) that the example reads, and the result.
    pub example: [&'static str; 3],
    /// The differences from MongoDB, and the features that MongoDB does not have; empty if there are none.
    pub remark: &'static str,
}

impl NameDocumentation {
    pub const fn new(
        name: &'static str,
        arguments: &'static str,
        summary: &'static str,
        example: [&'static str; 3],
    ) -> NameDocumentation {
        NameDocumentation { name, arguments, summary, example, remark: "" }
    }

    /// Adds a remark about behavior that MongoDB users may not expect.
    pub const fn remark(self, remark: &'static str) -> NameDocumentation {
        NameDocumentation { remark, ..self }
    }
}
