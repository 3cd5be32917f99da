//! Tests the direction of dependencies inside each crate: between its layers, and among the files of one layer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use foldwork_tests::expectation::{all_well, root};

use super::circles::{Arrows, circles};
use super::imports::{Imports, imports};
use super::sources;
use super::tables::{ENGINE, Layer, PLUGINS, SERVER};

/// The crates, each with the folder of its sources and its layers.
const CRATES: [(&str, &[Layer]); 3] = [("engine/src", ENGINE), ("plugins/src", PLUGINS), ("server/src", SERVER)];
/// The crate that contains the pure layers.
const PURE_CRATE: &str = "engine/src";
/// The names of root modules: `lib` for a library, and `main` for a program.
const ENTRIES: [&str; 2] = ["lib", "main"];
/// The maximum number of files of one layer that may form a cycle.
const MAX_CYCLE_LEN: usize = 3;
/// The layers in which no more than two files may form a cycle.
const PAIRS_ONLY: [&str; 2] = ["append", "state"];
/// The layers that must be pure: without input and output, clocks, random numbers and asynchronous code.
const PURE: [&str; 3] = ["model", "pipeline", "resident"];
/// The names that pure layers must not use.
const IMPURE: [&str; 7] = ["tokio", "Instant::now", "SystemTime", "rand", "std::fs", "std::net", "now_v7"];

/// A source file of a crate.
struct Source {
    /// The path below the folder `src` of the crate.
    name: String,
    module: Vec<String>,
    imports: Imports,
}

/// The files of a crate, without those that exist only for tests.
struct Sources {
    folder: &'static str,
    layers: &'static [Layer],
    sources: Vec<Source>,
    /// Maps each module that has a file to the path of the file.
    files: BTreeMap<Vec<String>, String>,
}

impl Sources {
    fn all() -> impl Iterator<Item = Sources> {
        CRATES.into_iter().map(|(folder, layers)| Sources::read(folder, layers))
    }

    fn read(folder: &'static str, layers: &'static [Layer]) -> Sources {
        let root = root().join(folder);
        let read = |file: PathBuf| {
            let name = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
            let module = module_of(&name);
            Source { imports: imports(&file, &module), name, module }
        };
        let mut sources: Vec<Source> = sources(folder).into_iter().map(read).collect();
        let tests: BTreeSet<Vec<String>> =
            sources.iter().flat_map(|source| source.imports.tests.iter().map(|path| path[1..].to_vec())).collect();
        sources.retain(|source| !tests.contains(&source.module));
        let files = sources.iter().map(|source| (source.module.clone(), source.name.clone())).collect();
        Sources { folder, layers, sources, files }
    }

    /// Returns the files that belong to a layer. The root modules of a crate belong to no layer.
    fn in_layers(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().filter(|source| !source.module.is_empty())
    }

    /// Returns the layer that a module belongs to.
    fn layer_of(&self, module: &[String]) -> Option<&'static str> {
        let path = module.join("/");
        let covers = |layer: &str| path == layer || path.strip_prefix(layer).is_some_and(|rest| rest.starts_with('/'));
        let (layer, _) = self.layers.iter().filter(|(layer, _)| covers(layer)).max_by_key(|(layer, _)| layer.len())?;
        // A layer that contains other layers has no other files besides its own module.
        let is_inside = |inner: &str| inner.strip_prefix(layer).is_some_and(|rest| rest.starts_with('/'));
        let has_layers = self.layers.iter().any(|(inner, _)| is_inside(inner));
        (!has_layers || path == *layer).then_some(layer)
    }

    fn at(&self, source: &Source, line: usize, what: &str) -> String {
        format!("{}/{}:{line}: {what}", self.folder, source.name)
    }

    /// Returns the module of a path into this crate: the longest prefix of the path that has a file.
    fn module<'p>(&self, path: &'p [String]) -> Option<&'p [String]> {
        let path = path.strip_prefix(&["crate".to_owned()])?;
        (0..=path.len()).rev().map(|len| &path[..len]).find(|module| self.files.contains_key(*module))
    }

    /// Returns the modules that a file refers to, without the file's own module, each with the line of the reference.
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
    if ENTRIES.contains(&path) { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}

#[test]
fn every_file_is_in_a_layer_and_every_layer_has_files() {
    let mut failures = Vec::new();
    for krate in Sources::all() {
        let mut empty: BTreeSet<&str> = krate.layers.iter().map(|(layer, _)| *layer).collect();
        for source in krate.in_layers() {
            match krate.layer_of(&source.module) {
                Some(layer) => {
                    empty.remove(layer);
                }
                None => failures.push(krate.at(source, 1, "the file is in no layer")),
            }
        }
        failures.extend(empty.into_iter().map(|layer| format!("{}: the layer {layer} has no files", krate.folder)));
    }
    all_well(failures);
}

#[test]
fn layers_depend_in_one_direction() {
    let mut failures = Vec::new();
    for krate in Sources::all() {
        for source in krate.in_layers() {
            let Some(own) = krate.layer_of(&source.module) else { continue };
            let allowed = krate.layers.iter().find(|(layer, _)| *layer == own).map_or(&[][..], |(_, allowed)| allowed);
            for (line, module) in krate.named(source) {
                let named = krate.layer_of(module).unwrap_or("the root of the crate");
                if named != own && !allowed.contains(&named) {
                    failures.push(krate.at(source, line, &format!("the layer {own} must not name {named}")));
                }
            }
        }
    }
    all_well(failures);
}

#[test]
fn layers_form_no_cycle() {
    let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    for (folder, layers) in CRATES {
        let arrows: Arrows = layers.iter().map(|(layer, allowed)| ((*layer).to_owned(), own(allowed))).collect();
        assert_eq!(circles(&arrows), Vec::<Vec<String>>::new(), "the table of {folder} has cycles");
    }
}

#[test]
fn files_form_no_large_cycle_and_no_cycle_across_layers() {
    let mut failures = Vec::new();
    for krate in Sources::all() {
        let mut arrows = Arrows::new();
        for source in krate.in_layers() {
            let named = krate.named(source).filter_map(|(_, module)| krate.files.get(module).cloned());
            arrows.insert(source.name.clone(), named.filter(|file| !module_of(file).is_empty()).collect());
        }
        for cycle in circles(&arrows) {
            let layers: BTreeSet<_> = cycle.iter().map(|file| krate.layer_of(&module_of(file))).collect();
            let has_pairs_only = layers.iter().flatten().any(|layer| PAIRS_ONLY.contains(layer));
            let max_len = if has_pairs_only { 2 } else { MAX_CYCLE_LEN };
            if layers.len() > 1 || cycle.len() > max_len {
                failures.push(format!("{}: the files {} form a cycle", krate.folder, cycle.join(", ")));
            }
        }
    }
    all_well(failures);
}

/// The `impl` blocks of a type are in the file of the type, or in the folder around that file.
#[test]
fn impl_blocks_are_near_the_definition_of_their_type() {
    let mut failures = Vec::new();
    for krate in Sources::all() {
        for source in &krate.sources {
            for (line, path) in &source.imports.impls {
                let Some(module) = krate.module(path) else { continue };
                // The folder around a file that is not a `mod.rs` is the parent module.
                let is_folder = krate.files.get(module).is_some_and(|file| file.ends_with("/mod.rs"));
                let around = if is_folder { module } else { &module[..module.len().saturating_sub(1)] };
                let is_inside =
                    source.module.starts_with(module) || (!around.is_empty() && source.module.starts_with(around));
                if !is_inside || krate.layer_of(&source.module) != krate.layer_of(module) {
                    failures.push(krate.at(source, *line, &format!("{} is defined too far away", path.join("::"))));
                }
            }
        }
    }
    all_well(failures);
}

#[test]
fn pure_layers_use_no_io_time_or_randomness() {
    let krate = Sources::read(PURE_CRATE, ENGINE);
    let mut failures = Vec::new();
    for source in &krate.sources {
        let Some(top) = source.module.first().filter(|top| PURE.contains(&top.as_str())) else { continue };
        for (line, path) in &source.imports.paths {
            let found = IMPURE.iter().filter(|impure| names(path, impure));
            failures.extend(found.map(|impure| krate.at(source, *line, &format!("pure layer {top} names {impure}"))));
        }
        let lines = source.imports.asynchronous.iter();
        failures.extend(lines.map(|line| krate.at(source, *line, &format!("pure layer {top} is asynchronous"))));
    }
    all_well(failures);
}

/// Returns whether the names in `what`, separated by `::`, occur consecutively in a path. `rand` and `tokio` count only
/// at the beginning of a path with further names.
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
        assert!(IMPURE.iter().any(|impure| names(&path(found), impure)), "{found} is not recognized");
    }
    for other in ["std::fmt", "fastrand::Rng", "crate::rand::x", "std::time::Duration", "rand"] {
        assert!(!IMPURE.iter().any(|impure| names(&path(other), impure)), "{other} counts as impure");
    }
}
