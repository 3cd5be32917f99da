//! Pages: aggregates with a `path`, such as imported Markdown files, and the references by which links name pages.
//!
//! A reference that begins with `/` is the path from the root of the project. Every other reference is the end of a
//! path. A reference that begins with `*/` names a page only if no other page matches. A reference with the suffix of a
//! Markdown file names a file, or a page whose front matter contains the reference without the suffix. A reference
//! without the suffix names a page by the page's address in a site: `a` names `a.md`, `a/index.md`, `01-a.md`, or a
//! page whose front matter contains the address `a`.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization as _;

use super::value::{Object, Value};

/// The name of the field with the path of a page.
const PATH: &str = "path";
/// The name of the field that contains the front matter of a page's file. The value of the field is an object.
const FRONT_MATTER: &str = "front_matter";
/// The suffixes of Markdown files, in lower case.
const SUFFIXES: [&str; 7] = [".md", ".markdown", ".mdx", ".mkd", ".mkdn", ".mkdown", ".mdown"];
/// The names of index files, without suffix and in lower case. An index file is the page of its folder.
const INDEX_NAMES: [&str; 3] = ["index", "_index", "readme"];
/// The folders of Jekyll that are not part of the address of a page.
const HIDDEN_FOLDERS: [&str; 2] = ["_posts", "_drafts"];
/// The usual names of Docusaurus folders that contain documents: `docs` for a site, `blog` for a blog, and `current`
/// for a translation.
const DOCUMENT_FOLDERS: [&str; 3] = ["docs", "blog", "current"];
/// The prefix in the names of Docusaurus folders that contain the documents of one version.
const VERSION_FOLDER: &str = "version-";
/// The prefix of references that must match exactly one page. If several pages match, the reference names no page.
const ONLY: &str = "*/";
/// The maximum length of a path, a reference or another address of a page, in bytes.
const MAX_LENGTH: usize = 512;
/// The maximum number of aliases that are used from the front matter of a page.
const MAX_ALIASES: usize = 50;
/// The maximum depth of a folder to which slugs that begin with `/` may be relative. The folders in the root of the
/// project have the depth 1.
const MAX_ROOTS: usize = 4;
/// The maximum depth of a folder to which slugs that begin with `/` may be relative for the pages directly in the
/// folder, unless the folder has a usual name. For example, the slug `/x` of `a/b/c/page.md` may be relative to `a` or
/// `a/b`, but not to `a/b/c`.
const MAX_DEPTH_OF_OWN_FOLDER: usize = 2;

/// A key in the index of pages. A reference has one key, and every page that matches the reference has this key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PageKey {
    /// The whole address of a page in its site.
    Address(Arc<str>),
    /// The last segment of the address, or the name of an index file, such as `readme`.
    Name(Arc<str>),
}

/// The rank of a page among the pages that match a reference. The reference names the page with the lowest rank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MatchRank {
    by: MatchedBy,
    /// Whether the page is outside the folder of the referring page.
    is_outside: bool,
    segments: usize,
    shared_folders: Reverse<usize>,
    bytes: usize,
    path: String,
}

/// The ways in which a page can match a reference, in the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MatchedBy {
    /// The reference matches the path. If the reference begins at the root, the case of the letters matches as well.
    Exact,
    /// The reference matches the path less exactly, in one of these ways:
    ///
    /// - The reference begins at the root, but the case of the letters or the Markdown suffix differs.
    /// - The reference has a Markdown suffix and does not begin at the root.
    /// - The reference names a file, and the page is the index file of a folder, or the reverse.
    Path,
    /// The reference matches the address of the page in its site, which differs from the path.
    Address,
    /// The reference matches an address or name in the front matter of the page.
    FrontMatter,
}

/// Returns the keys of a page, or an empty list if the state has no path of 1 to [`MAX_LENGTH`] bytes.
pub fn keys(state: &Object) -> Vec<PageKey> {
    let Some(path) = path(state) else { return Vec::new() };
    let mut keys = Vec::new();
    let mut add = |key: PageKey| {
        if !keys.contains(&key) {
            keys.push(key);
        }
    };
    for text in std::iter::once(Cow::Borrowed(path)).chain(other_addresses(path, state, true)) {
        let folded = folded(&text);
        let address = address_segments(&folded);
        add(PageKey::Address(address.join("/").into()));
        if let Some(name) = address.last() {
            add(PageKey::Name(name.as_str().into()));
        }
        if let Some(address) = undated_segments(&folded) {
            add(PageKey::Address(address.join("/").into()));
        }
    }
    if let Some(name) = index_name(last(path)) {
        add(PageKey::Name(name.into()));
    }
    keys
}

/// Returns whether two states of a page have the same path and front matter. If so, a reference that matches one of the
/// states matches the other state in the same way.
pub fn is_same(before: &Object, after: &Object) -> bool {
    [PATH, FRONT_MATTER].into_iter().all(|field| before.get(field) == after.get(field))
}

/// Returns whether a reference must match exactly one page. If several pages match, such a reference names no page.
pub fn must_be_only(reference: &str) -> bool {
    reference.starts_with(ONLY)
}

/// Returns the key of a reference.
pub fn key_of(reference: &str) -> PageKey {
    let reference = reference.strip_prefix(ONLY).unwrap_or(reference);
    if let Some(rooted) = reference.strip_prefix('/') {
        return PageKey::Address(address_segments(&folded(rooted)).join("/").into());
    }
    match index_name(last(reference)) {
        Some(name) => PageKey::Name(name.into()),
        None => PageKey::Name(address_segments(&folded(reference)).pop().unwrap_or_default().into()),
    }
}

/// Returns the rank of a page for a reference, or `None` if the page does not match. `from` is the state of the
/// aggregate that refers to the page.
pub fn rank(state: &Object, reference: &str, from: &Object) -> Option<MatchRank> {
    let path = path(state)?;
    let by = match_of(path, state, reference)?;
    let from_folder = self::path(from).map(folder).unwrap_or_default();
    let own_folder = folder(path);
    let shared = own_folder.split('/').zip(from_folder.split('/')).take_while(|(own, from)| own == from).count();
    Some(MatchRank {
        by,
        is_outside: !is_within(own_folder, from_folder),
        segments: path.split('/').count(),
        shared_folders: Reverse(shared),
        bytes: path.len(),
        path: path.to_owned(),
    })
}

fn match_of(path: &str, state: &Object, reference: &str) -> Option<MatchedBy> {
    let reference = reference.strip_prefix(ONLY).unwrap_or(reference);
    let (wanted, is_rooted) = reference.strip_prefix('/').map_or((reference, false), |rooted| (rooted, true));
    // A reference with a suffix, or with a single relative segment, names a file or page and never a folder.
    let may_be_folder = without_suffix(wanted).is_none() && (is_rooted || segments(wanted).len() > 1);
    let in_front_matter = |segments: &[String]| {
        let mut addresses = other_addresses(path, state, may_be_folder);
        let matches = addresses.any(|address| is_end(&folded(&address), segments, is_rooted));
        matches.then_some(MatchedBy::FrontMatter)
    };
    let Some(wanted_stem) = without_suffix(wanted) else {
        let wanted_segments = folded(wanted);
        return match_of_address(path, wanted, &wanted_segments, is_rooted)
            .or_else(|| in_front_matter(&wanted_segments));
    };
    let segments = segments(wanted_stem);
    let own = self::segments(stem(path));
    match is_end(&own, &segments, is_rooted) {
        // If several pages match by the end of their paths, the reference names the nearest page, regardless of case.
        true if is_rooted && path == wanted => Some(MatchedBy::Exact),
        true => Some(MatchedBy::Path),
        false => in_front_matter(&segments),
    }
}

fn match_of_address(path: &str, wanted: &str, segments: &[String], is_rooted: bool) -> Option<MatchedBy> {
    let own = folded(path);
    if is_end(&own, segments, is_rooted) {
        // `a/` and `a/index` name `a/index.md` rather than `a.md`, and `a` names `a.md`.
        let is_folder = is_index(last(path));
        let wants_folder = wanted.ends_with('/') || is_index(last(wanted));
        let wanted = wanted.trim_end_matches('/');
        let has_case = !is_rooted || stem(path) == wanted || (is_folder && folder(path) == wanted);
        return Some(if is_folder == wants_folder && has_case { MatchedBy::Exact } else { MatchedBy::Path });
    }
    let address = address_segments(&own);
    // A link may use a segment of the path in one place, and a segment of the page's address in another place.
    let is_mixed = || {
        let matches = |((own, address), wanted): ((&String, &String), &String)| own == wanted || address == wanted;
        let mut pairs = own.iter().rev().zip(address.iter().rev()).zip(segments.iter().rev());
        let has_length = if is_rooted { own.len() == segments.len() } else { own.len() >= segments.len() };
        own.len() == address.len() && has_length && !segments.is_empty() && pairs.all(matches)
    };
    let is_undated = || undated_segments(&own).is_some_and(|address| is_end(&address, segments, is_rooted));
    (is_end(&address, segments, is_rooted) || is_mixed() || is_undated()).then_some(MatchedBy::Address)
}

/// If `is_rooted` is set, returns whether `own` equals `segments`. Otherwise, returns whether `segments` is not empty
/// and `own` ends with `segments`.
fn is_end(own: &[String], segments: &[String], is_rooted: bool) -> bool {
    if is_rooted { own == segments } else { !segments.is_empty() && own.ends_with(segments) }
}

/// Returns whether a path or reference has the suffix of a Markdown file.
pub fn is_markdown(path: &str) -> bool {
    without_suffix(path).is_some()
}

/// Returns a path without the suffix of a Markdown file.
pub fn stem(path: &str) -> &str {
    without_suffix(path).unwrap_or(path)
}

/// Returns whether a file with this name is the page of its folder.
pub fn is_index(file: &str) -> bool {
    index_name(file).is_some()
}

fn path(state: &Object) -> Option<&str> {
    state.get(PATH).and_then(Value::as_str).filter(|path| !path.is_empty() && path.len() <= MAX_LENGTH)
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn last(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, last)| last)
}

/// Returns whether a folder is `outer`, or is inside `outer`.
fn is_within(folder: &str, outer: &str) -> bool {
    outer.is_empty() || folder.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the path of a Markdown file without its suffix, or `None` if the path has no such suffix.
fn without_suffix(path: &str) -> Option<&str> {
    SUFFIXES.into_iter().find_map(|suffix| {
        let (stem, end) = path.split_at_checked(path.len().checked_sub(suffix.len())?)?;
        end.eq_ignore_ascii_case(suffix).then_some(stem).filter(|stem| !stem.is_empty() && !stem.ends_with('/'))
    })
}

/// Returns the name of an index file, without suffix and in lower case. Returns `None` for other files.
fn index_name(file: &str) -> Option<&'static str> {
    let stem = stem(file);
    INDEX_NAMES.into_iter().find(|name| name.eq_ignore_ascii_case(stem))
}

/// Returns the segments of a path, in lower case and in normalization form C. The normalization is necessary because
/// some file systems store a letter with an accent as two characters, and links contain one character.
fn segments(path: &str) -> Vec<String> {
    let parts = path.split('/').filter(|segment| !segment.is_empty() && *segment != ".");
    let folded = |segment: &str| match segment.is_ascii() {
        true => segment.to_ascii_lowercase(),
        false => segment.nfc().collect::<String>().to_lowercase(),
    };
    parts.map(folded).collect()
}

/// Returns the lower-case segments of a path, without the suffix and without the name of an index file.
fn folded(path: &str) -> Vec<String> {
    let mut segments = segments(stem(path));
    if segments.last().is_some_and(|name| index_name(name).is_some()) {
        segments.pop();
    }
    segments
}

/// Returns the segments of the address that site generators give to a page. `folded` are the segments of the page's
/// path, as [`folded`] returns them. The address leaves out a number at the beginning of a name, which only sorts
/// pages, and the underscore before the name of a collection. The date in the name of a post becomes three segments.
fn address_segments(folded: &[String]) -> Vec<String> {
    let Some((last, folders)) = folded.split_last() else { return Vec::new() };
    let mut address = folder_address(folders);
    match dated(last) {
        Some(parts) => address.extend(parts.map(str::to_owned)),
        None => address.push(address_segment(last)),
    }
    address
}

/// Returns the segments of a dated post's address, but leaves out the date. Sites of Zola, for example, use such
/// addresses. Returns `None` if the name of the file has no date.
fn undated_segments(folded: &[String]) -> Option<Vec<String>> {
    let (last, folders) = folded.split_last()?;
    let [.., name] = dated(last)?;
    let mut address = folder_address(folders);
    address.push(name.to_owned());
    Some(address)
}

/// Returns the segments of the address of a folder. `folders` are the segments of the folder's path, as [`folded`]
/// returns them.
fn folder_address(folders: &[String]) -> Vec<String> {
    let shown = folders.iter().filter(|folder| !HIDDEN_FOLDERS.contains(&folder.as_str()));
    shown.map(|folder| address_segment(folder)).collect()
}

fn address_segment(segment: &str) -> String {
    unnumbered(segment.strip_prefix('_').unwrap_or(segment)).to_owned()
}

/// Splits `2020-01-31-name` into year, month, day and name.
fn dated(segment: &str) -> Option<[&str; 4]> {
    let mut parts = segment.splitn(4, '-');
    let found = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    let is_number = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    let [year, month, day, name] = found;
    (is_number(year, 4) && is_number(month, 2) && is_number(day, 2) && !name.is_empty()).then_some(found)
}

/// Removes a number at the beginning of a name, as in `01-name`. Keeps the numbers of dates and versions.
fn unnumbered(segment: &str) -> &str {
    let rest = segment.trim_start_matches(|character: char| character.is_ascii_digit());
    let name = rest.trim_start_matches([' ', '-', '_', '.']);
    let separator = rest.strip_suffix(name).unwrap_or_default();
    let has_number = rest.len() < segment.len() && separator.contains(['-', '_', '.']);
    let is_name = !name.is_empty() && !name.starts_with(|character: char| character.is_ascii_digit());
    if has_number && is_name { name } else { segment }
}

/// Returns the addresses and names that front matter gives to a page: aliases, and addresses of Hugo (`url`, `slug`),
/// Zola (`path`, `slug`), Jekyll (`permalink`, `redirect_from`) and Docusaurus (`slug`, `id`). If `with_folders` is set
/// and the slug is `/`, includes the addresses of the folders that may contain the documents of the site.
fn other_addresses<'a>(path: &'a str, state: &'a Object, with_folders: bool) -> impl Iterator<Item = Cow<'a, str>> {
    let front_matter = state.get(FRONT_MATTER).and_then(Value::as_object);
    let field = move |name: &str| front_matter.and_then(|fields| fields.get(name));
    let list = |value: &'a Value| value.as_array().unwrap_or(std::slice::from_ref(value));
    let aliases = ["aliases", "alias", "redirect_from"].into_iter().filter_map(field).flat_map(list);
    let aliases = aliases.take(MAX_ALIASES).filter_map(Value::as_str).map(Cow::Borrowed);
    let folders = folded(path).split_last().map(|(_, folders)| folders.to_vec()).unwrap_or_default();
    let whole = ["permalink", "url", "path"].into_iter().filter_map(field).filter_map(Value::as_str).map(Cow::Borrowed);
    let relative = ["slug", "id"].into_iter().filter_map(field).filter_map(Value::as_str);
    let in_site = whole.chain(relative.flat_map(move |text| addresses_below(&folders, text, with_folders)));
    // A text with a placeholder of Jekyll, as in `/:title/`, is not an address.
    let is_address = |text: &Cow<'_, str>| !text.is_empty() && text.len() <= MAX_LENGTH && !text.contains("/:");
    let without_html = |text: Cow<'a, str>| match text.strip_suffix(".html") {
        Some(stem) => Cow::Owned(stem.to_owned()),
        None => text,
    };
    aliases.chain(in_site).filter(is_address).map(without_html)
}

/// Returns the addresses of a page whose front matter contains `text` as its slug. `folders` are the segments of the
/// page's path, as [`folded`] returns them, without the last segment. A slug that does not begin with `/` gives two
/// addresses: one with the names of the folders, and one with the addresses of the folders. A link may use either
/// address.
///
/// A slug that begins with `/` is an address itself, and also gives an address below each folder above the page, up to
/// a limit: in Docusaurus, such a slug is relative to the folder of the documents, which may be any of these folders.
/// For the slug `/`, the addresses below the folders are the addresses of the folders. These addresses are included
/// only if `with_folders` is set.
fn addresses_below<'a>(folders: &[String], text: &'a str, with_folders: bool) -> Vec<Cow<'a, str>> {
    if !text.starts_with('/') {
        let below = [folders.join("/"), folder_address(folders).join("/")];
        return below.map(|folder| Cow::Owned(format!("{folder}/{text}"))).into();
    }
    let is_excluded = !with_folders && text.trim_matches('/').is_empty();
    let has_usual_name = folders
        .last()
        .is_some_and(|name| DOCUMENT_FOLDERS.contains(&name.as_str()) || name.starts_with(VERSION_FOLDER));
    let deepest = match folders.len() {
        _ if is_excluded => 0,
        // A folder deeper than `MAX_DEPTH_OF_OWN_FOLDER` is rarely the folder of the documents, unless the folder has a
        // usual name.
        many if many > MAX_DEPTH_OF_OWN_FOLDER && !has_usual_name => many - 1,
        few => few,
    };
    let roots = (1..=deepest.min(MAX_ROOTS)).filter_map(|length| folders.get(..length));
    let below = roots.map(|root| Cow::Owned(format!("{}{text}", root.join("/"))));
    std::iter::once(Cow::Borrowed(text)).chain(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str) -> Object {
        Object::from_iter([(PATH, path)])
    }

    fn with_front_matter(path: &str, fields: Object) -> Object {
        let mut state = page(path);
        state.push(FRONT_MATTER, fields);
        state
    }

    /// Returns the path of the page that a reference in `from` names. Also asserts that the key of the reference is one
    /// of the page's keys.
    fn named(pages: &[Object], reference: &str, from: &str) -> Option<String> {
        let from = page(from);
        let found = pages.iter().filter_map(|state| Some((rank(state, reference, &from)?, state)));
        let (_, state) = found.min_by(|(a, _), (b, _)| a.cmp(b))?;
        assert!(
            keys(state).contains(&key_of(reference)),
            "{reference}: {:?} not in {:?}",
            key_of(reference),
            keys(state)
        );
        path(state).map(str::to_owned)
    }

    #[test]
    fn a_reference_names_a_page_by_its_file_or_address() {
        let paths = [
            "README.md",
            "docs/a.md",
            "docs/a/index.md",
            "docs/B.md",
            "docs/b.md",
            "docs/01-guide/02-Setup.mdx",
            "content/posts/_index.md",
            "content/posts/Über uns.md",
            "_posts/2020-01-31-first.md",
            "_notes/b.markdown",
            "docs/2020-plan.md",
            "docs/3.1-release.md",
        ];
        let pages = paths.map(page);
        for (reference, expected) in [
            ("/", Some("README.md")),
            ("/readme.md", Some("README.md")),
            ("/docs/a.md", Some("docs/a.md")),
            ("/docs/a", Some("docs/a.md")),
            ("/docs/a/", Some("docs/a/index.md")),
            ("/docs/a/index", Some("docs/a/index.md")),
            ("/docs/a/README.md", None),
            ("/docs/B", Some("docs/B.md")),
            ("/docs/b", Some("docs/b.md")),
            ("/docs/b.md", Some("docs/b.md")),
            ("/DOCS/A.MD", Some("docs/a.md")),
            ("/docs/guide/setup", Some("docs/01-guide/02-Setup.mdx")),
            ("/docs/01-guide/setup", Some("docs/01-guide/02-Setup.mdx")),
            ("/docs/01-guide/02-setup.md", Some("docs/01-guide/02-Setup.mdx")),
            ("/docs/guide/setup.md", None),
            ("posts", Some("content/posts/_index.md")),
            ("posts/über uns", Some("content/posts/Über uns.md")),
            ("/posts/über uns", None),
            ("/2020/01/31/first", Some("_posts/2020-01-31-first.md")),
            ("/first", Some("_posts/2020-01-31-first.md")),
            ("/2020/first", None),
            ("2020-01-31-first.md", Some("_posts/2020-01-31-first.md")),
            ("/notes/b", Some("_notes/b.markdown")),
            ("/docs/2019-plan", None),
            ("/docs/2019-plan.md", None),
            ("/docs/3.1-release", Some("docs/3.1-release.md")),
            ("/docs/release", None),
            ("*/setup.md", None),
            ("*/02-setup.md", Some("docs/01-guide/02-Setup.mdx")),
            ("", None),
        ] {
            assert_eq!(named(&pages, reference, "x.md").as_deref(), expected, "{reference}");
        }
    }

    #[test]
    fn a_reference_names_the_nearest_of_several_pages() {
        let pages = ["x/y/n.md", "z/n.md", "a/b/n.md", "a/b/c/n.md", "de/docs/m.md", "en/docs/m.md"].map(page);
        for (from, expected) in
            [("a/b/from.md", "a/b/n.md"), ("a/from.md", "a/b/n.md"), ("q/from.md", "z/n.md"), ("from.md", "z/n.md")]
        {
            assert_eq!(named(&pages, "n.md", from).as_deref(), Some(expected), "{from}");
        }
        assert_eq!(named(&pages, "N.md", "x/y/from.md").as_deref(), Some("x/y/n.md"));
        assert_eq!(named(&pages, "y/n.md", "a/b/from.md").as_deref(), Some("x/y/n.md"));
        assert_eq!(named(&pages, "docs/m", "en/blog/from.md").as_deref(), Some("en/docs/m.md"));
        assert_eq!(named(&pages, "docs/m", "de/blog/from.md").as_deref(), Some("de/docs/m.md"));
    }

    #[test]
    fn front_matter_gives_a_page_further_addresses() {
        let aliases: Vec<Value> = vec!["Old name".into(), "/old/url/".into(), Value::Int(7)];
        let alias = with_front_matter("content/a.md", Object::from_iter([("aliases", aliases)]));
        let fields = [
            ("slug", "renamed"),
            ("id", "nick"),
            ("permalink", "/about/us/"),
            ("url", "/:title/"),
            ("redirect_from", "/us/index.html"),
            ("path", "2021/05/10/b"),
        ];
        let addressed = with_front_matter("docs/b.md", Object::from_iter(fields));
        let pages = [alias, addressed, page("old name.md")];
        for (reference, expected) in [
            ("Old name.md", Some("old name.md")),
            ("/old/url", Some("content/a.md")),
            ("/docs/renamed", Some("docs/b.md")),
            ("/docs/nick/", Some("docs/b.md")),
            ("/about/us", Some("docs/b.md")),
            ("/us/", Some("docs/b.md")),
            ("/2021/05/10/b/", Some("docs/b.md")),
            ("/renamed", None),
            ("/7", None),
        ] {
            assert_eq!(named(&pages, reference, "x.md").as_deref(), expected, "{reference}");
        }
        assert_eq!(named(&pages[..2], "old name.md", "x.md").as_deref(), Some("content/a.md"));
    }

    #[test]
    fn a_state_without_a_valid_path_has_no_keys() {
        for path in [Value::Null, Value::Int(1), "".into(), "x".repeat(MAX_LENGTH + 1).into()] {
            assert!(keys(&Object::from_iter([(PATH, path)])).is_empty());
        }
    }

    #[test]
    fn a_docusaurus_slug_is_relative_to_the_folder_of_its_page_unless_it_begins_with_a_slash() {
        let pages = [
            ("docs/intro.md", "/getting-started"),
            ("website/docs/01-guide/02-setup.md", "install"),
            ("website/docs/01-guide/start.md", "/home"),
        ]
        .map(|(path, slug)| with_front_matter(path, Object::from_iter([("slug", slug)])));
        for (reference, expected) in [
            ("/docs/getting-started", Some("docs/intro.md")),
            ("docs/getting-started", Some("docs/intro.md")),
            ("/getting-started", Some("docs/intro.md")),
            ("/docs/guide/getting-started", None),
            ("/website/docs/guide/install", Some("website/docs/01-guide/02-setup.md")),
            ("/website/docs/01-guide/install", Some("website/docs/01-guide/02-setup.md")),
            ("docs/guide/install", Some("website/docs/01-guide/02-setup.md")),
            ("/install", None),
            ("docs/home", Some("website/docs/01-guide/start.md")),
            ("/website/docs/home", Some("website/docs/01-guide/start.md")),
        ] {
            assert_eq!(named(&pages, reference, "x.md").as_deref(), expected, "{reference}");
        }
    }

    #[test]
    fn a_page_with_the_slug_of_a_folder_is_not_found_by_the_folder_name_alone() {
        let pages = [
            ("docs/intro.md", "/"),
            ("a/b/c/p.md", "/foo"),
            ("website/docs/start.md", "/home"),
            ("packages/site/docs/first.md", "/welcome"),
            ("site/versioned_docs/v/version-1.0/first.md", "/old"),
        ]
        .map(|(path, slug)| with_front_matter(path, Object::from_iter([("slug", slug)])));
        for (reference, expected) in [
            ("/", Some("docs/intro.md")),
            ("/docs", Some("docs/intro.md")),
            ("/docs/", Some("docs/intro.md")),
            ("/docs.md", None),
            ("docs.md", None),
            ("docs", None),
            ("docs/", None),
            ("/foo", Some("a/b/c/p.md")),
            ("/a/b/foo", Some("a/b/c/p.md")),
            ("/a/b/c/foo", None),
            ("c/foo", None),
            ("docs/home", Some("website/docs/start.md")),
            ("/packages/site/docs/welcome", Some("packages/site/docs/first.md")),
            ("docs/welcome", Some("packages/site/docs/first.md")),
            ("version-1.0/old", Some("site/versioned_docs/v/version-1.0/first.md")),
        ] {
            assert_eq!(named(&pages, reference, "x.md").as_deref(), expected, "{reference}");
        }
    }

    #[test]
    fn composed_and_decomposed_letters_name_the_same_page() {
        let pages = [page("notes/U\u{308}ber.md"), page("caf\u{e9}/Menu.md")];
        for (reference, expected) in [
            ("\u{dc}ber.md", "notes/U\u{308}ber.md"),
            ("/notes/\u{fc}ber", "notes/U\u{308}ber.md"),
            ("/cafe\u{301}/menu.md", "caf\u{e9}/Menu.md"),
        ] {
            assert_eq!(named(&pages, reference, "x.md").as_deref(), Some(expected), "{reference}");
        }
    }
}
