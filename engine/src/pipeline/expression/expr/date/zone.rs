//! Time zones in date strings: offsets, letters, and names that denote one offset.

/// The names of zones, each with its offset in seconds east of Greenwich. A name of daylight saving time denotes the
/// offset of that time.
///
/// If several zones share a name, the table contains the zone that MongoDB uses: `IST` is the zone of Israel, and `KST`
/// is the zone of Korea before 1961.
const NAMES: &[(&str, i32)] = &[
    ("ACDT", 37_800),
    ("ACST", 34_200),
    ("ADT", -10_800),
    ("AEDT", 39_600),
    ("AEST", 36_000),
    ("AKDT", -28_800),
    ("AKST", -32_400),
    ("AST", -14_400),
    ("AWDT", 32_400),
    ("AWST", 28_800),
    ("BST", 3_600),
    ("CAT", 7_200),
    ("CDT", -18_000),
    ("CEST", 7_200),
    ("CET", 3_600),
    ("CHST", 36_000),
    ("CST", -21_600),
    ("EAT", 10_800),
    ("EDT", -14_400),
    ("EEST", 10_800),
    ("EET", 7_200),
    ("EST", -18_000),
    ("GMT", 0),
    ("GST", 36_000),
    ("HDT", -34_200),
    ("HKST", 32_400),
    ("HKT", 28_800),
    ("HST", -36_000),
    ("IDT", 10_800),
    ("IST", 7_200),
    ("JDT", 36_000),
    ("JST", 32_400),
    ("KDT", 36_000),
    ("KST", 30_600),
    ("MDT", -21_600),
    ("MEST", 7_200),
    ("MET", 3_600),
    ("MSD", 14_400),
    ("MSK", 10_800),
    ("MST", -25_200),
    ("NDT", -9_052),
    ("NST", -12_600),
    ("NZDT", 46_800),
    ("NZST", 43_200),
    ("PDT", -25_200),
    ("PKST", 21_600),
    ("PKT", 18_000),
    ("PST", -28_800),
    ("SAST", 7_200),
    ("SST", -39_600),
    ("UCT", 0),
    ("UTC", 0),
    ("WAST", 7_200),
    ("WAT", 3_600),
    ("WEST", 3_600),
    ("WET", 0),
    ("WIB", 25_200),
    ("WIT", 32_400),
    ("WITA", 28_800),
];

/// A zone in a date string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Zone {
    /// Seconds east of Greenwich.
    Offset(i32),
    /// A name and its offset in seconds.
    Named(String, i32),
}

impl Zone {
    /// Returns the seconds east of Greenwich.
    pub fn seconds(&self) -> i32 {
        match self {
            Zone::Offset(seconds) | Zone::Named(_, seconds) => *seconds,
        }
    }

    /// Reads the zone at the front of a string. Returns the zone and the number of bytes read. If the name of the zone
    /// is unknown, the error is the number of bytes read.
    pub fn read(text: &[u8]) -> Result<(Zone, usize), usize> {
        let mut start = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'(')).count();
        if text[start..].starts_with(b"GMT") && matches!(text.get(start + 3), Some(b'+' | b'-')) {
            start += 3;
        }
        let rest = &text[start..];
        let closing = |end: usize| end + text[end..].iter().take_while(|byte| **byte == b')').count();
        if let Some(sign @ (b'+' | b'-')) = rest.first() {
            let len = rest[1..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b':').count();
            let seconds = correction(&rest[1..=len]);
            let seconds = if *sign == b'-' { -seconds } else { seconds };
            return Ok((Zone::Offset(seconds), closing(start + 1 + len)));
        }
        let len = rest.iter().take_while(|byte| !matches!(byte, b'\0' | b')' | b' ')).count();
        let name = String::from_utf8_lossy(&rest[..len]).into_owned();
        match named(&name) {
            Some(seconds) => Ok((Zone::Named(name, seconds), closing(start + len))),
            None => Err(closing(start + len)),
        }
    }

    /// Reads an offset in minutes: a sign and a number. A number that is missing or exceeds an `i32` counts as 0.
    /// Returns the zone and its length in bytes, or `None` if there is no sign or the offset in seconds exceeds an
    /// `i32`.
    pub fn read_minutes(text: &[u8]) -> Option<(Zone, usize)> {
        let sign = match text.first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let len = text[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let minutes: i32 = std::str::from_utf8(&text[1..=len]).ok()?.parse().unwrap_or(0);
        Some((Zone::Offset(sign * minutes.checked_mul(60)?), len + 1))
    }
}

/// Converts the digits of an offset to seconds. The digits denote hours, or hours and minutes, and have no sign.
/// Returns 0 for any other text.
fn correction(digits: &[u8]) -> i32 {
    let text = std::str::from_utf8(digits).unwrap_or_default();
    let number = |text: &str| text.parse::<i32>().unwrap_or(0);
    match text.split_once(':') {
        Some((hours, minutes)) if text.len() <= 5 => number(hours) * 3_600 + number(minutes) * 60,
        None if text.len() <= 2 => number(text) * 3_600,
        None if text.len() <= 4 => number(text) / 100 * 3_600 + number(text) % 100 * 60,
        _ => 0,
    }
}

/// Returns the offset that a name denotes, in seconds. Single letters are the military zones, which do not include J.
fn named(name: &str) -> Option<i32> {
    if let [letter] = name.as_bytes() {
        let letter = letter.to_ascii_uppercase();
        let hours = match letter {
            b'A'..=b'I' => i32::from(letter - b'A') + 1,
            b'K'..=b'M' => i32::from(letter - b'A'),
            b'N'..=b'Y' => -(i32::from(letter - b'N') + 1),
            b'Z' => 0,
            _ => return None,
        };
        return Some(hours * 3_600);
    }
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, seconds)| *seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_zones_are_offsets_letters_or_known_names() {
        let seconds = |text: &str| Zone::read(text.as_bytes()).ok().map(|(zone, len)| (zone.seconds(), len));
        for (text, expected) in [
            ("A", 3_600),
            ("L", 39_600),
            ("m", 43_200),
            ("N", -3_600),
            ("P", -10_800),
            ("Y", -43_200),
            ("z", 0),
            ("cest", 7_200),
            ("IST", 7_200),
            ("GMT+2", 7_200),
            ("GMT-0130", -5_400),
            ("+03:30", 12_600),
            ("+0330", 12_600),
            ("-05", -18_000),
        ] {
            assert_eq!(seconds(text), Some((expected, text.len())), "{text}");
        }
        assert_eq!(seconds(" (PDT) x"), Some((-25_200, 6)));
        for unknown in ["J", "SGT", "Europe/Zurich", ""] {
            assert_eq!(seconds(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn zone_names_are_sorted_and_unique() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
