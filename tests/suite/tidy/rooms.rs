//! Dependency directions inside the engine: between its rooms, and among the files of one room.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use foldwork_tests::expectation::{all_well, root};

use super::circles::{Arrows, circles};
use super::imports::{Imports, imports};
use super::sources;

/// The rooms (layers) of the engine, the lowest first, and the rooms and modules that each may use. A room is a file or
/// folder below `engine/src`. A room that contains other rooms covers only the files outside of them. Every file
/// belongs to a listed room.
const ROOMS: [(&str, &[&str]); 24] = [
    ("aside", &[]),
    ("model", &[]),
    ("pipeline/column", &["model"]),
    ("pipeline/value", &["model"]),
    ("pipeline/expression", &["model", "pipeline/value"]),
    ("pipeline/source", &["model", "pipeline/column", "pipeline/value", "pipeline/expression"]),
    ("pipeline/language", &["model", "pipeline/value", "pipeline/expression", "pipeline/source"]),
    (
        "pipeline/run",
        &["model", "pipeline/column", "pipeline/value", "pipeline/expression", "pipeline/source", "pipeline/language"],
    ),
    (
        "pipeline/plan",
        &[
            "model",
            "pipeline/column",
            "pipeline/value",
            "pipeline/expression",
            "pipeline/source",
            "pipeline/language",
            "pipeline/run",
        ],
    ),
    (
        "pipeline",
        &[
            "model",
            "pipeline/column",
            "pipeline/value",
            "pipeline/expression",
            "pipeline/source",
            "pipeline/language",
            "pipeline/run",
            "pipeline/plan",
        ],
    ),
    ("hook", &["model"]),
    ("clock", &[]),
    ("turns", &[]),
    ("store", &["model", "pipeline"]),
    ("resident", &["model", "pipeline/column"]),
    ("error", &["model", "pipeline", "store"]),
    ("access", &["model", "clock", "turns", "store", "error"]),
    ("core", &["aside", "model", "pipeline", "hook", "clock", "store", "resident", "error"]),
    ("mailbox", &["model", "pipeline/column", "store", "resident", "error", "core"]),
    ("consumer", &["model", "hook", "clock", "store", "resident", "error", "core", "mailbox"]),
    (
        "workspace",
        &[
            "model",
            "pipeline",
            "pipeline/column",
            "hook",
            "clock",
            "turns",
            "store",
            "resident",
            "error",
            "access",
            "core",
            "mailbox",
            "consumer",
        ],
    ),
    ("registry", &["store", "error", "core", "workspace"]),
    ("opening", &["model", "hook", "clock", "store", "error", "access", "core", "workspace"]),
    ("engine", &["model", "hook", "clock", "store", "error", "access", "core", "workspace", "registry", "opening"]),
];
/// The module with the engine's public interface.
const ENTRY: &str = "lib";
/// The maximum number of files of one room that may form a cycle.
const LARGEST_CIRCLE: usize = 3;
/// Rooms that only compute, and names that they must not use.
const PURE: [&str; 3] = ["model", "pipeline", "resident"];
const IMPURE: [&str; 7] = ["tokio", "Instant::now", "SystemTime", "rand", "std::fs", "std::net", "now_v7"];

/// A source file of the engine.
struct Source {
    /// The path below `engine/src`.
    name: String,
    module: Vec<String>,
    imports: Imports,
}

impl Source {
    fn room(&self) -> Option<&'static str> {
        room_of(&self.module)
    }

    fn at(&self, line: usize, what: &str) -> String {
        format!("engine/src/{}:{line}: {what}", self.name)
    }
}

/// Returns the room that a module belongs to.
fn room_of(module: &[String]) -> Option<&'static str> {
    let path = module.join("/");
    let covers = |room: &str| path == room || path.strip_prefix(room).is_some_and(|rest| rest.starts_with('/'));
    let (room, _) = ROOMS.iter().filter(|(room, _)| covers(room)).max_by_key(|(room, _)| room.len())?;
    // A room that contains other rooms has no other files besides its own module.
    let has_rooms = ROOMS.iter().any(|(inner, _)| inner.strip_prefix(room).is_some_and(|rest| rest.starts_with('/')));
    (!has_rooms || path == *room).then_some(room)
}

/// The engine's files, without those that exist only for tests.
struct Engine {
    sources: Vec<Source>,
    /// Every module that has a file, with that file.
    files: BTreeMap<Vec<String>, String>,
}

impl Engine {
    fn read() -> Engine {
        let folder = root().join("engine/src");
        let read = |file: PathBuf| {
            let name = file.strip_prefix(&folder).unwrap_or(&file).to_string_lossy().replace('\\', "/");
            let module = module_of(&name);
            Source { imports: imports(&file, &module), name, module }
        };
        let mut sources: Vec<Source> = sources("engine/src").into_iter().map(read).collect();
        let tests: BTreeSet<Vec<String>> =
            sources.iter().flat_map(|source| source.imports.tests.iter().map(|path| path[1..].to_vec())).collect();
        sources.retain(|source| !tests.contains(&source.module));
        let files = sources.iter().map(|source| (source.module.clone(), source.name.clone())).collect();
        Engine { sources, files }
    }

    /// Returns the module that a path leads to: the longest prefix of the path that has a file.
    fn module<'p>(&self, path: &'p [String]) -> Option<&'p [String]> {
        let path = path.strip_prefix(&["crate".to_owned()])?;
        (0..=path.len()).rev().map(|len| &path[..len]).find(|module| self.files.contains_key(*module))
    }

    /// Returns the lines of a file that refer to other modules, with those modules.
    fn named<'s>(&'s self, source: &'s Source) -> impl Iterator<Item = (usize, &'s [String])> {
        let paths = source.imports.paths.iter();
        let modules = paths.filter_map(|(line, path)| Some((*line, self.module(path)?)));
        modules.filter(|(_, module)| *module != source.module.as_slice())
    }
}

/// Returns the module of a file below `src`.
fn module_of(name: &str) -> Vec<String> {
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    let path = stem.strip_suffix("/mod").unwrap_or(stem);
    if path == ENTRY { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}

#[test]
fn every_file_is_in_a_room_and_every_room_has_files() {
    let engine = Engine::read();
    let mut empty: BTreeSet<&str> = ROOMS.iter().map(|(room, _)| *room).collect();
    let mut failures = Vec::new();
    for source in engine.sources.iter().filter(|source| !source.module.is_empty()) {
        match source.room() {
            Some(room) => {
                empty.remove(room);
            }
            None => failures.push(source.at(1, "is in no room")),
        }
    }
    failures.extend(empty.into_iter().map(|room| format!("the room {room} has no files")));
    all_well(failures);
}

#[test]
fn rooms_of_the_engine_depend_in_one_direction() {
    let engine = Engine::read();
    let mut failures = Vec::new();
    for source in &engine.sources {
        let Some((room, allowed)) = ROOMS.iter().find(|(room, _)| Some(*room) == source.room()) else { continue };
        for (line, module) in engine.named(source) {
            let named = room_of(module).unwrap_or(ENTRY);
            if named != *room && !allowed.contains(&named) {
                failures.push(source.at(line, &format!("{room} names {named}")));
            }
        }
    }
    all_well(failures);
}

#[test]
fn rooms_form_no_cycle() {
    let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let arrows: Arrows = ROOMS.iter().map(|(room, allowed)| ((*room).to_owned(), own(allowed))).collect();
    let found = circles(&arrows);
    assert_eq!(found, Vec::<Vec<String>>::new(), "the table has circles");
}

#[test]
fn files_form_no_large_cycle() {
    let engine = Engine::read();
    let mut arrows = Arrows::new();
    for source in engine.sources.iter().filter(|source| !source.module.is_empty()) {
        let named = engine.named(source).filter_map(|(_, module)| engine.files.get(module).cloned());
        arrows.insert(source.name.clone(), named.collect());
    }
    let is_wrong = |circle: &[String]| {
        let rooms: BTreeSet<_> = circle.iter().map(|file| room_of(&module_of(file))).collect();
        rooms.len() > 1 || circle.len() > LARGEST_CIRCLE
    };
    let wrong: Vec<Vec<String>> = circles(&arrows).into_iter().filter(|circle| is_wrong(circle)).collect();
    all_well(wrong.iter().map(|circle| format!("a circle: {}", circle.join(", "))).collect());
}

/// The `impl` blocks of a type are in the file of the type, or in the folder around that file.
#[test]
fn impl_blocks_are_near_the_definition_of_their_type() {
    let engine = Engine::read();
    let mut failures = Vec::new();
    for source in &engine.sources {
        for (line, path) in &source.imports.impls {
            let Some(module) = engine.module(path) else { continue };
            // The folder around a file that is not a `mod.rs` is the parent module.
            let is_folder = engine.files.get(module).is_some_and(|file| file.ends_with("/mod.rs"));
            let around = if is_folder { module } else { &module[..module.len().saturating_sub(1)] };
            let is_inside =
                source.module.starts_with(module) || (!around.is_empty() && source.module.starts_with(around));
            if !is_inside || source.room() != room_of(module) {
                failures.push(source.at(*line, &format!("adds to {}", path.join("::"))));
            }
        }
    }
    all_well(failures);
}

#[test]
fn pure_rooms_use_no_io_time_or_randomness() {
    let engine = Engine::read();
    let mut failures = Vec::new();
    for source in &engine.sources {
        let Some(top) = source.module.first().filter(|top| PURE.contains(&top.as_str())) else { continue };
        for (line, path) in &source.imports.paths {
            let found = IMPURE.iter().filter(|impure| names(path, impure));
            failures.extend(found.map(|impure| source.at(*line, &format!("{top} names {impure}"))));
        }
        let lines = source.imports.asynchronous.iter();
        failures.extend(lines.map(|line| source.at(*line, &format!("{top} is asynchronous"))));
    }
    all_well(failures);
}

/// Returns whether these names occur consecutively in a path. The name of a crate counts only at the beginning of the
/// path.
fn names(path: &[String], what: &str) -> bool {
    let what: Vec<&str> = what.split("::").collect();
    match what.as_slice() {
        ["rand" | "tokio"] => path.len() > 1 && path[0] == what[0],
        _ => path.windows(what.len()).any(|window| window == what.as_slice()),
    }
}

#[test]
fn impure_names_are_recognized() {
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<_>>();
    for found in
        ["std::fs::read", "std::fs", "Uuid::now_v7", "uuid::Uuid::now_v7", "rand::random", "std::time::SystemTime"]
    {
        assert!(IMPURE.iter().any(|impure| names(&path(found), impure)), "{found}");
    }
    for other in ["std::fmt", "fastrand::Rng", "crate::rand::x", "std::time::Duration", "rand"] {
        assert!(!IMPURE.iter().any(|impure| names(&path(other), impure)), "{other}");
    }
}
