//! Who is present on a channel: what each of its sockets says of itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// What all who are present on one channel may take, in bytes of JSON: it is told as a whole to whoever joins.
const MAX_BYTES: usize = 200 << 10;

/// Who is present, under the keys that they chose.
#[derive(Default)]
pub struct Present {
    by_key: BTreeMap<String, Vec<Meta>>,
    bytes: usize,
}

struct Meta {
    member: u64,
    /// What the client said, with its `phx_ref`.
    said: Map<String, Value>,
    bytes: usize,
}

/// What changed, as it is told.
pub struct Diff {
    joins: Map<String, Value>,
    leaves: Map<String, Value>,
}

impl Diff {
    pub fn payload(&self) -> String {
        json!({"joins": self.joins, "leaves": self.leaves}).to_string()
    }
}

impl Present {
    /// What a member says of itself, in place of what it said before. `None` where there is no room for it.
    pub fn track(&mut self, member: u64, key: &str, mut said: Map<String, Value>, reference: String) -> Option<Diff> {
        let former = self.take(member);
        let former_ref = former.as_ref().and_then(|(_, meta)| meta.said.get("phx_ref").cloned());
        said.insert("phx_ref".into(), reference.into());
        if let Some(former_ref) = former_ref {
            said.insert("phx_ref_prev".into(), former_ref);
        }
        let bytes = key.len() + Value::Object(said.clone()).to_string().len();
        if self.bytes + bytes > MAX_BYTES {
            if let Some((key, meta)) = former {
                self.put(key, meta);
            }
            return None;
        }
        let joins = one(key, said.clone());
        self.put(key.to_owned(), Meta { member, said, bytes });
        Some(Diff { joins, leaves: former.map(|(key, meta)| one(&key, meta.said)).unwrap_or_default() })
    }

    /// A member says nothing of itself any more, or is gone. `None` where it said nothing.
    pub fn untrack(&mut self, member: u64) -> Option<Diff> {
        let (key, meta) = self.take(member)?;
        Some(Diff { joins: Map::new(), leaves: one(&key, meta.said) })
    }

    /// All who are present, as whoever joins is told.
    pub fn state(&self) -> String {
        let all = self.by_key.iter().map(|(key, metas)| {
            let metas: Vec<&Map<String, Value>> = metas.iter().map(|meta| &meta.said).collect();
            (key.clone(), json!({"metas": metas}))
        });
        Value::Object(all.collect()).to_string()
    }

    fn put(&mut self, key: String, meta: Meta) {
        self.bytes += meta.bytes;
        self.by_key.entry(key).or_default().push(meta);
    }

    fn take(&mut self, member: u64) -> Option<(String, Meta)> {
        let of_member = |metas: &[Meta]| metas.iter().position(|meta| meta.member == member);
        let (key, place) = self.by_key.iter().find_map(|(key, metas)| Some((key.clone(), of_member(metas)?)))?;
        let metas = self.by_key.get_mut(&key)?;
        let meta = metas.swap_remove(place);
        if metas.is_empty() {
            self.by_key.remove(&key);
        }
        self.bytes -= meta.bytes;
        Some((key, meta))
    }
}

fn one(key: &str, said: Map<String, Value>) -> Map<String, Value> {
    Map::from_iter([(key.to_owned(), json!({"metas": [said]}))])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Map<String, Value> {
        Map::from_iter([("text".to_owned(), Value::from(text))])
    }

    #[test]
    fn whoever_is_present_is_told_of_with_a_reference() {
        let mut present = Present::default();
        let joined = present.track(1, "k", said("one"), "r1".into()).expect("room");
        assert_eq!(joined.payload(), r#"{"joins":{"k":{"metas":[{"text":"one","phx_ref":"r1"}]}},"leaves":{}}"#);
        let changed = present.track(1, "k", said("two"), "r2".into()).expect("room");
        assert_eq!(
            changed.payload(),
            r#"{"joins":{"k":{"metas":[{"text":"two","phx_ref":"r2","phx_ref_prev":"r1"}]}},"leaves":{"k":{"metas":[{"text":"one","phx_ref":"r1"}]}}}"#
        );
        present.track(2, "k", said("other"), "r3".into()).expect("room");
        assert_eq!(present.state().matches("phx_ref\":").count(), 2);
        assert!(present.untrack(1).expect("it was there").payload().contains("\"leaves\":{\"k\""));
        assert!(present.untrack(1).is_none());
        present.untrack(2);
        assert_eq!((present.state().as_str(), present.bytes), ("{}", 0));
    }

    #[test]
    fn a_channel_has_room_for_so_many() {
        let mut present = Present::default();
        let long = "x".repeat(MAX_BYTES / 2);
        assert!(present.track(1, "k", said(&long), "r".into()).is_some());
        assert!(present.track(2, "k", said(&long), "r".into()).is_none());
        assert!(present.track(1, "k", said(&(long.clone() + &long)), "r2".into()).is_none());
        assert!(present.state().contains("\"r\""), "what it said before stays");
    }
}
