//! A name of the language with all that its documentation says: what the tables of stages and operators are made of.

/// A name of the language as its table describes it.
#[derive(Debug)]
pub struct Word {
    pub name: &'static str,
    /// The arguments' names: `?` after optional ones, `...` after repeated ones, `: type` where the name does not tell.
    pub arguments: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// How it is written, the rows (or the one row) it sees, and the result, each as JSON.
    pub example: [&'static str; 3],
    /// Where it differs from MongoDB, or goes beyond it; empty where it does neither.
    pub remark: &'static str,
}

impl Word {
    pub const fn new(
        name: &'static str,
        arguments: &'static str,
        summary: &'static str,
        example: [&'static str; 3],
    ) -> Word {
        Word { name, arguments, summary, example, remark: "" }
    }

    /// What MongoDB's users will not expect.
    pub const fn remark(self, remark: &'static str) -> Word {
        Word { remark, ..self }
    }
}
