//! The operators over rows. Each operator pulls rows from the previous operator, so a limit can stop the work early.

mod bucket;
mod bucket_auto;
mod count;
mod facet;
mod follow;
mod group;
mod limit;
mod lookup;
mod match_rows;
mod nested;
mod project;
mod redact;
mod replace_root;
mod sample;
mod sort;
mod union;
mod unwind;

pub use bucket::Bucket;
pub use bucket_auto::BucketAuto;
pub use count::Count;
pub use facet::Facet;
pub use follow::Follow;
pub use group::Group;
pub use limit::{Limit, Skip};
pub use lookup::Lookup;
pub use match_rows::Match;
pub use project::Project;
pub use redact::Redact;
pub use replace_root::ReplaceRoot;
pub use sample::Sample;
pub use sort::Sort;
pub use union::Union;
pub use unwind::Unwind;
