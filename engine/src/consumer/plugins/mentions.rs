//! Finds the aggregates that a text mentions. A mention is a label that occurs in the text word for word. Case is
//! ignored. Punctuation and white space only separate words.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::consumer::event_context::FollowerView;
use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::id::AggregateId;
use crate::resident::graph::StateView;

/// The minimum length of a label that is searched for, in bytes. Shorter labels are often ordinary words that occur in
/// many texts.
const MIN_LABEL_BYTES: usize = 4;
/// The maximum length of a label that is searched for, in words.
const MAX_LABEL_WORDS: usize = 12;

/// An index of aggregates by project and by the words of their labels. The index contains the aggregates at the
/// position that the follower of the log has reached. The index is built on first use.
#[derive(Default)]
pub struct Mentions {
    index: Option<MentionIndex>,
}

/// The aggregates with the same label, by the position of their first event.
type Called = BTreeMap<u64, AggregateId>;

#[derive(Default)]
struct MentionIndex {
    called: FxHashMap<Option<Arc<str>>, FxHashMap<String, Called>>,
    /// The label fields that each type had when its aggregates were indexed.
    fields: FxHashMap<Arc<str>, Vec<Arc<str>>>,
}

impl Mentions {
    /// Updates the index after an event. Discards the index if the label fields of the type have changed.
    pub fn observe(&mut self, before: Option<&Aggregate>, after: &Aggregate, definition: &Definition) {
        let Some(index) = &mut self.index else { return };
        if index.is_outdated(definition) {
            self.index = None;
            return;
        }
        if let Some(before) = before {
            index.remove(before, definition);
        }
        index.insert(after, definition);
    }

    /// Returns the aggregates of the project, except `about`, whose labels occur word for word in the texts of `about`.
    /// For each label, returns at most `most` aggregates, oldest first.
    pub fn find(&mut self, view: &FollowerView<'_>, about: &Aggregate, most: usize) -> Vec<AggregateId> {
        let is_outdated = |index: &MentionIndex| {
            let mut types = index.fields.keys().filter_map(|type_name| view.definition(type_name));
            types.any(|definition| index.is_outdated(&definition))
        };
        if self.index.as_ref().is_some_and(is_outdated) {
            self.index = None;
        }
        self.index.get_or_insert_with(|| MentionIndex::of(view)).find(about, most)
    }
}

impl MentionIndex {
    fn of(view: &FollowerView<'_>) -> MentionIndex {
        let mut index = MentionIndex::default();
        for aggregate in view.aggregates() {
            if let Some(definition) = view.definition(&aggregate.aggregate_type) {
                index.insert(&aggregate, &definition);
            }
        }
        index
    }

    /// Returns whether the label fields of a type have changed since its aggregates were indexed.
    fn is_outdated(&self, definition: &Definition) -> bool {
        self.fields.get(&definition.type_name).is_some_and(|fields| *fields != definition.label_fields())
    }

    fn insert(&mut self, aggregate: &Aggregate, definition: &Definition) {
        if !self.fields.contains_key(&definition.type_name) {
            self.fields.insert(definition.type_name.clone(), definition.label_fields());
        }
        if let Some(label) = label_words(aggregate, definition) {
            let called = self.called.entry(aggregate.project_id.clone()).or_default().entry(label).or_default();
            called.insert(aggregate.first_position, aggregate.id.clone());
        }
    }

    fn remove(&mut self, aggregate: &Aggregate, definition: &Definition) {
        let Some(label) = label_words(aggregate, definition) else { return };
        let Some(project) = self.called.get_mut(&aggregate.project_id) else { return };
        let called = project.get_mut(&label);
        if called.is_some_and(|called| called.remove(&aggregate.first_position).is_some() && called.is_empty()) {
            project.remove(&label);
        }
    }

    fn find(&self, about: &Aggregate, most: usize) -> Vec<AggregateId> {
        let Some(project) = self.called.get(&about.project_id) else { return Vec::new() };
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        let mut found: Vec<(u64, AggregateId)> = Vec::new();
        for text in about.state.iter().filter_map(|(_, value)| value.as_str()) {
            let words = words(text);
            for start in 0..words.len() {
                let mut run = String::new();
                for word in words.iter().skip(start).take(MAX_LABEL_WORDS) {
                    if !run.is_empty() {
                        run.push(' ');
                    }
                    run.push_str(word);
                    if let Some((label, called)) = project.get_key_value(&run)
                        && seen.insert(label)
                    {
                        let others = called.iter().filter(|(_, id)| **id != about.id).take(most);
                        found.extend(others.map(|(position, id)| (*position, id.clone())));
                    }
                }
            }
        }
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }
}

/// Returns the words of an aggregate's label. Returns `None` if texts are not searched for the label, because the
/// aggregate is deleted, or because its label is missing, too short, too long or without words.
fn label_words(aggregate: &Aggregate, definition: &Definition) -> Option<String> {
    let label = definition.label_of(&aggregate.state).filter(|label| label.len() >= MIN_LABEL_BYTES)?;
    let words = words(&label);
    (!aggregate.deleted && (1..=MAX_LABEL_WORDS).contains(&words.len())).then(|| words.join(" "))
}

fn words(text: &str) -> Vec<String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::Value;

    fn aggregate(number: u64, project: &str, state: &[(&str, &str)], deleted: bool) -> Aggregate {
        let state = state.iter().map(|(name, value)| (*name, Value::from(*value))).collect();
        Aggregate {
            project_id: (!project.is_empty()).then(|| project.into()),
            position: number,
            first_position: number,
            deleted,
            ..Aggregate::sample("note", &format!("a{number}"), state)
        }
    }

    /// Finds mentions without an index: searches the texts for the label of every aggregate of the project.
    fn one_by_one(all: &[Aggregate], about: &Aggregate, definition: &Definition) -> Vec<AggregateId> {
        let texts = about.state.iter().filter_map(|(_, value)| value.as_str());
        let texts: Vec<String> = texts.map(|text| format!(" {} ", words(text).join(" "))).collect();
        let is_mentioned = |node: &&Aggregate| {
            node.project_id == about.project_id
                && node.id != about.id
                && label_words(node, definition)
                    .is_some_and(|label| texts.iter().any(|text| text.contains(&format!(" {label} "))))
        };
        all.iter().filter(is_mentioned).map(|node| node.id.clone()).collect()
    }

    #[test]
    fn an_updated_index_finds_the_same_mentions_as_a_full_scan() {
        const WORDS: [&str; 6] = ["Alpha", "beta", "gamma ray", "of", "Delta-Echo", "ÉTÉ"];
        let definition = Definition::new("note", "note", Vec::new(), Vec::new());
        let mut random = fastrand::Rng::with_seed(11);
        let mut some = |most: usize| {
            let words: Vec<&str> = (0..random.usize(..=most)).map(|_| WORDS[random.usize(..WORDS.len())]).collect();
            (words.join(" "), random.u8(0..8))
        };
        let mut all: Vec<Aggregate> = (0..40).map(|number| aggregate(number, "", &[], false)).collect();
        let mut index = MentionIndex::default();
        all.iter().for_each(|node| index.insert(node, &definition));
        for round in 0..400_usize {
            let number = (round * 7) % all.len();
            let ((title, chance), (body, _)) = (some(3), some(30));
            let project = if number.is_multiple_of(2) { "" } else { "p" };
            let mut after = aggregate(number as u64, project, &[("title", &title), ("body", &body)], chance == 0);
            std::mem::swap(&mut all[number], &mut after);
            index.remove(&after, &definition);
            index.insert(&all[number], &definition);
            let about = &all[(round * 3) % all.len()];
            assert_eq!(index.find(about, usize::MAX), one_by_one(&all, about, &definition), "round {round}");
        }
    }

    #[test]
    fn a_change_of_label_fields_discards_the_index() {
        let definition = Definition::new("note", "note", Vec::new(), Vec::new());
        let mut mentions = Mentions { index: Some(MentionIndex::default()) };
        let node = aggregate(1, "", &[("title", "Alpha")], false);
        mentions.observe(None, &node, &definition);
        assert!(mentions.index.is_some());
        let mut field = crate::model::definition::Field::new("code", crate::model::definition::FieldType::String);
        field.label = true;
        let renamed = Definition::new("note", "note", Vec::new(), vec![field]);
        mentions.observe(Some(&node), &node, &renamed);
        assert!(mentions.index.is_none());
    }
}
