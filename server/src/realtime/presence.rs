//! The presence data of a channel. Each socket sets its own entry.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The maximum size of a channel's presence data, in bytes of JSON. The size is limited because new members receive all
/// presence data in one message.
const MAX_BYTES: usize = 200 << 10;

/// The presence data of a channel, by the key of each client: the key that the client chose, or a key that the server
/// generated.
#[derive(Default)]
pub struct ChannelPresence {
    by_key: BTreeMap<String, Vec<PresenceMeta>>,
    bytes: usize,
}

struct PresenceMeta {
    member: u64,
    /// The data that the client sent, with the added field `phx_ref` and, after a change, `phx_ref_prev`.
    data: Map<String, Value>,
    bytes: usize,
}

/// A change of the presence data, which the server sends to the members.
pub struct Diff {
    joins: Map<String, Value>,
    leaves: Map<String, Value>,
}

impl Diff {
    pub fn payload(&self) -> String {
        json!({"joins": self.joins, "leaves": self.leaves}).to_string()
    }
}

impl ChannelPresence {
    /// Sets a member's data, replacing earlier data. If the data of all members would exceed [`MAX_BYTES`], returns
    /// `None` and keeps the earlier data.
    pub fn track(&mut self, member: u64, key: &str, mut data: Map<String, Value>, reference: String) -> Option<Diff> {
        let former = self.take(member);
        let former_ref = former.as_ref().and_then(|(_, meta)| meta.data.get("phx_ref").cloned());
        data.insert("phx_ref".into(), reference.into());
        if let Some(former_ref) = former_ref {
            data.insert("phx_ref_prev".into(), former_ref);
        }
        let bytes = key.len() + Value::Object(data.clone()).to_string().len();
        if self.bytes + bytes > MAX_BYTES {
            if let Some((key, meta)) = former {
                self.put(key, meta);
            }
            return None;
        }
        let joins = one(key, data.clone());
        self.put(key.to_owned(), PresenceMeta { member, data, bytes });
        Some(Diff { joins, leaves: former.map(|(key, meta)| one(&key, meta.data)).unwrap_or_default() })
    }

    /// Removes a member's data. Returns `None` if the member has no data.
    pub fn untrack(&mut self, member: u64) -> Option<Diff> {
        let (key, meta) = self.take(member)?;
        Some(Diff { joins: Map::new(), leaves: one(&key, meta.data) })
    }

    /// Returns all presence data as JSON. The JSON is the payload of the message `presence_state`, which new
    /// members with presence messages enabled get.
    pub fn state(&self) -> String {
        let all = self.by_key.iter().map(|(key, metas)| {
            let metas: Vec<&Map<String, Value>> = metas.iter().map(|meta| &meta.data).collect();
            (key.clone(), json!({"metas": metas}))
        });
        Value::Object(all.collect()).to_string()
    }

    fn put(&mut self, key: String, meta: PresenceMeta) {
        self.bytes += meta.bytes;
        self.by_key.entry(key).or_default().push(meta);
    }

    fn take(&mut self, member: u64) -> Option<(String, PresenceMeta)> {
        let of_member = |metas: &[PresenceMeta]| metas.iter().position(|meta| meta.member == member);
        let (key, index) = self.by_key.iter().find_map(|(key, metas)| Some((key.clone(), of_member(metas)?)))?;
        let metas = self.by_key.get_mut(&key)?;
        let meta = metas.swap_remove(index);
        if metas.is_empty() {
            self.by_key.remove(&key);
        }
        self.bytes -= meta.bytes;
        Some((key, meta))
    }
}

fn one(key: &str, data: Map<String, Value>) -> Map<String, Value> {
    Map::from_iter([(key.to_owned(), json!({"metas": [data]}))])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &str) -> Map<String, Value> {
        Map::from_iter([("text".to_owned(), Value::from(text))])
    }

    #[test]
    fn a_change_of_presence_data_lists_joins_and_leaves() {
        let mut present = ChannelPresence::default();
        let joined = present.track(1, "k", data("one"), "r1".into()).expect("within the limits");
        assert_eq!(joined.payload(), r#"{"joins":{"k":{"metas":[{"text":"one","phx_ref":"r1"}]}},"leaves":{}}"#);
        let changed = present.track(1, "k", data("two"), "r2".into()).expect("within the limits");
        assert_eq!(
            changed.payload(),
            r#"{"joins":{"k":{"metas":[{"text":"two","phx_ref":"r2","phx_ref_prev":"r1"}]}},"leaves":{"k":{"metas":[{"text":"one","phx_ref":"r1"}]}}}"#
        );
        present.track(2, "k", data("other"), "r3".into()).expect("within the limits");
        assert_eq!(present.state().matches("phx_ref\":").count(), 2);
        assert!(present.untrack(1).expect("data of the member").payload().contains("\"leaves\":{\"k\""));
        assert!(present.untrack(1).is_none());
        present.untrack(2);
        assert_eq!((present.state().as_str(), present.bytes), ("{}", 0));
    }

    #[test]
    fn presence_data_over_the_size_limit_is_rejected() {
        let mut present = ChannelPresence::default();
        let long = "x".repeat(MAX_BYTES / 2);
        assert!(present.track(1, "k", data(&long), "r".into()).is_some());
        assert!(present.track(2, "k", data(&long), "r".into()).is_none());
        assert!(present.track(1, "k", data(&long.repeat(2)), "r2".into()).is_none());
        assert!(present.state().contains("\"r\""), "the earlier data stays");
    }
}
