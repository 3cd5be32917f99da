//! Tests that handlers use the types that the OpenAPI document describes. The source code must build or parse each
//! type, except for the types in `ONLY_DESCRIBED`.

use std::collections::BTreeSet;

use foldwork_tests::expectation::{all_well, read, root};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, ExprStruct, Item, ItemImpl, ItemStruct, Macro, Path, Token, Type};

use super::types::declared;
use super::{imports, sources};

/// The folders that contain the types of the OpenAPI document.
const DESCRIBED: [&str; 2] = ["server/src/wire", "server/src/api"];
/// The types that only describe a schema, each with the reason.
const ONLY_DESCRIBED: [(&str, &str); 2] = [
    ("StreamEvents", "both forms of an append are parsed as one struct, because a null field counts as absent"),
    ("TypeDefinition", "the engine checks a definition itself, and names everything in it that is wrong"),
];

/// The structs that some source files define for the OpenAPI document, and the structs that the files build or parse.
#[derive(Default)]
struct Found {
    described: BTreeSet<String>,
    used: BTreeSet<String>,
    /// The structs that a macro declares together with a conversion from another type. Such a struct counts as built if
    /// `named` contains its name.
    converted: BTreeSet<String>,
    /// The names in paths and in macros, without the names of declarations.
    named: BTreeSet<String>,
    /// The type of the surrounding `impl` block.
    of: Option<String>,
}

impl Found {
    fn read(&mut self, text: &str) -> syn::Result<()> {
        self.visit_file(&syn::parse_file(text)?);
        Ok(())
    }

    /// Records the names in the tokens of a macro. A name directly before braces also counts as a struct expression.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut name = None;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    let declares = name.replace(ident.to_string()).is_some_and(|before| before == "struct");
                    if !declares {
                        self.named.insert(ident.to_string());
                    }
                    continue;
                }
                TokenTree::Group(group) => {
                    let built = name.take().filter(|_| group.delimiter() == Delimiter::Brace);
                    self.used.extend(built);
                    self.read_tokens(group.stream());
                }
                _ => {}
            }
            name = None;
        }
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, item: &'ast Item) {
        if !imports::is_for_tests(imports::attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        let derived = derived(&item.attrs);
        let name = item.ident.to_string();
        if derived.contains("Deserialize") {
            self.used.insert(name.clone());
        }
        if derived.contains("Object") {
            self.described.insert(name);
        }
        visit::visit_item_struct(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let of = match &*item.self_ty {
            Type::Path(named) => named.path.segments.last().map(|segment| segment.ident.to_string()),
            _ => None,
        };
        let outer = std::mem::replace(&mut self.of, of);
        visit::visit_item_impl(self, item);
        self.of = outer;
    }

    fn visit_expr_struct(&mut self, built: &'ast ExprStruct) {
        let name = built.path.segments.last().map(|segment| segment.ident.to_string());
        let name = if name.as_deref() == Some("Self") { self.of.clone() } else { name };
        self.used.extend(name);
        visit::visit_expr_struct(self, built);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        self.named.extend(path.segments.iter().map(|segment| segment.ident.to_string()));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        if called.path.is_ident("shown") {
            self.converted.extend(declared(called.tokens.clone()));
        }
        self.read_tokens(called.tokens.clone());
    }
}

/// Returns the names of the traits that an item derives.
fn derived(attributes: &[Attribute]) -> BTreeSet<String> {
    let derives = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    let paths =
        derives.filter_map(|derive| derive.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated).ok());
    paths.flatten().filter_map(|path| path.segments.last().map(|segment| segment.ident.to_string())).collect()
}

#[test]
fn every_openapi_type_is_built_or_parsed_except_for_listed_ones() {
    let (mut inside, mut failures) = (Found::default(), Vec::new());
    let (mut described, mut converted) = (Vec::new(), BTreeSet::new());
    for file in sources("server/src") {
        let parsed = inside.read(&read(&file));
        failures.extend(parsed.err().map(|error| format!("{}: {error}", file.display())));
        let mut names = std::mem::take(&mut inside.described);
        names.extend(inside.converted.iter().cloned());
        converted.append(&mut inside.converted);
        if DESCRIBED.iter().any(|folder| file.starts_with(root().join(folder))) {
            described.extend(names.into_iter().map(|name| (file.clone(), name)));
        }
    }
    assert!(described.len() > 100, "only {} types of the document were found", described.len());
    inside.used.extend(converted.intersection(&inside.named).cloned());
    let is_excused = |name: &str| ONLY_DESCRIBED.iter().any(|(excused, _)| *excused == name);
    let unused = described.iter().filter(|(_, name)| inside.used.contains(name) == is_excused(name));
    failures.extend(unused.map(|(file, name)| match is_excused(name) {
        true => format!("{}: {name} is built or parsed: remove it from the exceptions", file.display()),
        false => format!("{}: {name} is in the document, but never built nor parsed", file.display()),
    }));
    all_well(failures);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_built_in_code_and_in_macros_are_found() {
        let mut found = Found::default();
        let text = "#[derive(Object)]\nstruct A { b: u8 }\n#[derive(poem::Object, Deserialize)]\nstruct B;\n\
            #[derive(Object)]\nstruct C;\n#[derive(Object)]\nstruct D;\n#[derive(Object)]\nstruct E;\nstruct F;\n\
            impl A { fn new() -> Self { Self { b: 1 } } }\nfn f(d: D) { let D { .. } = d; }\nreceived!(C { x, y });\n\
            shown! { pub struct G from g: &u8; h: u8 = *g, }\nshown! { struct H from h: &u8; g: G = h.into(), }\n\
            #[cfg(test)]\nmod tests { fn f() { let _ = E {}; } }\n";
        found.read(text).expect("Rust");
        assert_eq!(found.described.iter().map(String::as_str).collect::<Vec<_>>(), ["A", "B", "C", "D", "E"]);
        assert_eq!(found.used.iter().map(String::as_str).collect::<Vec<_>>(), ["A", "B", "C"]);
        assert_eq!(found.converted.iter().map(String::as_str).collect::<Vec<_>>(), ["G", "H"]);
        assert!(found.named.contains("G") && !found.named.contains("H"));
    }
}
