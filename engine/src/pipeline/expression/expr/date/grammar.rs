//! The grammar of dates, times and zones in strings without a given format. The rules are those of timelib, the library
//! that PHP and MongoDB use.
//!
//! At each position the longest match applies. Among matches of equal length, the first rule in the list applies.

use std::sync::LazyLock;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::pool::Pool;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};

/// A part of a date that a rule recognizes. A rule lists its parts in the order of the string. The last parts may be
/// missing, and so may the second before a meridian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatePart {
    /// A year of four digits with an optional sign.
    Year,
    /// A year of up to four digits. One or two digits denote a year between 1970 and 2069.
    ShortYear,
    Month,
    /// A month as a full name, a short name, or a Roman numeral.
    MonthName,
    Day,
    Hour,
    Minute,
    Second,
    Fraction,
    /// The suffix `am` or `pm`.
    Meridian,
    Zone,
}

/// The meaning of a piece of text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Meaning {
    Nothing,
    Parts(&'static [DatePart]),
    /// Four digits: a time, or a year if the time is already known.
    Digits,
    /// A year alone.
    Year,
    /// A month alone.
    Month,
    Zone,
    /// Midnight, after adding this number of days to the date.
    Midnight(i64),
    Noon,
    Now,
    Weekday,
    IsoWeek,
    DayOfYear,
    Timestamp,
    FirstOrLastDayOf,
    WeekdayOf,
    BackOf,
    FrontOf,
    /// A number and a unit.
    Amount,
    /// A word such as `next`, and a unit.
    Word,
    WordWeek,
    Ago,
}

use DatePart::{Day, Fraction, Hour, Meridian, Minute, Month, MonthName, Second, ShortYear, Year, Zone};

/// The named fragments of the grammar's rules. A fragment may refer to the fragments that are listed before it.
const PIECES: &[(&str, &str)] = &[
    ("hour", r"[01]?[0-9]|2[0-4]"),
    ("hour2", r"[01][0-9]|2[0-4]"),
    ("hour12", r"0?[1-9]|1[0-2]"),
    ("minute", r"[0-5]?[0-9]"),
    ("minute2", r"[0-5][0-9]"),
    ("second", r"{minute}|60"),
    ("second2", r"{minute2}|60"),
    ("space", r"[ \t]+"),
    ("fraction", r"\.[0-9]+"),
    ("meridian", r"[AaPp]\.?[Mm]\.?[\x00\t ]"),
    ("name", r"\(?[A-Za-z]{1,6}\)?|[A-Z][a-z]+(?:[_/-][A-Za-z]+)+"),
    ("offset", r"(?:GMT)?[+-]{hour}:?{minute}?"),
    ("suffix", r"st|nd|rd|th"),
    ("month", r"0?[0-9]|1[0-2]"),
    ("month2", r"0[0-9]|1[0-2]"),
    ("day", r"(?:[0-2]?[0-9]|3[01]){suffix}?"),
    ("day2", r"0[0-9]|[1-2][0-9]|3[01]"),
    ("year", r"[0-9]{1,4}"),
    ("year4", r"[0-9]{4}"),
    ("yearday", r"00[1-9]|0[1-9][0-9]|[1-2][0-9][0-9]|3[0-5][0-9]|36[0-6]"),
    ("week", r"0[1-9]|[1-4][0-9]|5[0-3]"),
    ("dayname", r"(?i:(?:sun|mon|tues|wednes|thurs|fri|satur)day|sun|mon|tue|wed|thu|fri|sat)"),
    ("monthfull", r"(?i:january|february|march|april|may|june|july|august|september|october|november|december)"),
    ("monthabbr", r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)"),
    ("monthname", r"{monthfull}|{monthabbr}|I|II|III|IV|V|VI|VII|VIII|IX|X|XI|XII"),
    ("time12", r"{hour12}[:.]{minute2}{space}?{meridian}"),
    ("long12", r"{hour12}[:.]{minute}[:.]{second2}{space}?{meridian}"),
    ("time24", r"[tT]?{hour}[:.]{minute}"),
    ("long24", r"[tT]?{hour}[:.]{minute}[:.]{second}"),
    ("zoned24", r"[tT]?{hour}[:.]{minute}[:.]{second2}{space}?(?:{offset}|{name})"),
    ("monthday", r"{monthname}[ .\t-]*{day}(?:[,.stndrh\t ]+|\x00)"),
    ("ordinal", r"(?i:first|second|third|fourth|fifth|sixth|seventh|eighth?|ninth|tenth|eleventh|twelfth)"),
    ("which", r"(?i:next|last|previous|this)"),
    (
        "unit",
        concat!(
            r"(?i:ms|\xC2\xB5s|(?:msec|millisecond|\xC2\xB5sec|microsecond|usec|sec|second|min|minute|hour|day",
            r"|fortnight|forthnight|month|year)s?|weeks)|{dayname}"
        ),
    ),
];

/// The rules, each with the meaning of the string that it matches.
const RULES: &[(&str, Meaning)] = &[
    (r"(?i:yesterday)", Meaning::Midnight(-1)),
    (r"(?i:now)", Meaning::Now),
    (r"(?i:noon)", Meaning::Noon),
    (r"(?i:midnight|today)", Meaning::Midnight(0)),
    (r"(?i:tomorrow)", Meaning::Midnight(1)),
    (r"@-?[0-9]+(?:\.[0-9]{0,6})?", Meaning::Timestamp),
    (r"(?i:(?:first|last) day of)", Meaning::FirstOrLastDayOf),
    (r"(?i:back of ){hour}(?:{space}?{meridian})?", Meaning::BackOf),
    (r"(?i:front of ){hour}(?:{space}?{meridian})?", Meaning::FrontOf),
    (r"(?:{ordinal}|{which}){space}{dayname}{space}(?i:of)", Meaning::WeekdayOf),
    (r"{hour12}{space}?{meridian}", Meaning::Parts(&[Hour, Meridian])),
    (r"{time12}|{long12}", Meaning::Parts(&[Hour, Minute, Second, Meridian])),
    (r"{hour12}:{minute2}:{second2}[:.][0-9]+{meridian}", Meaning::Parts(&[Hour, Minute, Second, Fraction, Meridian])),
    (r"[tT]{hour}|{time24}|{long24}|{long24}{fraction}", Meaning::Parts(&[Hour, Minute, Second, Fraction, Zone])),
    (r"[tT]?{hour2}{minute2}", Meaning::Digits),
    (r"[tT]?{hour2}{minute2}{second2}", Meaning::Parts(&[Hour, Minute, Second])),
    (r"{month}/{day}(?:/{year})?", Meaning::Parts(&[Month, Day, ShortYear])),
    (
        r"[+-]?{year4}-{month2}-{day2}|{year4}/{month2}/{day2}/?|{year4}/{month}/{day}",
        Meaning::Parts(&[Year, Month, Day]),
    ),
    (r"[0-9]{2}-{month2}-{day2}", Meaning::Parts(&[ShortYear, Month, Day])),
    (r"{year4}-{month}", Meaning::Parts(&[Year, Month])),
    (r"{year}-{month}-{day}", Meaning::Parts(&[ShortYear, Month, Day])),
    (r"{day}[ \t.-]*{monthname}[ \t.-]*{year}", Meaning::Parts(&[Day, MonthName, ShortYear])),
    (r"{day}[.\t-]{month}[.-]{year4}", Meaning::Parts(&[Day, Month, Year])),
    (r"{day}[.\t]{month}\.[0-9]{2}", Meaning::Parts(&[Day, Month, ShortYear])),
    (r"{monthname}[ .\t-]*{year4}", Meaning::Parts(&[MonthName, Year])),
    (r"{year4}[ .\t-]*{monthname}", Meaning::Parts(&[Year, MonthName])),
    (r"{monthname}[ .\t-]*{day}[,.stndrh\t ]+{year}|{monthday}", Meaning::Parts(&[MonthName, Day, ShortYear])),
    (r"{day}[ .\t-]*{monthname}", Meaning::Parts(&[Day, MonthName])),
    (r"{year4}{month2}{day2}", Meaning::Parts(&[Year, Month, Day])),
    (
        concat!(
            r"{year4}{month2}{day2}(?:T{hour}:{minute2}:{second2}|[tT]{hour}{minute2}{second2})",
            r"|{year4}-{month2}-{day2}T{hour2}:{minute2}:{second2}{fraction}{offset}?",
            r"|{year4}-{month}-{day}T{hour}:{minute}:{second}",
            r"|{year4}:{month2}:{day2} {hour2}:{minute2}:{second2}"
        ),
        Meaning::Parts(&[Year, Month, Day, Hour, Minute, Second, Fraction, Zone]),
    ),
    (r"{year4}\.?{yearday}", Meaning::DayOfYear),
    (r"{year4}-?W{week}(?:-?[0-7])?", Meaning::IsoWeek),
    (r"{monthabbr}-{day2}-{year}", Meaning::Parts(&[MonthName, Day, ShortYear])),
    (r"{year}-{monthabbr}-{day2}", Meaning::Parts(&[ShortYear, MonthName, Day])),
    (
        r"{day}/{monthabbr}/{year4}:{hour2}:{minute2}:{second2}{space}{offset}",
        Meaning::Parts(&[Day, MonthName, Year, Hour, Minute, Second, Zone]),
    ),
    (r"{year4}", Meaning::Year),
    (r"(?i:ago)", Meaning::Ago),
    (r"{dayname}", Meaning::Weekday),
    (r"{which}{space}(?i:week)", Meaning::WordWeek),
    (r"(?:{ordinal}|{which}){space}(?:{unit})", Meaning::Word),
    (r"{monthfull}|{monthabbr}", Meaning::Month),
    (r"{offset}|{name}", Meaning::Zone),
    (r"{monthday}(?:{time12}|{long12})", Meaning::Parts(&[MonthName, Day, Hour, Minute, Second, Meridian])),
    (r"{monthday}(?:{time24}|{long24}|{zoned24})", Meaning::Parts(&[MonthName, Day, Hour, Minute, Second, Zone])),
    (r"[+-]*[ \t]*[0-9]{1,13}{space}?(?:{unit}|(?i:week))", Meaning::Amount),
    (r"[ .,\t\n\x00]", Meaning::Nothing),
];

/// All rules, compiled into one automaton.
struct Grammar {
    dfa: DFA,
    caches: Pool<Cache, Box<dyn Fn() -> Cache + Send + Sync>>,
}

static GRAMMAR: LazyLock<Option<Grammar>> = LazyLock::new(|| {
    let patterns: Vec<String> = RULES.iter().map(|(rule, _)| written_out(rule)).collect();
    let dfa = DFA::builder()
        .configure(DFA::config().match_kind(MatchKind::All))
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .thompson(regex_automata::nfa::thompson::Config::new().utf8(false))
        .build_many(&patterns)
        .ok()?;
    let of = dfa.clone();
    Some(Grammar { dfa, caches: Pool::new(Box::new(move || of.create_cache())) })
});

/// Returns a rule with its fragments expanded.
fn written_out(rule: &str) -> String {
    let mut text = rule.to_owned();
    for (name, piece) in PIECES.iter().rev() {
        text = text.replace(&format!("{{{name}}}"), &format!("(?:{piece})"));
    }
    text
}

/// Returns the meaning and the end of the longest match that begins at an offset, or `None` if no rule matches.
pub(super) fn next(text: &[u8], at: usize) -> Option<(Meaning, usize)> {
    let grammar = GRAMMAR.as_ref()?;
    let input = Input::new(text).range(at..).anchored(Anchored::Yes);
    let found = grammar.dfa.try_search_fwd(&mut grammar.caches.get(), &input).ok()??;
    Some((RULES.get(found.pattern().as_usize())?.1, found.offset()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_wins_among_the_longest_matches() {
        assert!(GRAMMAR.is_some(), "{:?}", RULES.iter().map(|(rule, _)| written_out(rule)).collect::<Vec<_>>());
        let ends = |text: &str| next(text.as_bytes(), 0).map(|(_, end)| end);
        for (text, end) in [
            ("2017", 4),
            ("2017-07-04 noon", 10),
            ("2017-07-04T11:56:02.813 GMT", 23),
            ("July 4th, 2017 11am", 14),
            ("Jan 1 10:00:00 2024", 14),
            ("11am\0", 5),
            ("T25:00", 2),
            ("+25:00", 3),
            ("America/New_York", 16),
        ] {
            assert_eq!(ends(text), Some(end), "{text}");
        }
        assert!(matches!(next(b"2017", 0), Some((Meaning::Digits, 4))));
        assert!(matches!(next(b"2561", 0), Some((Meaning::Year, 4))));
        assert!(next(b"@", 0).is_none() && next("é".as_bytes(), 0).is_none());
    }
}
