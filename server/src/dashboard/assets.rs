//! The files of the dashboard in the form in which they are served: bytes, compressed bytes, media types, and a digest
//! of all files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::{LazyLock, OnceLock};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use regex::Regex;
use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};

/// The name of the page that the server returns for every address of the dashboard.
const PAGE: &str = "index.html";
/// The name of the module that the page loads first.
const MAIN: &str = "main.js";
/// The minimum size of a file that is compressed, in bytes. For smaller files, the additional headers outweigh the
/// compression.
const MIN_COMPRESSED: usize = 256;
/// The number of hexadecimal digits of a digest in addresses and tags.
const DIGEST_LEN: usize = 16;

/// The folder of the dashboard. A debug build reads the folder from the disk, and a release build contains the files.
#[derive(RustEmbed)]
#[folder = "dashboard/app"]
struct DashboardFolder;

/// All files of one version of the dashboard.
pub struct Assets {
    files: BTreeMap<String, Asset>,
    /// The digest of the names and contents of all files, which identifies the version. The address of every file
    /// contains the digest, so caches may keep responses forever.
    pub digest: String,
    pub page: Asset,
    /// The entity tag of the page. The tag also depends on settings, because the page contains settings.
    pub page_tag: String,
}

/// A file to serve.
pub struct Asset {
    pub bytes: Bytes,
    pub content_type: String,
    compressed: OnceLock<Option<Bytes>>,
}

impl Asset {
    fn new(name: &str, bytes: Bytes) -> Asset {
        let guessed = mime_guess::from_path(name).first_or_octet_stream();
        let charset =
            if guessed.type_() == "text" && guessed.get_param("charset").is_none() { "; charset=utf-8" } else { "" };
        Asset { bytes, content_type: format!("{guessed}{charset}"), compressed: OnceLock::new() }
    }

    /// Returns the file compressed with gzip, or `None` if the file is very small or compression does not make the file
    /// smaller. The first call compresses the file.
    pub fn compressed(&self) -> Option<Bytes> {
        let compress = || {
            if self.bytes.len() < MIN_COMPRESSED {
                return None;
            }
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&self.bytes).ok()?;
            encoder.finish().ok().filter(|compressed| compressed.len() < self.bytes.len()).map(Bytes::from)
        };
        self.compressed.get_or_init(compress).clone()
    }
}

impl Assets {
    /// Reads all files of the dashboard. Inserts `settings` and the address of the files into the page. `settings`
    /// contains elements for the head of the page. The address is `base`, followed by the digest of the files.
    pub fn load(base: &str, settings: &str) -> Assets {
        let mut files = BTreeMap::new();
        let mut digest = Sha256::new();
        for name in DashboardFolder::iter().collect::<BTreeSet<_>>() {
            let Some(file) = DashboardFolder::get(&name) else { continue };
            digest.update(name.as_bytes());
            digest.update(file.metadata.sha256_hash());
            files.insert(name.to_string(), Asset::new(&name, file.data.into_owned().into()));
        }
        let digest = hex::encode(digest.finalize())[..DIGEST_LEN].to_owned();
        let page = page(&files, &format!("{base}/{digest}"), settings);
        let page_tag = hex::encode(Sha256::digest(&page))[..DIGEST_LEN].to_owned();
        Assets { page: Asset::new(PAGE, page.into()), page_tag, files, digest }
    }

    /// Returns the file with this path, relative to the address that contains the digest. Returns `None` for the page
    /// itself.
    pub fn file(&self, path: &str) -> Option<&Asset> {
        self.files.get(path).filter(|_| path != PAGE)
    }
}

/// Returns the page with the address of the files, and with hints to preload all modules that the page imports
/// statically. With these hints, a browser loads the modules in parallel instead of one after the other.
fn page(files: &BTreeMap<String, Asset>, address: &str, settings: &str) -> String {
    let text = |name: &str| files.get(name).map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
    let mut modules = vec![MAIN.to_owned()];
    let mut next = 0;
    while let Some(module) = modules.get(next).cloned() {
        next += 1;
        let text = text(&module).unwrap_or_default();
        for imported in imports(&text).filter_map(|path| resolved(&module, path)) {
            if files.contains_key(&imported) && !modules.contains(&imported) {
                modules.push(imported);
            }
        }
    }
    let hints: String = modules
        .iter()
        .map(|module| format!("<link rel=\"modulepreload\" href=\"{address}/{module}\">\n    "))
        .collect();
    let page = text(PAGE).unwrap_or_default();
    let page = page.replace("{{assets}}", address);
    page.replace("{{modules}}", &format!("{settings}{}", hints.trim_end()))
}

/// The pattern of a static import, or of an export from another module, at the beginning of a line.
static IMPORT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?m)^(?:import|export)\b[^;"]*"(\.[^"\n]+)";"#).expect("a valid pattern"));

/// Returns the relative paths that a module imports statically.
fn imports(module: &str) -> impl Iterator<Item = &str> {
    IMPORT.captures_iter(module).filter_map(|found| Some(found.get(1)?.as_str()))
}

/// Returns the path of an imported module, relative to the folder of the dashboard. Returns `None` if the path leads
/// out of the folder. `path` is relative to the module `importer`.
fn resolved(importer: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = importer.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_imports_are_found_and_resolved() {
        let module = "// first\nimport { a } from \"../api/client.js\";\nexport { b } from \"./b.js\";\nconst c = import(\"./later.js\");\n";
        assert_eq!(imports(module).collect::<Vec<_>>(), ["../api/client.js", "./b.js"]);
        assert_eq!(resolved("screens/inbox/list.js", "../../api/client.js").as_deref(), Some("api/client.js"));
        assert_eq!(resolved("main.js", "../outside.js"), None);
    }
}
