//! Tests the names of types. A name of one word must be a noun and not a participle, because a participle only names
//! what happened to a thing, and not the thing. `GLOSSARY` lists words of the glossary. Each of these words must be the
//! name of exactly one type.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use foldwork_tests::expectation::{all_well, read};
use proc_macro2::{TokenStream, TokenTree};
use syn::Item;
use syn::visit::{self, Visit};

use super::{imports, sources};

const CHECKED: [&str; 3] = ["engine/src", "plugins/src", "server/src"];
/// The usual endings of participles.
const SUFFIXES: [&str; 3] = ["ed", "en", "ing"];
/// Irregular participles, and adjectives for a state.
const IRREGULAR: [&str; 39] = [
    "Begun", "Bound", "Bought", "Brought", "Built", "Caught", "Done", "Drawn", "Found", "Gone", "Grown", "Heard",
    "Held", "Kept", "Known", "Laid", "Led", "Left", "Lost", "Made", "Met", "Paid", "Rebuilt", "Resident", "Said",
    "Sent", "Shown", "Shut", "Sold", "Spent", "Stale", "Sunk", "Taught", "Thrown", "Told", "Torn", "Unwound", "Won",
    "Worn",
];
/// The names of types that are nouns although they end like a participle.
const NOUNS: [&str; 8] = ["Embedding", "Feed", "Listing", "Meaning", "Ranking", "Setting", "Token", "Warning"];
/// The types whose names are participles and are allowed nevertheless. The list may only shrink.
const EXCEPTIONS: [&str; 0] = [];
/// The words of the glossary that name a type.
const GLOSSARY: [&str; 27] = [
    "Activation",
    "Artifact",
    "Assignment",
    "Circuit",
    "Claim",
    "Column",
    "Consumer",
    "Definition",
    "Delivery",
    "Digest",
    "Effect",
    "Facts",
    "Feed",
    "Fold",
    "Grant",
    "Hook",
    "Hub",
    "Lease",
    "Log",
    "Operation",
    "Presence",
    "Runtime",
    "Segment",
    "Tail",
    "Task",
    "Upload",
    "View",
];

/// The names of the structs and enums of a file, without those of its tests.
#[derive(Default)]
struct TypeNames(Vec<String>);

impl TypeNames {
    fn of(text: &str) -> syn::Result<Vec<String>> {
        let mut names = TypeNames::default();
        names.visit_file(&syn::parse_file(text)?);
        Ok(names.0)
    }
}

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_item(&mut self, item: &'ast Item) {
        if imports::is_for_tests(imports::attributes(item)) {
            return;
        }
        match item {
            Item::Struct(item) => self.0.push(item.ident.to_string()),
            Item::Enum(item) => self.0.push(item.ident.to_string()),
            Item::Macro(called) => self.0.extend(declared(called.mac.tokens.clone())),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

/// Returns the names of the types that the tokens of a macro declare.
pub fn declared(tokens: TokenStream) -> Vec<String> {
    let (mut names, mut declares) = (Vec::new(), false);
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if declares => names.push(ident.to_string()),
            TokenTree::Ident(ident) => {
                declares = ident == "struct" || ident == "enum";
                continue;
            }
            TokenTree::Group(group) => names.extend(declared(group.stream())),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        declares = false;
    }
    names
}

/// Returns the files that define each type, by the name of the type.
fn types() -> BTreeMap<String, Vec<PathBuf>> {
    let mut types: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in CHECKED.into_iter().flat_map(sources) {
        for name in TypeNames::of(&read(&file)).expect("a file that is Rust") {
            types.entry(name).or_default().push(file.clone());
        }
    }
    assert!(types.len() > 1_000, "only {} types were found", types.len());
    types
}

/// Returns whether a name is one word that ends like a participle, or is one of the irregular participles.
fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().filter(char::is_ascii_uppercase).count() == 1;
    let ends_so = SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) && !NOUNS.contains(&name);
    is_one_word && (ends_so || IRREGULAR.contains(&name))
}

fn listed(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[test]
fn types_are_not_named_by_participles_alone() {
    let types = types();
    let participles: BTreeSet<&str> = types.keys().map(String::as_str).filter(|name| is_participle(name)).collect();
    let mut failures = Vec::new();
    for name in &participles {
        if !EXCEPTIONS.contains(name) {
            failures.push(format!("{}: {name} is a participle; expected a noun", listed(&types[*name])));
        }
    }
    let gone = EXCEPTIONS.iter().filter(|name| !participles.contains(**name));
    failures.extend(gone.map(|name| format!("{name} is no longer a type: remove it from the exceptions")));
    all_well(failures);
}

#[test]
fn a_word_of_the_glossary_names_one_type() {
    let types = types();
    let mut failures = Vec::new();
    for word in GLOSSARY {
        let files = types.get(word).map(Vec::as_slice).unwrap_or_default();
        if files.len() != 1 {
            failures.push(format!("{word} is defined in {} places; expected one: {}", files.len(), listed(files)));
        }
    }
    all_well(failures);
}

#[test]
fn participles_are_distinguished_from_nouns() {
    let participles = ["Appended", "Known", "Taken", "Waiting"];
    assert!(participles.into_iter().all(is_participle));
    let nouns = ["Embedding", "KnownTypes", "ParkedStep", "QueryPermit", "Reader"];
    assert!(!nouns.into_iter().any(is_participle));
    let text = "struct Held;\nshown! { /// A.\n pub struct Made from x: u8; }\nmod inner { enum Sent {} }\nfn f() { struct Kept; }\n#[cfg(test)]\nmod tests { struct Found; }";
    assert_eq!(TypeNames::of(text).expect("Rust"), ["Held", "Made", "Sent", "Kept"]);
}
