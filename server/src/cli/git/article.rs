//! Converts a Markdown file to the fields of an article, from its front matter, first heading and body.

use serde_json::{Map, Value};

use super::front_matter::FrontMatter;
pub use super::front_matter::Warning;
use super::{date, slug, title};

/// The name of the field with the whole front matter.
const FRONT_MATTER: &str = "front_matter";
/// The fields of front matter that may contain a description, in order of preference.
const DESCRIPTION: [&str; 3] = ["description", "summary", "excerpt"];
/// The fields of front matter that may contain the date of the text, in order of preference. Hugo, Jekyll, Zola and
/// Docusaurus use `date`, Astro uses `pubDate`, and notes in Obsidian use `created`.
const DATE: [&str; 5] = ["date", "pubDate", "publishDate", "created", "created_at"];
/// The fields of front matter that may contain the date of the text's last change, in order of preference.
const UPDATED: [&str; 7] =
    ["updated", "lastmod", "last_modified_at", "updatedDate", "modified", "updated_at", "last_update.date"];
/// The fields of front matter that may contain tags, in order of preference. Zola uses `taxonomies.tags`. Without a
/// field for tags, the categories of a file become its tags. Keywords are for search engines, so keywords do not become
/// tags.
const TAGS: [&str; 6] = ["tags", "taxonomies.tags", "tag", "categories", "taxonomies.categories", "category"];
/// The maximum number of characters of a description.
const MAX_DESCRIPTION: usize = 10_000;
/// The maximum number of tags.
const MAX_TAGS: usize = 200;
/// The maximum number of characters of a tag.
const MAX_TAG: usize = 200;

/// A Markdown file, split into front matter and body.
pub struct Document<'a> {
    front: FrontMatter,
    body: &'a str,
}

impl<'a> Document<'a> {
    pub fn read(text: &'a str, warnings: &mut Vec<Warning>) -> Self {
        let (front, body) = FrontMatter::split(text, warnings);
        Self { front, body }
    }

    /// Returns the slug in the front matter of the file, converted to a valid slug.
    pub fn slug(&self) -> Option<String> {
        self.front.get("slug").and_then(scalar_text).and_then(|text| slug::of_front_matter(&text))
    }

    /// Returns the fields of the file's article. The flags `draft`, `published` and `publish` stay in the field
    /// `front_matter` and do not become fields of the article.
    pub fn into_fields(self, path: &str, slug: &str, warnings: &mut Vec<Warning>) -> Map<String, Value> {
        let folders: Vec<&str> =
            path.rsplit_once('/').map(|(folders, _)| folders.split('/').collect()).unwrap_or_default();
        let title = self.title(warnings).or_else(|| title::first_heading(self.body));
        let title = title.unwrap_or_else(|| title::one_line(stem(path)));
        let tags = self.tags(warnings).unwrap_or_else(|| folders.iter().map(|&name| name.into()).collect());

        let mut fields = Map::new();
        fields.insert("slug".to_owned(), slug.into());
        fields.insert("title".to_owned(), title.into());
        fields.insert("body".to_owned(), self.body.into());
        fields.insert("tags".to_owned(), tags.into());
        fields.insert("path".to_owned(), path.into());
        fields.insert("folder".to_owned(), folders.first().copied().unwrap_or(".").into());
        fields.extend(self.optional_fields(warnings));
        if !self.front.values.is_empty() {
            fields.insert(FRONT_MATTER.to_owned(), Value::Object(self.front.values));
        }
        fields
    }

    /// Returns the fields that an article has only if its front matter has values for these fields.
    fn optional_fields(&self, warnings: &mut Vec<Warning>) -> Map<String, Value> {
        let fields = [
            ("description", self.description(warnings)),
            ("date", self.date(&DATE, warnings)),
            ("updated", self.date(&UPDATED, warnings)),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect()
    }

    fn title(&self, warnings: &mut Vec<Warning>) -> Option<String> {
        let value = self.front.get("title")?;
        let title = scalar_text(value);
        if title.is_none() && (value.is_array() || value.is_object()) {
            self.warn("title", "it is a list or a mapping; the title is the first heading or the file name", warnings);
        }
        let title = title?;
        if title.chars().count() > title::MAX_TITLE {
            self.warn("title", &format!("it is cut after {} characters", title::MAX_TITLE), warnings);
        }
        Some(title::one_line(&title)).filter(|title| !title.is_empty())
    }

    fn description(&self, warnings: &mut Vec<Warning>) -> Option<String> {
        let (name, text) = DESCRIPTION.iter().find_map(|&name| Some((name, scalar_text(self.front.get(name)?)?)))?;
        if text.chars().count() > MAX_DESCRIPTION {
            let reason = format!("the field `description` is cut after {MAX_DESCRIPTION} characters");
            self.warn(name, &reason, warnings);
            return Some(text.chars().take(MAX_DESCRIPTION).collect());
        }
        Some(text)
    }

    /// Returns the date under the first of `names` that has a value. A value that is not a date is kept only in the
    /// field `front_matter`.
    fn date(&self, names: &[&str], warnings: &mut Vec<Warning>) -> Option<String> {
        let (name, text) = names.iter().find_map(|&name| Some((name, scalar_text(self.front.get(name)?)?)))?;
        let date = date::rfc3339(&text);
        if date.is_none() {
            self.warn(name, "it is not a date, so it is kept only in `front_matter`", warnings);
        }
        date
    }

    /// Returns the tags in the front matter, which are a list or a text. Splits a text at its commas. Splits a text
    /// without commas at white space if the name of the field is plural, as in Jekyll and Obsidian. Repeated tags count
    /// once.
    fn tags(&self, warnings: &mut Vec<Warning>) -> Option<Vec<Value>> {
        let (name, value) = TAGS.iter().find_map(|&name| Some((name, self.front.get(name)?)))?;
        let listed: Vec<String> = match value {
            Value::Array(tags) => tags.iter().filter_map(tag_text).collect(),
            Value::String(tags) if name.ends_with('s') && !tags.contains(',') => {
                tags.split_whitespace().map(str::to_owned).collect()
            }
            Value::String(tags) => tags.split(',').map(str::to_owned).collect(),
            single => tag_text(single).into_iter().collect(),
        };
        let mut tags: Vec<Value> = Vec::new();
        for tag in &listed {
            // Removes a leading `#`: tags in the front matter of Obsidian may have the `#` that marks a tag in a text.
            let tag = tag.trim();
            let tag = tag.strip_prefix('#').unwrap_or(tag);
            if tag.is_empty() || tags.iter().any(|other| other == tag) {
                continue;
            }
            if tags.len() == MAX_TAGS || tag.chars().count() > MAX_TAG {
                let limits = format!("{MAX_TAGS} tags of {MAX_TAG} characters each");
                self.warn(name, &format!("an article has at most {limits}; the remaining tags are left out"), warnings);
                break;
            }
            tags.push(tag.into());
        }
        Some(tags)
    }

    fn warn(&self, name: &str, reason: &str, warnings: &mut Vec<Warning>) {
        warnings
            .push(Warning { line: self.front.line(name), reason: format!("`{name}` in the front matter: {reason}") });
    }
}

/// Returns the names of the fields that exist only because of the front matter in `fields`: `front_matter` and the
/// optional fields for which the front matter has a valid value. Returns no names if `fields` contains no front matter.
/// An optional field that is not returned may have been set by a person.
pub fn names_of_front_matter(fields: &Map<String, Value>) -> Vec<String> {
    let Some(Value::Object(values)) = fields.get(FRONT_MATTER) else { return Vec::new() };
    let document = Document { front: FrontMatter::of_values(values.clone()), body: "" };
    let optional = document.optional_fields(&mut Vec::new());
    optional.into_iter().map(|(name, _)| name).chain([FRONT_MATTER.to_owned()]).collect()
}

/// Returns whether front matter states that the article is published: `draft: false` in Hugo, Zola, Astro and
/// Docusaurus, `published: true` in Jekyll, or `publish: true` in Obsidian. Returns `None` if none of these fields is
/// true or false.
pub fn is_published(front: &Map<String, Value>) -> Option<bool> {
    let flag = |name: &str| match front.get(name)? {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => text.trim().to_ascii_lowercase().parse().ok(),
        _ => None,
    };
    let said = [flag("draft").map(|is_draft| !is_draft), flag("published"), flag("publish")];
    // If several of these fields are present, the article is published only if all present fields state so.
    said.into_iter().flatten().reduce(|all, one| all && one)
}

/// Returns a scalar as text. Returns `None` for null, lists, mappings and blank text.
fn scalar_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// Returns the text of a tag. In Docusaurus, a tag may be an object with a label.
fn tag_text(tag: &Value) -> Option<String> {
    scalar_text(tag.get("label").unwrap_or(tag))
}

fn stem(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(path: &str, text: &str, warnings: &mut Vec<Warning>) -> Value {
        Value::Object(Document::read(text, warnings).into_fields(path, "slug", warnings))
    }

    fn fields_of(path: &str, text: &str) -> Value {
        fields(path, text, &mut Vec::new())
    }

    /// Returns the fields, and the lines of the warnings.
    fn with_lines(text: &str) -> (Value, Vec<usize>) {
        let mut warnings = Vec::new();
        let fields = fields("a.md", text, &mut warnings);
        (fields, warnings.iter().map(|warning| warning.line).collect())
    }

    #[test]
    fn the_front_matter_field_contains_every_entry_of_the_front_matter() {
        let text = "---\ntitle: A title\ntags: [one, 2]\nstatus: 1\npublished_at: 2024-02-25 00:00\n\
                    published_version: v2\nweight: 3\ndate: 2024-01-02\nlastmod: 2024-03-04 05:06:07 +0100\n\
                    description: What it is\na.b: x\n$odd: y\nslug: other\npath: /x\nfolder: y\naliases: [/old]\n\
                    menu:\n  main: {weight: 1}\n---\n\n# Heading\n\nBody.\n";
        let expected = json!({
            "slug": "slug", "title": "A title", "body": "# Heading\n\nBody.\n", "tags": ["one", "2"],
            "path": "docs/guide/a.md", "folder": "docs", "description": "What it is",
            "date": "2024-01-02T00:00:00.000Z", "updated": "2024-03-04T04:06:07.000Z",
            "front_matter": {
                "title": "A title", "tags": ["one", 2], "status": 1, "published_at": "2024-02-25 00:00",
                "published_version": "v2", "weight": 3, "date": "2024-01-02", "lastmod": "2024-03-04 05:06:07 +0100",
                "description": "What it is", "a.b": "x", "$odd": "y", "slug": "other", "path": "/x", "folder": "y",
                "aliases": ["/old"], "menu": {"main": {"weight": 1}},
            },
        });
        assert_eq!(fields_of("docs/guide/a.md", text), expected);
    }

    #[test]
    fn the_title_defaults_to_the_heading_and_the_tags_default_to_the_folders() {
        let expected = json!({
            "slug": "slug", "title": "The code way", "body": "text\n\n#\n\nThe `code`\nway\n===\n",
            "tags": ["docs", "guide"], "path": "docs/guide/a.md", "folder": "docs",
        });
        assert_eq!(fields_of("docs/guide/a.md", "text\n\n#\n\nThe `code`\nway\n===\n"), expected);
        let root = fields_of("CHANGES.md", "no heading");
        assert_eq!((&root["title"], &root["tags"], &root["folder"]), (&json!("CHANGES"), &json!([]), &json!(".")));
    }

    #[test]
    fn the_usual_forms_of_tags_in_yaml_front_matter_are_read() {
        for (front, tags) in [
            ("tags: one, two ,", json!(["one", "two"])),
            ("tags: one two", json!(["one", "two"])),
            ("tags: one two, three", json!(["one two", "three"])),
            ("categories: jekyll update", json!(["jekyll", "update"])),
            ("category: event sourcing", json!(["event sourcing"])),
            ("tags: [a, '#b', a, '', null]", json!(["a", "b"])),
            ("Tags: [a]", json!(["a"])),
            ("tag: a", json!(["a"])),
            ("tags: 2024", json!(["2024"])),
            ("tags: [{label: A, permalink: /a}]", json!(["A"])),
            ("categories: [a]\ntags: []", json!([])),
            ("categories: [a]", json!(["a"])),
            ("taxonomies:\n  tags: [a]\n  categories: [b]", json!(["a"])),
            ("keywords: [a]", json!(["docs"])),
            ("tags:", json!(["docs"])),
        ] {
            assert_eq!(fields_of("docs/a.md", &format!("---\n{front}\n---\n"))["tags"], tags, "{front}");
        }
    }

    #[test]
    fn values_that_do_not_fit_a_field_are_reported() {
        let many = (0..500).map(|tag| tag.to_string()).collect::<Vec<_>>().join(", ");
        let (fields, lines) = with_lines(&format!("---\ntitle: [WIP]\ndate: soon\ntags: {many}\n---\n# Heading\n"));
        assert_eq!((&fields["title"], lines), (&json!("Heading"), vec![2, 4, 3]));
        assert_eq!((fields.get("date"), &fields["front_matter"]["date"]), (None, &json!("soon")));
        assert_eq!(fields["tags"].as_array().map(Vec::len), Some(MAX_TAGS));
        let long = "x".repeat(300_000);
        let (fields, lines) = with_lines(&format!("---\ntitle: {long}\ndescription: y\n---\n"));
        assert_eq!((fields["title"].as_str().map(str::len), lines), (Some(title::MAX_TITLE), vec![2, 2]));
        assert_eq!((&fields["front_matter"]["title"], &fields["description"]), (&json!(long), &json!("y")));
    }

    #[test]
    fn front_matter_sets_the_slug_and_whether_the_article_is_published() {
        for (front, slug, is_published) in [
            ("slug: my-post\ndraft: false", Some("my-post"), Some(true)),
            ("slug: /Some Page/\ndraft: true", Some("some-page"), Some(false)),
            ("slug: 2024\npublished: true", Some("2024"), Some(true)),
            ("slug: [a]\npublish: 'True'", None, Some(true)),
            ("published: true\ndraft: true", None, Some(false)),
            ("status: published\npublished_version: 1", None, None),
        ] {
            let text = format!("---\n{front}\n---\n");
            let document = Document::read(&text, &mut Vec::new());
            assert_eq!(document.slug().as_deref(), slug, "{front}");
            assert_eq!(super::is_published(&document.front.values), is_published, "{front}");
        }
    }

    #[test]
    fn statements_of_mdx_stay_in_the_body() {
        let text = "---\ntitle: T\n---\nimport Tabs from '@theme/Tabs';\nexport const x = 1;\n\n<Tabs/>\n";
        assert!(fields_of("a.mdx", text)["body"].as_str().is_some_and(|body| body.starts_with("import Tabs")));
    }
}
