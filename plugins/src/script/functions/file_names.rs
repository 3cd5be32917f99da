//! Decides by the name in a link whether the link may lead to a file that is not a page. An import contains only
//! Markdown, so the server does not know whether such a file exists.

/// The names of well-known files without a suffix, such as `LICENSE`. These files are not pages.
const FILES: [&str; 42] = [
    "AUTHORS",
    "BUILD",
    "Brewfile",
    "CHANGELOG",
    "CHANGES",
    "CODEOWNERS",
    "CONTRIBUTORS",
    "COPYING",
    "COPYRIGHT",
    "CREDITS",
    "Caddyfile",
    "Containerfile",
    "DEPS",
    "Dockerfile",
    "GNUmakefile",
    "Gemfile",
    "HISTORY",
    "INSTALL",
    "Jenkinsfile",
    "Justfile",
    "Kconfig",
    "LICENCE",
    "LICENSE",
    "MAINTAINERS",
    "Makefile",
    "NEWS",
    "NOTICE",
    "OWNERS",
    "PATENTS",
    "Pipfile",
    "Podfile",
    "Procfile",
    "Rakefile",
    "THANKS",
    "TODO",
    "UNLICENSE",
    "VERSION",
    "Vagrantfile",
    "WORKSPACE",
    "gradlew",
    "justfile",
    "mvnw",
];
/// The names of folders that contain code. A site seldom has pages in folders with these names.
const FOLDERS: [&str; 11] =
    ["bin", "cmd", "crates", "include", "lib", "pkg", "scripts", "src", "test", "tests", "vendor"];
/// The maximum length of a suffix, in bytes. A longer text after a dot counts as a word.
const MAX_SUFFIX: usize = 10;

/// Returns whether the path of a URL may name a file that is not a page, or a folder of such files.
pub(super) fn is_file(path: &str) -> bool {
    let name = last(path);
    if let Some((stem, "html" | "htm")) = name.rsplit_once('.') {
        // Sites link to their own `index.html` as a folder, so `index.html` is a file, and so is `a.min.html`. Other
        // names with this suffix are addresses of pages.
        return stem == "index" || has_suffix(stem);
    }
    let mut segments = path.split('/');
    let is_hidden = |segment: &str| segment.starts_with('.') && !matches!(segment, "." | "..");
    let is_code = |path: &str| path.ends_with('/') && path.split('/').any(|folder| FOLDERS.contains(&folder));
    // `LICENSE-MIT` is named like `LICENSE`.
    let known = name.split('-').next().unwrap_or(name);
    has_suffix(path)
        || FILES.contains(&known)
        || segments.any(is_hidden)
        || (!path.starts_with(['/', '@']) && is_code(path))
}

/// Returns whether the last segment of a URL's path ends with the suffix of a file name. The segments `a.rs` and `a.7z`
/// end with such a suffix, but `v1.2` does not.
pub(super) fn has_suffix(path: &str) -> bool {
    let is_suffix = |suffix: &str| {
        suffix.len() <= MAX_SUFFIX
            && suffix.bytes().any(|byte| byte.is_ascii_alphabetic())
            && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    last(path).rsplit_once('.').is_some_and(|(_, suffix)| is_suffix(suffix))
}

pub(super) fn last(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_distinguished_from_pages_by_their_names() {
        for path in [
            "LICENSE",
            "../LICENSE-MIT",
            "docker/Dockerfile",
            "gradle.properties",
            ".gitignore",
            ".clang-format",
            ".github/workflows/",
            "x.7z",
            "src/",
            "../src/parser/",
            "api/index.html",
            "jquery.min.html",
            "/files/a.pdf",
        ] {
            assert!(is_file(path), "{path}");
        }
        for path in [
            "a",
            "a/",
            "..",
            "./",
            "License",
            "FAQ",
            "Profile",
            "v1.2",
            "Dr. Who",
            "a.html",
            "src",
            "/src/",
            "@site/src/",
            "docs/guide/",
            "examples/",
            "packages/core/",
            "e.g.introduction",
        ] {
            assert!(!is_file(path), "{path}");
        }
    }
}
