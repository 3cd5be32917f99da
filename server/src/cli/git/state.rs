//! The state of an article's fields during an import: digests, which are compared with the fields of a file.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::article::names_of_front_matter;

const SLUG: &str = "slug";
/// The name of the field with an article's text.
pub const BODY: &str = "body";

pub type Digest = [u8; 16];

/// The fields that an article has after the events that the import has produced so far.
#[derive(Clone, Debug, Default)]
pub struct ArticleState {
    fields: BTreeMap<String, FieldState>,
    slug: String,
}

#[derive(Clone, Copy, Debug)]
struct FieldState {
    digest: Digest,
    /// Whether the field comes from the file. An import removes only fields that come from the file.
    of_file: bool,
}

impl ArticleState {
    /// Returns the state of an article from the fields on the server. Marks only the fields from the recorded front
    /// matter as fields that come from the file.
    pub fn new(fields: &Map<String, Value>) -> Self {
        let mut state = Self::default();
        state.merge(fields, false);
        state.mark(names_of_front_matter(fields).iter());
        state
    }

    /// Marks the fields with these names as fields that come from the file.
    pub fn mark<'n>(&mut self, names: impl Iterator<Item = &'n String>) {
        names.for_each(|name| {
            if let Some(field) = self.fields.get_mut(name) {
                field.of_file = true;
            }
        });
    }

    /// Returns whether the body of the article is marked as a field that comes from the file.
    pub fn is_marked(&self) -> bool {
        self.fields.get(BODY).is_some_and(|body| body.of_file)
    }

    /// Returns the article's slug, which is empty if the article has none.
    pub fn slug(&self) -> &str {
        &self.slug
    }

    /// Returns the payload of the event that updates the article to the fields of its file. The names of removed fields
    /// are in the field `$unset`.
    pub fn difference(&self, wanted: &Map<String, Value>) -> Map<String, Value> {
        let differs = |(name, value): &(&String, &Value)| match name.as_str() {
            SLUG => value.as_str() != Some(&self.slug),
            _ => self.fields.get(*name).is_none_or(|field| field.digest != digest(value)),
        };
        let mut changed: Map<String, Value> =
            wanted.iter().filter(differs).map(|(name, value)| (name.clone(), value.clone())).collect();
        let is_removed = |(name, field): &(&String, &FieldState)| field.of_file && !wanted.contains_key(*name);
        let removed: Vec<Value> = self.fields.iter().filter(is_removed).map(|(name, _)| name.as_str().into()).collect();
        if !removed.is_empty() {
            changed.insert("$unset".to_owned(), Value::Array(removed));
        }
        changed
    }

    /// Sets the fields that the file has now. Removes the fields that an earlier version of the file had and that the
    /// file no longer has.
    pub fn update(&mut self, fields: &Map<String, Value>) {
        self.fields.retain(|name, field| !field.of_file || fields.contains_key(name));
        self.merge(fields, true);
    }

    /// Returns the digest of the article's text.
    pub fn body(&self) -> Option<Digest> {
        self.fields.get(BODY).map(|body| body.digest)
    }

    fn merge(&mut self, fields: &Map<String, Value>, of_file: bool) {
        for (name, value) in fields {
            if name == SLUG {
                self.slug = value.as_str().unwrap_or_default().to_owned();
            } else {
                self.fields.insert(name.clone(), FieldState { digest: digest(value), of_file });
            }
        }
    }
}

/// Returns the first half of the SHA-256 digest of a value's canonical JSON, in which the keys of objects are sorted
/// and numbers have one form.
pub fn digest(value: &Value) -> Digest {
    let text = serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| value.to_string().into_bytes());
    let full: [u8; 32] = Sha256::digest(text).into();
    let mut digest = Digest::default();
    digest.copy_from_slice(&full[..16]);
    digest
}
