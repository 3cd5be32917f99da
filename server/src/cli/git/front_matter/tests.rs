//! Tests front matter as site generators and people write it, and malicious front matter.

use serde_json::json;

use super::*;

/// Returns the values, the body, and the lines of the warnings.
fn split(text: &str) -> (Value, &str, Vec<usize>) {
    let mut warnings = Vec::new();
    let (front, body) = FrontMatter::split(text, &mut warnings);
    (Value::Object(front.values), body, warnings.iter().map(|warning| warning.line).collect())
}

fn yaml(front: &str) -> Value {
    let text = format!("---\n{front}\n---\n");
    let (values, body, lines) = split(&text);
    assert!(body.is_empty() && lines.is_empty(), "{front}: {lines:?}");
    values
}

#[test]
fn toml_front_matter_of_hugo_is_read() {
    let text = "+++\ntitle = 'Notes, \"quoted\"'\ndate = 2024-02-25T09:05:06+01:00\ndraft = false\nweight = 1_000\n\
                ratio = 1.5\nday = 2024-02-25\nmask = 0xff\nnone = nan\ntags = [\n  'a',\n  'b', # last\n]\n\
                aliases = ['/old/']\n[menu.main]\nparent = 'docs'\n[[resources]]\nsrc = 'a.png'\n\
                [[resources]]\nsrc = 'b.png'\n+++\n\nBody\n";
    let expected = json!({
        "title": "Notes, \"quoted\"", "date": "2024-02-25T09:05:06+01:00", "draft": false, "weight": 1000,
        "ratio": 1.5, "day": "2024-02-25", "mask": 255, "none": "nan", "tags": ["a", "b"], "aliases": ["/old/"],
        "menu": {"main": {"parent": "docs"}}, "resources": [{"src": "a.png"}, {"src": "b.png"}],
    });
    assert_eq!(split(text), (expected, "Body\n", vec![]));
}

#[test]
fn toml_front_matter_of_zola_with_taxonomies_is_read() {
    let text = "+++\ntitle = \"T\"\nslug = \"t\"\n\n[taxonomies]\ntags = [\"rust\"]\n\n[extra]\ntoc = true\n+++\nBody";
    let (values, body, lines) = split(text);
    let expected = json!({"title": "T", "slug": "t", "taxonomies": {"tags": ["rust"]}, "extra": {"toc": true}});
    assert_eq!((values, body, lines.len()), (expected, "Body", 0));
}

#[test]
fn yaml_front_matter_of_jekyll_is_read() {
    let front = "layout: post\ntitle:  \"Welcome to Jekyll!\"\ndate:   2024-02-25 09:05:06 +0100\n\
                 categories: jekyll update\npermalink: /:categories/:title\npublished: true\n\
                 # a comment\nauthor:\n  name: A\n  links:\n  - url: https://example.org/a#b";
    let expected = json!({
        "layout": "post", "title": "Welcome to Jekyll!", "date": "2024-02-25 09:05:06 +0100",
        "categories": "jekyll update", "permalink": "/:categories/:title", "published": true,
        "author": {"name": "A", "links": [{"url": "https://example.org/a#b"}]},
    });
    assert_eq!(yaml(front), expected);
}

#[test]
fn front_matter_of_docusaurus_obsidian_and_astro_is_read() {
    let docusaurus = "id: intro\nsidebar_position: 2\nslug: /\ntags: [a, {label: B, permalink: /b}]\n\
                      last_update:\n  date: 2024-01-02\n  author: A";
    let expected = json!({
        "id": "intro", "sidebar_position": 2, "slug": "/", "tags": ["a", {"label": "B", "permalink": "/b"}],
        "last_update": {"date": "2024-01-02", "author": "A"},
    });
    assert_eq!(yaml(docusaurus), expected);
    let obsidian = "aliases:\n- Another name\n- \"[[Link]]\"\ntags:\n- a/b\ncssclasses:\nrelated: \"[[Note]]\"";
    let expected = json!({
        "aliases": ["Another name", "[[Link]]"], "tags": ["a/b"], "cssclasses": null, "related": "[[Note]]",
    });
    assert_eq!(yaml(obsidian), expected);
    let astro = "pubDate: 'Jul 08 2022'\nheroImage: ../a.jpg\ndescription: >-\n  One line\n  folded\nlit: |\n  a\n  b";
    let expected = json!({
        "pubDate": "Jul 08 2022", "heroImage": "../a.jpg", "description": "One line folded", "lit": "a\nb\n",
    });
    assert_eq!(yaml(astro), expected);
}

#[test]
fn yaml_is_read_as_version_1_2_and_values_keep_their_written_form() {
    let front = "a: Y\nb: no\nc: 0123\nd: 2024-01-02\ne: 1.10\nf: 0x1F\ng: 123456789012345678901234567890\nh: 12:30\n\
                 i: true\nj: ~\nk: -3\nl: 1.5\nm: 1e3\nn: \"5\"\no: !!str 5\np: .inf\nq: +1\n1: x\ntrue: y\n\
                 z: 18446744073709551615";
    let expected = json!({
        "a": "Y", "b": "no", "c": "0123", "d": "2024-01-02", "e": "1.10", "f": "0x1F",
        "g": "123456789012345678901234567890", "h": "12:30", "i": true, "j": null, "k": -3, "l": 1.5, "m": "1e3",
        "n": "5", "o": "5", "p": ".inf", "q": "+1", "1": "x", "true": "y", "z": "18446744073709551615",
    });
    assert_eq!(yaml(front), expected);
    assert_eq!(yaml("a: &x [1, {b: c}]\nd: *x\n<<: *x")["d"], json!([1, {"b": "c"}]));
}

#[test]
fn json_front_matter_is_read_in_each_form() {
    let object = "{\n  \"title\": \"T\",\n  \"n\": 1.50,\n  \"m\": 0.12345678901234567890,\n  \
                  \"id\": 123456789012345678901,\n  \"a.b\": [null, {}]\n}";
    let expected = json!({
        "title": "T", "n": 1.5, "m": "0.12345678901234567890", "id": "123456789012345678901", "a.b": [null, {}],
    });
    for text in [
        format!("{object}\n\nBody"),
        format!("---json\n{object}\n---\nBody"),
        format!(";;;\n{object}\n;;;\nBody"),
        format!(";;;\n{}\n;;;\nBody", &object[1..object.len() - 1]),
    ] {
        assert_eq!(split(&text), (expected.clone(), "Body", vec![]), "{text}");
    }
    assert_eq!(split("{\n\"a\": 1,\n\"a\": 2\n}\nBody"), (json!({"a": 1}), "Body", vec![3]));
}

#[test]
fn the_opening_line_determines_the_format_of_front_matter() {
    for text in
        ["---toml\na = 1\n---\nx", "--- TOML\r\na = 1\r\n---\r\nx", "---yaml\na: 1\n---\nx", "---\na: 1\n...\nx"]
    {
        assert_eq!(split(text), (json!({"a": 1}), "x", vec![]), "{text}");
    }
    assert_eq!(split("\u{feff}---\r\ntitle: t\r\n---\r\nx\r\n"), (json!({"title": "t"}), "x\r\n", vec![]));
    assert_eq!(split("---\n---\nx"), (json!({}), "x", vec![]));
    assert_eq!(split("---\n# only a comment\n---\nx"), (json!({}), "x", vec![]));
}

#[test]
fn text_that_only_resembles_front_matter_stays_in_the_body() {
    for text in [
        "---\n\nA rule above.\n\n---\nmore",
        "---\nNot closed.\n",
        "--- \r\n",
        "----\na: b\n----\n",
        "---\n- a\n- b\n---\nx",
        "---\nMind the gap: here\n  and: there: no\n---\n",
        "{% include a.html %}\n",
        "{{< shortcode >}}\n",
        "{ .class }\n",
        "{\"a\": 1} is JSON\n",
        "++++\n",
        "",
    ] {
        assert_eq!(split(text), (json!({}), text, vec![]), "{text}");
    }
}

#[test]
fn front_matter_that_stays_in_the_body_is_reported() {
    for (text, line) in [
        ("+++\na = 1\n", 1),
        ("---\ntitle: never closed\n", 1),
        ("---toml\na = 1\n", 1),
        ("---js\n{a: 1}\n---\n", 1),
        ("---yaml\njust text\n---\n", 2),
        ("{\n  \"a\": 1,\n  b\n}\n", 3),
        (";;;\n\"a\": oops\n;;;\n", 2),
    ] {
        assert_eq!(split(text), (json!({}), text, vec![line]), "{text}");
    }
}

#[test]
fn invalid_lines_of_yaml_are_kept_as_text_or_left_out_with_a_warning() {
    let text = "---\ntitle: One: two\ntags:\n- a\n- b\nstatus: draft\nnonsense\nopen: [\nstatus: twice\n\
                said: \"He said \"yes\"\"\nlist: [\n  a,\n]\nat: @me\nliquid: {{ page.title }}\n\ttabbed: 1\n---\nBody\n";
    let (values, body, lines) = split(text);
    assert_eq!(
        (&values["title"], &values["tags"], &values["status"]),
        (&json!("One: two"), &json!(["a", "b"]), &json!("draft"))
    );
    assert_eq!((&values["open"], &values["said"]), (&json!("["), &json!("He said \"yes\"")));
    assert_eq!((&values["list"], &values["at"]), (&json!(["a"]), &json!("@me")));
    assert_eq!(values["liquid"], json!("{{ page.title }}\n\ttabbed: 1"));
    assert_eq!((body, lines), ("Body\n", vec![2, 7, 8, 10, 14, 15, 9]));
}

#[test]
fn duplicate_names_and_yaml_tags_are_reported() {
    assert_eq!(split("---\na: 1\na: 2\nb: {c: 1, c: 2}\n---\n"), (json!({"a": 1, "b": {"c": 1}}), "", vec![3, 4]));
    assert_eq!(split("---\na: !mine 1\n---\n"), (json!({"a": 1}), "", vec![2]));
    assert_eq!(split("+++\na = 1\na = 2\nb = 3\n+++\n"), (json!({"a": 1, "b": 3}), "", vec![3]));
}

#[test]
fn invalid_statements_of_toml_are_kept_as_text() {
    let text = "+++\ntitle = Unquoted title\ndate = 2024-02-25\n[extra]\nx = 1\ny = yes\n+++\nBody\n";
    let (values, body, lines) = split(text);
    let expected = json!({
        "date": "2024-02-25", "extra": {"x": 1}, "title": "Unquoted title", "extra.y": "yes",
    });
    assert_eq!((values, body, lines), (expected, "Body\n", vec![2, 6]));
}

#[test]
fn yaml_aliases_cannot_multiply_values() {
    let mut bomb = "---\ntitle: T\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    bomb.push_str("---\nBody\n");
    let (values, body, lines) = split(&bomb);
    assert_eq!((&values["title"], body), (&json!("T"), "Body\n"));
    assert!(values.to_string().len() < 100_000 && !lines.is_empty());

    let mut chain = "---\na0: &a0 [x]\n".to_owned();
    (1..2_000).for_each(|level| chain.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1)));
    assert_eq!(split(&format!("{chain}---\nBody")).1, "Body");
    assert_eq!(split("---\na: &a [*a]\n---\nBody").0, json!({"a": "&a [*a]"}));
}

#[test]
fn unusual_front_matter_is_separated_from_the_body() {
    let depth = 100_000;
    for (text, is_split) in [
        (format!("---\ntitle: T\na: {}\n---\nBody", "[".repeat(depth)), true),
        (format!("---\ntitle: T\na: {}{}\n---\nBody", "{a: ".repeat(depth), "}".repeat(depth)), true),
        (format!("---\ntitle: T\na:\n{}\n---\nBody", "- ".repeat(depth)), true),
        (format!("+++\ntitle = 'T'\na = {}{}\n+++\nBody", "[".repeat(depth), "]".repeat(depth)), true),
        (format!("+++\ntitle = 'T'\na{} = 1\n+++\nBody", ".a".repeat(depth)), true),
        (format!("+++\ntitle = 'T'\na = {{ a{} = 1 }}\n+++\nBody", ".a".repeat(depth)), true),
        (format!("+++\ntitle = 'T'\n[a{}]\nb = 1\n+++\nBody", ".a".repeat(depth)), true),
        (format!("{{\"title\": \"T\", \"a\": {}{}}}\nBody", "[".repeat(1_000), "]".repeat(1_000)), true),
        (format!("---\ntitle: T\na: {}\n---\nBody", "x".repeat(500_000)), true),
        (format!("---\n{}\ntitle: T\n---\nBody", "x: [\n".repeat(50_000)), false),
        (format!("---\ntitle: T\n{}---\nBody", "# c\n".repeat(50_000)), true),
        ("---\ntitle: T\nbell: \u{7}\u{1b}[31m\n---\nBody".to_owned(), true),
        ("---\ntitle: T\nnul: \"\\0\"\n---\nBody".to_owned(), true),
    ] {
        let (values, body, lines) = split(&text);
        assert!(body == "Body", "{:.60}: the body has {} bytes", text, body.len());
        assert!(!is_split || values["title"] == "T", "{:.60}: {lines:?}", text);
        assert!(lines.len() <= MAX_WARNINGS, "{:.60}", text);
    }
}
