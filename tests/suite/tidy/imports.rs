//! Finds the references of a source file: every path in `use` trees, code and macros, and the types of its `impl`
//! blocks.

use std::collections::HashMap;
use std::path::Path as FilePath;

use foldwork_tests::expectation::read;
use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemImpl, ItemMod, ItemUse, Macro, Path, Type, UseTree, VisRestricted};

/// The segments of a path.
pub type Names = Vec<String>;

/// The references of one file. Paths into the same crate begin with `crate`. Other paths are as written.
#[derive(Debug, Default)]
pub struct Imports {
    /// The paths, each with its line.
    pub paths: Vec<(usize, Names)>,
    /// The types of inherent `impl` blocks, each with the line of the block.
    pub impls: Vec<(usize, Names)>,
    /// The lines with asynchronous code.
    pub asynchronous: Vec<usize>,
    /// The modules that exist only for tests.
    pub tests: Vec<Names>,
}

/// Parses the file of a module.
pub fn imports(file: &FilePath, module: &[String]) -> Imports {
    of_text(&read(file), module).map_err(|error| format!("{}: {error}", file.display())).expect("a file that is Rust")
}

fn of_text(text: &str, module: &[String]) -> syn::Result<Imports> {
    let parsed = syn::parse_file(text)?;
    let mut reader = Reader { module: module.to_vec(), scopes: Vec::new(), found: Imports::default() };
    reader.scopes.push(reader.scope(&parsed.items));
    reader.visit_file(&parsed);
    Ok(reader.found)
}

struct Reader {
    module: Names,
    /// The names in the file and in each inline module around the current place, with the paths that they refer to.
    scopes: Vec<HashMap<String, Names>>,
    found: Imports,
}

impl Reader {
    /// Returns the names of the modules, types and imports among these items, with their paths.
    fn scope(&self, items: &[Item]) -> HashMap<String, Names> {
        let mut scope = HashMap::new();
        for item in items {
            let ident = match item {
                Item::Mod(item) => &item.ident,
                Item::Struct(item) => &item.ident,
                Item::Enum(item) => &item.ident,
                Item::Union(item) => &item.ident,
                Item::Type(item) => &item.ident,
                Item::Trait(item) => &item.ident,
                _ => continue,
            };
            let own = self.crate_path(std::iter::once(ident.to_string()));
            scope.insert(ident.to_string(), own);
        }
        for item in items {
            let Item::Use(item) = item else { continue };
            for (name, path) in leaves(&item.tree) {
                let path = self.absolute(&path, &scope);
                scope.insert(name, path);
            }
        }
        scope
    }

    /// Returns the path from the root of the crate to `names` inside this module.
    fn crate_path(&self, names: impl Iterator<Item = String>) -> Names {
        std::iter::once("crate".to_owned()).chain(self.module.iter().cloned()).chain(names).collect()
    }

    fn absolute(&self, path: &[String], scope: &HashMap<String, Names>) -> Names {
        let Some(first) = path.first() else { return Names::new() };
        if !matches!(first.as_str(), "self" | "super") {
            return match scope.get(first) {
                Some(known) => known.iter().chain(&path[1..]).cloned().collect(),
                None => path.to_vec(),
            };
        }
        let up = path.iter().filter(|name| *name == "super").count();
        let rest = path.iter().skip_while(|name| matches!(name.as_str(), "self" | "super"));
        let above = self.module.iter().take(self.module.len().saturating_sub(up));
        std::iter::once("crate".to_owned()).chain(above.cloned()).chain(rest.cloned()).collect()
    }

    fn resolved(&self, path: &[String]) -> Names {
        self.scopes.last().map_or_else(|| path.to_vec(), |scope| self.absolute(path, scope))
    }

    fn name(&mut self, line: usize, path: &[String]) {
        let path = self.resolved(path);
        self.found.paths.push((line, path));
    }

    /// Records the paths in the tokens of a macro call, which the parser does not parse.
    fn name_tokens(&mut self, tokens: TokenStream) {
        let mut path = Names::new();
        let mut line = 0;
        // Two colons continue a path. Any other token ends the path.
        let mut colons = 0;
        for token in tokens {
            match &token {
                TokenTree::Ident(ident) => {
                    if *ident == "async" {
                        self.found.asynchronous.push(ident.span().start().line);
                    }
                    if colons != 2 {
                        self.end(line, &mut path);
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
                _ => {
                    self.end(line, &mut path);
                    colons = 0;
                }
            }
            if let TokenTree::Group(group) = token {
                self.name_tokens(group.stream());
            }
        }
        self.end(line, &mut path);
    }

    fn end(&mut self, line: usize, path: &mut Names) {
        if path.len() > 1 {
            self.name(line, path);
        }
        path.clear();
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        } else if let Item::Mod(ItemMod { ident, .. }) = item {
            let path = self.crate_path(std::iter::once(ident.to_string()));
            self.found.tests.push(path);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if let Some((_, items)) = &item.content {
            self.module.push(item.ident.to_string());
            self.scopes.push(self.scope(items));
            items.iter().for_each(|item| self.visit_item(item));
            self.scopes.pop();
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for (_, path) in leaves(&item.tree) {
            self.name(item.span().start().line, &path);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names: Names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        // A single segment is a variable or a name that a `use` imports.
        if names.len() > 1 {
            self.name(path.span().start().line, &names);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.visit_path(&called.path);
        self.name_tokens(called.tokens.clone());
    }

    /// Ignores a restricted visibility such as `pub(super)`, which is not a dependency.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if let (None, Type::Path(named)) = (&item.trait_, &*item.self_ty) {
            let names: Names = named.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            let path = self.resolved(&names);
            self.found.impls.push((item.span().start().line, path));
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if signature.asyncness.is_some() {
            self.found.asynchronous.push(signature.span().start().line);
        }
        visit::visit_signature(self, signature);
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        self.found.asynchronous.push(block.span().start().line);
        visit::visit_expr_async(self, block);
    }
}

/// Returns the attributes of an item. Returns none for kinds of items that the tests do not check.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns whether the attributes contain `#[cfg(test)]`.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| attribute.parse_args::<Path>().is_ok_and(|path| path.is_ident("test"));
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && is_test(attribute))
}

/// Returns the names that a `use` imports, each with its path.
fn leaves(tree: &UseTree) -> Vec<(String, Names)> {
    let mut found = Vec::new();
    walk(tree, &mut Vec::new(), &mut found);
    found
}

fn walk(tree: &UseTree, above: &mut Names, found: &mut Vec<(String, Names)>) {
    let with = |name: String| {
        let mut path = above.clone();
        // `self` imports the module itself.
        if name != "self" || path.is_empty() {
            path.push(name);
        }
        path
    };
    match tree {
        UseTree::Path(tree) => {
            above.push(tree.ident.to_string());
            walk(&tree.tree, above, found);
            above.pop();
        }
        UseTree::Name(tree) => {
            let path = with(tree.ident.to_string());
            found.push((path.last().cloned().unwrap_or_default(), path));
        }
        UseTree::Rename(tree) => found.push((tree.rename.to_string(), with(tree.ident.to_string()))),
        UseTree::Glob(_) => found.push(("*".to_owned(), above.clone())),
        UseTree::Group(tree) => tree.items.iter().for_each(|tree| walk(tree, above, found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Imports {
        of_text(text, &["a".to_owned(), "b".to_owned()]).expect("Rust")
    }

    fn named(text: &str) -> Vec<String> {
        read_text(text).paths.iter().map(|(line, path)| format!("{line} {}", path.join("::"))).collect()
    }

    #[test]
    fn module_paths_are_found_in_imports_types_expressions_and_macros() {
        let found = named(
            "pub use crate::x::{\n    self,\n    y::{Z, super_z as w},\n};\nuse super::{c, self as up};\n\
             fn f(_: &c::Deep) { let c = 1; w::g(); crate::q::r(); assert!(matches!(1, crate::m::N | self::o::P)); }\n",
        );
        for expected in [
            "1 crate::x",
            "1 crate::x::y::Z",
            "1 crate::x::y::super_z",
            "5 crate::a::c",
            "5 crate::a",
            "6 crate::a::c::Deep",
            "6 crate::x::y::super_z::g",
            "6 crate::q::r",
            "6 crate::m::N",
            "6 crate::a::b::o::P",
        ] {
            assert!(found.iter().any(|path| path == expected), "{expected}: {found:?}");
        }
    }

    #[test]
    fn a_variable_is_not_mistaken_for_a_module() {
        assert_eq!(named("mod c;\nfn f(c: u8) -> u8 { c }\n"), Vec::<String>::new());
    }

    #[test]
    fn paths_in_tests_or_visibility_modifiers_are_not_dependencies() {
        let found = read_text("pub(in crate::x) struct A;\n#[cfg(test)]\nmod tests { use crate::y::B; }\n");
        assert!(!found.paths.iter().any(|(_, path)| path.len() > 1), "{:?}", found.paths);
        assert_eq!(found.tests, [["crate", "a", "b", "tests"]]);
    }

    #[test]
    fn inherent_impls_and_asynchronous_functions_are_found() {
        let found =
            read_text("use crate::x::A;\nstruct B;\nimpl A {}\nimpl B { async fn f() {} }\nimpl Clone for A {}\n");
        let impls: Vec<String> = found.impls.iter().map(|(line, path)| format!("{line} {}", path.join("::"))).collect();
        assert_eq!(impls, ["3 crate::x::A", "4 crate::a::b::B"]);
        assert_eq!(found.asynchronous, [4]);
    }
}
