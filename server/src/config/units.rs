//! Sizes and times in settings, in a readable notation, such as `64 MiB` and `30 s`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A size in bytes. In the configuration, a size is a text with a unit, such as `64 MiB`, or a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataSize(pub u64);

impl DataSize {
    /// Returns the number of bytes, or the largest `usize` if the number is larger.
    pub fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for DataSize {
    type Err = String;

    fn from_str(text: &str) -> Result<DataSize, String> {
        match text.parse::<bytesize::ByteSize>() {
            Ok(size) => Ok(DataSize(size.as_u64())),
            Err(_) => {
                Err(format!("expected a size such as \"64 MiB\" or \"500 kB\", or a number of bytes, found {text:?}"))
            }
        }
    }
}

/// A duration in whole milliseconds. In the configuration, a duration is a text with units, such as `30 s`, or the
/// number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(pub Duration);

impl TimeSpan {
    pub const fn from_secs(seconds: u64) -> TimeSpan {
        TimeSpan(Duration::from_secs(seconds))
    }

    /// Returns the number of milliseconds, or the largest `u64` if the number is larger.
    pub fn millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the number of milliseconds as a signed number, because timestamps are signed too. Returns the largest
    /// `i64` if the number is larger.
    pub fn signed_millis(self) -> i64 {
        i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX)
    }
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeSpan, String> {
        match humantime::parse_duration(text.trim()) {
            Ok(duration) if duration.subsec_nanos() % 1_000_000 == 0 => Ok(TimeSpan(duration)),
            _ => Err(format!(
                "expected a duration such as \"30 s\", \"1 h 30 min\" or \"200 ms\", in whole milliseconds, \
                 found {text:?}"
            )),
        }
    }
}

impl Serialize for DataSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{} B", self.0))
    }
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(self.0))
    }
}

impl<'de> Deserialize<'de> for DataSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DataSize, D::Error> {
        deserializer.deserialize_any(TextOrNumber(|bytes| Ok(DataSize(bytes))))
    }
}

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TimeSpan, D::Error> {
        deserializer.deserialize_any(TextOrNumber(|number| match number {
            // Without a unit, only the number 0 is unambiguous.
            0 => Ok(TimeSpan(Duration::ZERO)),
            _ => Err(format!("expected a duration with a unit, such as \"{number} s\", found {number}")),
        }))
    }
}

/// A visitor that reads a value from a text, or from a number without a unit. The function in the field converts the
/// number.
struct TextOrNumber<T>(fn(u64) -> Result<T, String>);

impl<T: FromStr<Err = String>> Visitor<'_> for TextOrNumber<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text with a number and a unit")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        (self.0)(number).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let negative = |_| E::custom(format_args!("expected a number of at least 0, found {number}"));
        self.visit_u64(u64::try_from(number).map_err(negative)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_with_an_optional_unit() {
        let bytes = |text: &str| text.parse::<DataSize>().map(|size| size.0);
        for (text, expected) in [("64 MiB", 64 << 20), ("64MiB", 64 << 20), ("500 kB", 500_000), ("12", 12), ("0", 0)] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "MiB", "-1", "64 miles"] {
            assert!(bytes(text).is_err_and(|message| message.contains("such as \"64 MiB\"")), "{text}");
        }
        assert_eq!(toml::Value::try_from(DataSize(12)).map(|value| value.to_string()), Ok("\"12 B\"".into()));
        assert_eq!(bytes("12 B"), Ok(12));
    }

    #[test]
    fn durations_require_a_unit_unless_they_are_zero() {
        let millis = |text: &str| text.parse::<TimeSpan>().map(TimeSpan::millis);
        let times =
            [("30 s", 30_000), ("30s", 30_000), ("1 h 30 min", 5_400_000), ("200 ms", 200), ("2 days", 172_800_000)];
        for (text, expected) in times.into_iter().chain([("0", 0)]) {
            assert_eq!(millis(text), Ok(expected), "{text}");
        }
        for text in ["", "30", "s", "-1 s", "5 us", "30 parsecs"] {
            assert!(millis(text).is_err_and(|message| message.contains("such as \"30 s\"")), "{text}");
        }
        let again = toml::Value::try_from(TimeSpan::from_secs(93_784)).map(toml::Value::try_into::<TimeSpan>);
        assert_eq!(again, Ok(Ok(TimeSpan::from_secs(93_784))));
        let number = toml::Value::Integer(30).try_into::<TimeSpan>().expect_err("no unit").to_string();
        assert!(number.contains("expected a duration with a unit, such as \"30 s\""), "{number}");
    }
}
