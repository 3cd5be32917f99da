//! Imports random histories with merges, renames, and heads that move, and compares the articles with the trees.
//!
//! The environment variable `SEEDS=FIRST..LAST` selects the seeds of the histories, from `FIRST` to the number before
//! `LAST`. To find the seed of a failure whose message does not contain the seed, select fewer seeds.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use git2::Oid;
use serde_json::Value;

use super::history::first_parents;
use super::model_project::Model;
use super::source_reader::SourcePlace;
use super::tests::Scratch;

const SEEDS: Range<u64> = 0..100;
const ROUNDS: u64 = 14;
/// A tree with at least this number of files grows only by copies of its files.
const MAX_FILES: usize = 12;

type Tree = BTreeMap<String, String>;

/// A sequence of pseudorandom numbers that a seed determines (SplitMix64).
struct NumberSequence(u64);

/// A repository whose commits are chosen at random.
struct RandomRepository {
    scratch: Scratch,
    numbers: NumberSequence,
    trees: HashMap<Oid, Tree>,
    commits: Vec<Oid>,
    head: Oid,
    minute: i64,
}

impl NumberSequence {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn one_of<T: Clone>(&mut self, among: &[T]) -> Option<T> {
        let place = self.below(among.len().max(1) as u64) as usize;
        among.get(place).cloned()
    }
}

impl RandomRepository {
    fn new(seed: u64) -> Self {
        let (trees, commits, numbers) = (HashMap::new(), Vec::new(), NumberSequence(seed));
        let mut random = Self { scratch: Scratch::new(), numbers, trees, commits, head: Oid::ZERO_SHA1, minute: 0 };
        let mut tree = Tree::new();
        (0..3).for_each(|_| random.change(&mut tree));
        random.head = random.commit(&[], tree);
        random.move_head();
        random
    }

    /// Commits a tree, sometimes with an earlier time than the parents.
    fn commit(&mut self, parents: &[Oid], tree: Tree) -> Oid {
        self.minute += 1;
        let minute = if self.numbers.below(8) == 0 { self.minute - 1_000 } else { self.minute };
        let files: Vec<(&str, &[u8])> = tree.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
        let id = self.scratch.commit_on(None, parents, minute, &files);
        self.trees.insert(id, tree);
        self.commits.push(id);
        id
    }

    fn move_head(&self) {
        self.scratch.repository.set_head_detached(self.head).expect("moved");
    }

    fn text(&mut self) -> String {
        let topic = self.numbers.below(6);
        (0..8).map(|line| format!("Topic {topic}, line {line}, words {}.\n", self.numbers.below(3))).collect()
    }

    fn free_path(&mut self) -> String {
        format!("{}{}.md", ["", "docs/", "docs/deep/"][self.numbers.below(3) as usize], self.numbers.below(9))
    }

    /// Changes one or two files.
    fn change(&mut self, tree: &mut Tree) {
        let paths: Vec<String> = tree.keys().cloned().collect();
        let (path, text) = (self.free_path(), self.text());
        let (one, other) = (self.numbers.one_of(&paths), self.numbers.one_of(&paths));
        let (Some(one), Some(other)) = (one, other) else {
            tree.insert(path, text);
            return;
        };
        match self.numbers.below(8) {
            0 | 1 if tree.len() < MAX_FILES => drop(tree.insert(path, text)),
            2 => drop(tree.remove(&one)),
            3 => {
                let moved = tree.remove(&one).unwrap_or_default();
                tree.insert(path, moved);
            }
            4 => {
                // Renames and rewrites a file.
                tree.remove(&one);
                tree.insert(path, text);
            }
            5 => {
                let (first, second) = (tree[&one].clone(), tree[&other].clone());
                tree.insert(one, second);
                tree.insert(other, first);
            }
            6 => {
                let copy = tree[&one].clone();
                tree.insert(path, copy);
            }
            _ => {
                let line = format!("One more line {}.\n", self.numbers.below(1_000));
                let kept = if self.numbers.below(3) == 0 { text } else { tree[&one].clone() };
                tree.insert(one, kept + line.as_str());
            }
        }
    }

    /// Commits changes on top of a commit.
    fn advance(&mut self, on: Oid) -> Oid {
        let mut tree = self.trees[&on].clone();
        for _ in 0..=self.numbers.below(3) {
            self.change(&mut tree);
        }
        self.commit(&[on], tree)
    }

    /// Merges a commit with one or two new branches. Each file comes from one of the merged commits, or is missing.
    /// Sometimes the merge also changes files.
    fn merge(&mut self, on: Oid) -> Oid {
        let mut parents = vec![on];
        for _ in 0..=self.numbers.below(2) {
            let other = self.numbers.one_of(&self.commits.clone()).unwrap_or(on);
            let side = self.advance(other);
            parents.push(self.advance(side));
        }
        if self.numbers.below(4) == 0 {
            parents.reverse();
        }
        let mut tree = Tree::new();
        for parent in &parents {
            for (path, text) in &self.trees[parent].clone() {
                if tree.len() < MAX_FILES && (!tree.contains_key(path) || self.numbers.below(2) == 0) {
                    tree.insert(path.clone(), text.clone());
                }
            }
        }
        if self.numbers.below(3) == 0 {
            self.change(&mut tree);
        }
        self.commit(&parents, tree)
    }

    /// Moves HEAD to a new commit on top of HEAD, or to another commit.
    fn step(&mut self) {
        let head = self.head;
        self.head = match self.numbers.below(12) {
            0..=4 => self.advance(head),
            5..=7 => self.merge(head),
            // Amends HEAD, and sometimes commits on top of the amended commit.
            8 => {
                let tree = self.trees[&head].clone();
                let parents: Vec<Oid> =
                    self.scratch.repository.find_commit(head).expect("a commit").parent_ids().take(1).collect();
                let amended = self.commit(&parents, tree);
                if self.numbers.below(2) == 0 { amended } else { self.advance(amended) }
            }
            // Moves HEAD to any commit: a reset, or a fast-forward.
            9 | 10 => self.numbers.one_of(&self.commits.clone()).unwrap_or(head),
            // Commits the tree of HEAD on top of another commit, as a rebase does.
            _ => {
                let base = self.numbers.one_of(&self.commits.clone()).unwrap_or(head);
                let tree = self.trees[&head].clone();
                self.commit(&[base], tree)
            }
        };
        self.move_head();
    }

    fn place(&self) -> SourcePlace {
        SourcePlace::Git(self.scratch.folder.clone())
    }
}

/// Checks that the events of each commit lead to the commit's tree. Returns `false` without a check if the import did
/// not follow the commits.
fn check_each_commit(random: &RandomRepository, mut before: Model, base: Option<Oid>, events: &[Value]) -> bool {
    if events.iter().any(|event| event["metadata"]["reconciled"] == true) {
        return false;
    }
    let line = first_parents(&random.scratch.repository).expect("a history");
    let start = match base {
        None => 0,
        Some(base) => line.iter().position(|id| *id == base).expect("a commit of the line") + 1,
    };
    let mut events = events.iter().peekable();
    let mut time = String::new();
    for id in &line[start..] {
        while let Some(event) = events.next_if(|event| event["metadata"]["commit"] == id.to_string()) {
            before.apply(event);
            let occurred_at = event["occurred_at"].as_str().expect("a time").to_owned();
            assert!(time <= occurred_at, "commit {id}: an event at {occurred_at} follows an event at {time}");
            time = occurred_at;
        }
        assert_eq!(before.texts(), random.trees[id], "after commit {id}");
    }
    assert!(events.next().is_none());
    true
}

fn run(seed: u64) -> usize {
    let mut random = RandomRepository::new(seed);
    let mut model = Model::default();
    let mut followed = 0;
    for _ in 0..ROUNDS {
        for _ in 0..random.numbers.below(3) {
            random.step();
        }
        if random.numbers.below(5) == 0 {
            let stop = random.numbers.below(4) as usize;
            model.import(&random.place(), Some(stop));
            continue;
        }
        let (before, base) = (model.copy(), Oid::from_str(&model.progress.commit).ok());
        let was_complete = model.progress.towards.is_empty();
        let (events, summary) = model.import(&random.place(), None);
        assert_eq!(model.texts(), random.trees[&random.head], "seed {seed}, HEAD {}", random.head);
        assert_eq!(summary.expect("complete").articles, random.trees[&random.head].len());
        if was_complete && !events.is_empty() {
            followed += usize::from(check_each_commit(&random, before, base, &events));
        }
        let (again, _) = model.import(&random.place(), None);
        assert!(again.is_empty(), "seed {seed}: {again:?}");
    }
    // A first import of the whole history follows its commits.
    let mut first = Model::default();
    let (events, _) = first.import(&random.place(), None);
    assert!(check_each_commit(&random, Model::default(), None, &events), "seed {seed}: {events:?}");
    followed
}

#[test]
fn imports_of_random_histories_match_the_commits_and_append_nothing_when_repeated() {
    let seeds = std::env::var("SEEDS").ok().map_or(SEEDS, |seeds| {
        let (first, last) = seeds.split_once("..").expect("SEEDS=FIRST..LAST");
        first.parse().expect("a number")..last.parse().expect("a number")
    });
    let followed: usize = seeds.map(run).sum();
    assert!(followed > 0, "no import followed commits");
}
