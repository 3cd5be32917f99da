//! Patterns as MongoDB's PCRE reads them, written for the engines that run them here.

/// A pattern for the engines.
pub struct Translated {
    pub pattern: String,
    /// It means something else to the engine that does not backtrack.
    pub backtracks: bool,
}

/// The pattern with `\d`, `\w` and `\s` over ASCII alone, unless `(*UCP)` asks for Unicode, and with brackets and
/// hyphens inside a class taken for themselves.
pub fn translate(pattern: &str) -> Translated {
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
                let members = spaces(escaped).or_else(|| shorthand(escaped).filter(|_| !unicode));
                match (members, escaped) {
                    (Some((members, negated)), _) => push_class(&mut out, members, negated, in_class),
                    (None, 'Q') => push_literal(&mut out, &mut chars),
                    // To one of the engines these are the edges of a word.
                    (None, '<' | '>') => out.push(escaped),
                    (None, _) => out.extend([c, escaped]),
                }
            }
            '[' if !in_class => {
                in_class = true;
                out.push(c);
                out.extend(chars.next_if_eq(&'^'));
                // A bracket that comes first closes nothing.
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
                    // Repetition that gives nothing back.
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
    Translated { pattern: out, backtracks }
}

/// How many classes of Unicode a pattern names: each of them stands for hundreds of ranges.
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

/// Writes what stands up to `\E` as it stands.
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

/// The pattern without the verbs that choose an encoding, and whether they ask for Unicode classes.
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

/// The ASCII members of a class's short name, and whether it means all others.
fn shorthand(name: char) -> Option<(&'static str, bool)> {
    Some(match name {
        'd' => ("0-9", false),
        'D' => ("0-9", true),
        'w' => ("0-9A-Za-z_", false),
        'W' => ("0-9A-Za-z_", true),
        's' => ("\\t-\\r\\x20", false),
        'S' => ("\\t-\\r\\x20", true),
        _ => return None,
    })
}

/// The members of the classes of white space that go one way, with Unicode and without.
fn spaces(name: char) -> Option<(&'static str, bool)> {
    const HORIZONTAL: &str = r"\t\x20\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
    const VERTICAL: &str = r"\n-\r\x{85}\x{2028}\x{2029}";
    Some(match name {
        'h' => (HORIZONTAL, false),
        'H' => (HORIZONTAL, true),
        'v' => (VERTICAL, false),
        'V' => (VERTICAL, true),
        _ => return None,
    })
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
    fn classes_are_those_of_pcre() {
        assert_eq!(translate(r"^\d+[\w-]\D"), "^[0-9]+[0-9A-Za-z_-][^0-9]");
        assert_eq!(translate(r"(*UCP)\d"), r"\d");
        assert_eq!(translate("[]a[b]"), r"[\]a\[b]");
        assert_eq!(translate("[[:alpha:]]"), "[[:alpha:]]");
        assert_eq!(translate(r"a\\d"), r"a\\d");
    }
}
