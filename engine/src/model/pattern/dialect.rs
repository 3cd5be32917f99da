//! Translates patterns from MongoDB's PCRE syntax to the syntax of the engines.

/// A translated pattern.
pub struct TranslatedPattern {
    pub pattern: String,
    /// Whether the backtracking engine must run the pattern, because the pattern may contain a possessive quantifier.
    /// The linear engine would interpret such a quantifier differently.
    pub backtracks: bool,
}

/// Translates a pattern. `\d`, `\w` and `\s` match only ASCII, unless `(*UCP)` is one of the verbs at the start of the
/// pattern. Inside a class, the translation escapes brackets, `&`, `~` and repeated hyphens, so that the engines treat
/// these as literal characters. A named class such as `[:alpha:]` stays unchanged.
pub fn translate(pattern: &str) -> TranslatedPattern {
    let (pattern, unicode) = without_verbs(pattern);
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut backtracks = false;
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let Some(escaped) = chars.next() else {
                    out.push(c);
                    break;
                };
                let members = class_members(escaped, unicode);
                match (members, escaped) {
                    (Some((members, negated)), _) => push_class(&mut out, members, negated, in_class),
                    (None, 'Q') => push_literal(&mut out, &mut chars),
                    // PCRE treats `\<` and `\>` as literal characters, but both engines treat them as word boundaries.
                    (None, '<' | '>') => out.push(escaped),
                    (None, _) => out.extend([c, escaped]),
                }
            }
            '[' if !in_class => {
                in_class = true;
                out.push(c);
                out.extend(chars.next_if_eq(&'^'));
                // A closing bracket in the first position is a member of the class.
                if chars.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            '[' if chars.peek() == Some(&':') => {
                out.push(c);
                while let Some(named) = chars.next() {
                    out.push(named);
                    if named == ':' && chars.peek() == Some(&']') {
                        out.extend(chars.next());
                        break;
                    }
                }
            }
            '[' | '&' | '~' if in_class => out.extend(['\\', c]),
            '-' if in_class && chars.peek() == Some(&'-') => out.push_str("\\-"),
            '*' | '+' | '?' | '}' if !in_class => {
                out.push(c);
                if let Some(plus) = chars.next_if_eq(&'+') {
                    // A possessive quantifier, which the linear engine would read as a repeated repetition. The `+` in
                    // `\p{L}+` is not possessive, but gets here as well.
                    backtracks = true;
                    out.push(plus);
                }
            }
            ']' if in_class => {
                in_class = false;
                out.push(c);
            }
            other => out.push(other),
        }
    }
    TranslatedPattern { pattern: out, backtracks }
}

/// Returns the number of escapes in a pattern that may need a Unicode class: `\p`, `\w`, `\d`, `\s`, the word boundary
/// `\b`, and their negations. Most of these classes contain hundreds of character ranges.
pub fn unicode_classes(pattern: &str) -> usize {
    let mut chars = pattern.chars();
    let mut found = 0;
    while let Some(c) = chars.next() {
        if c == '\\' {
            found += usize::from(chars.next().is_some_and(|escaped| "pPwWdDsSbB".contains(escaped)));
        }
    }
    found
}

/// Reads the characters up to `\E` and appends them to `out` as literal text.
fn push_literal(out: &mut String, chars: &mut impl Iterator<Item = char>) {
    let mut literal = String::new();
    for c in chars {
        literal.push(c);
        if literal.ends_with("\\E") {
            literal.truncate(literal.len() - 2);
            break;
        }
    }
    out.push_str(&fancy_regex::escape(&literal));
}

/// Removes the verbs `(*UTF8)`, `(*UTF)` and `(*UCP)` at the start of a pattern. Other verbs stay in the pattern. Also
/// returns whether the verbs select Unicode classes.
fn without_verbs(mut pattern: &str) -> (&str, bool) {
    let mut unicode = false;
    while let Some((verb, rest)) =
        ["(*UTF8)", "(*UTF)", "(*UCP)"].iter().find_map(|verb| Some((*verb, pattern.strip_prefix(verb)?)))
    {
        unicode |= verb == "(*UCP)";
        pattern = rest;
    }
    (pattern, unicode)
}

/// Returns the members of an abbreviated class such as `\d`, and whether the class is negated. `\h` and `\v` are the
/// classes of horizontal and vertical white space. With `unicode`, returns `None` for `\d`, `\w` and `\s`, because the
/// engines know the Unicode members of these classes.
fn class_members(name: char, unicode: bool) -> Option<(&'static str, bool)> {
    let members = match name.to_ascii_lowercase() {
        'd' if !unicode => "0-9",
        'w' if !unicode => "0-9A-Za-z_",
        's' if !unicode => r"\t-\r\x20",
        'h' => r"\t\x20\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}",
        'v' => r"\n-\r\x{85}\x{2028}\x{2029}",
        _ => return None,
    };
    Some((members, name.is_ascii_uppercase()))
}

fn push_class(out: &mut String, members: &str, negated: bool, in_class: bool) {
    match (negated, in_class) {
        (false, true) => out.push_str(members),
        (false, false) => out.extend(["[", members, "]"]),
        (true, _) => out.extend(["[^", members, "]"]),
    }
}

#[cfg(test)]
mod tests {
    fn translate(pattern: &str) -> String {
        super::translate(pattern).pattern
    }

    #[test]
    fn character_classes_match_the_same_characters_as_in_pcre() {
        assert_eq!(translate(r"^\d+[\w-]\D"), "^[0-9]+[0-9A-Za-z_-][^0-9]");
        assert_eq!(translate(r"(*UCP)\d"), r"\d");
        assert_eq!(translate("[]a[b]"), r"[\]a\[b]");
        assert_eq!(translate("[[:alpha:]]"), "[[:alpha:]]");
        assert_eq!(translate(r"a\\d"), r"a\\d");
    }
}
