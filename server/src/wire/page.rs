//! Pages of lists, with limits and opaque cursors.

use std::borrow::Cow;

use foldwork_engine::Error;
use foldwork_engine::model::date::parse_date;
use foldwork_engine::workspace::query::page::{Continuation, PageRequest};
use foldwork_engine::workspace::{Page, PageLimit};
use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::types::{ParseError, ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type};
use serde::{Deserialize, Serialize};

use super::json::{described, described_by};

/// The default number of rows per page.
pub const DEFAULT_LIMIT: u64 = 50;
/// The maximum number of rows per page.
pub const MAX_LIMIT: u64 = 200;

/// The maximum size in bytes of a page, passed to handlers as request data.
#[derive(Debug, Clone, Copy)]
pub struct PageBytes(pub usize);

/// A non-negative integer from a client, at most `i64::MAX`, because many clients have only signed 64-bit integers.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "i64")]
pub struct Whole(u64);

impl TryFrom<i64> for Whole {
    type Error = std::num::TryFromIntError;

    fn try_from(number: i64) -> Result<Whole, Self::Error> {
        u64::try_from(number).map(Whole)
    }
}

impl From<Whole> for u64 {
    fn from(number: Whole) -> u64 {
        number.0
    }
}

described!(Whole as u64::name(), u64::schema_ref());

impl ParseFromParameter for Whole {
    fn parse_from_parameter(value: &str) -> ParseResult<Self> {
        let known = value.parse().ok().and_then(|number: i64| Whole::try_from(number).ok());
        known.ok_or_else(|| ParseError::custom(format!("expected a whole number from 0 to {}", i64::MAX)))
    }
}

/// A page of a list.
#[derive(Serialize)]
pub struct PageBody<T> {
    pub data: Vec<T>,
    pub next_cursor: Option<String>,
}

impl<T> PageBody<T> {
    /// Converts a page of the engine with `write` for each item. The cursor of the result is valid only for `list`.
    pub fn new<S>(page: Page<S>, list: &str, write: impl FnMut(S) -> T) -> PageBody<T> {
        let next_cursor = page.next.map(|next| cursor(list, next));
        PageBody { data: page.items.into_iter().map(write).collect(), next_cursor }
    }
}

/// An item of a list. The pages of the list have the schema of a [`PageBody`].
pub trait Listed: Type {
    /// The name of the schema of a page.
    const PAGE: &'static str;
    /// The description of a page.
    const DESCRIPTION: &'static str;
}

/// Declares the type of a list's items, with the schema name and the description of the list's pages.
macro_rules! listed {
    ($item:ty as $page:literal: $description:literal) => {
        impl $crate::wire::page::Listed for $item {
            const PAGE: &'static str = $page;
            const DESCRIPTION: &'static str = $description;
        }
    };
}
pub(crate) use listed;

described_by!(PageBody<T> where T: Listed as T::PAGE, |registry| {
    T::register(registry);
    MetaSchema {
        title: Some(T::PAGE.to_owned()),
        description: Some(T::DESCRIPTION),
        required: vec!["data"],
        properties: vec![("data", Vec::<T>::schema_ref()), ("next_cursor", String::schema_ref())],
        ..MetaSchema::new("object")
    }
});

/// Parses the time in a field of the body, if the field is present.
pub fn time_at(pointer: &str, text: Option<&str>) -> Result<Option<i64>, Error> {
    let wrong = || Error::invalid_at(pointer, "expected an RFC 3339 time");
    text.map(|text| parse_date(text).ok_or_else(wrong)).transpose()
}

/// Parses the time in the parameter `name`.
pub fn time(name: &str, text: &str) -> Result<i64, Error> {
    parse_date(text).ok_or_else(|| Error::invalid(format!("`{name}` must be an RFC 3339 time")))
}

/// Returns the number of rows per page, which must be 1 to 200; the default is 50.
pub fn limit(limit: Option<u64>) -> Result<usize, Error> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Error::invalid(format!("`limit` is {limit}; expected 1 to {MAX_LIMIT}")));
    }
    Ok(limit as usize)
}

/// Returns the limits of a page: the number of rows, which [`limit`] checks, and the maximum size in bytes.
pub fn page_limit(rows: Option<u64>, bytes: PageBytes) -> Result<PageLimit, Error> {
    Ok(PageLimit { rows: limit(rows)?, bytes: bytes.0 })
}

/// The number of bytes of the checksum at a cursor's end. A cursor of another list has another checksum.
const SEAL_BYTES: usize = 4;

fn seal(list: &str, position: u64) -> [u8; SEAL_BYTES] {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(format!("cursor/{list}/{position}"));
    [digest[0], digest[1], digest[2], digest[3]]
}

/// Returns an opaque cursor for a position in a list.
///
/// `list` consists of the names that requests use for the list and its filters, not of the names of Rust types and
/// variants. Therefore a cursor stays valid when a type or a variant is renamed.
pub fn cursor(list: &str, position: u64) -> String {
    let mut bytes = position.to_be_bytes().to_vec();
    bytes.extend(seal(list, position));
    hex::encode(bytes)
}

/// Returns the position in a cursor of this list. Fails if the cursor is malformed or belongs to another list.
pub fn read_cursor(list: &str, cursor: Option<&str>) -> Result<Option<u64>, Error> {
    let Some(cursor) = cursor else { return Ok(None) };
    let read = || {
        let bytes: [u8; 8 + SEAL_BYTES] = hex::decode(cursor).ok()?.try_into().ok()?;
        let (position, sealed) = bytes.split_first_chunk::<8>()?;
        let position = u64::from_be_bytes(*position);
        (sealed == seal(list, position)).then_some(position)
    };
    read().map(Some).ok_or_else(wrong_list)
}

/// Returns an opaque cursor that contains the id of a page's last item. The cursor reveals only this id, which the page
/// contains as well.
pub fn named_cursor(list: &str, id: &str) -> String {
    let mut bytes = id.as_bytes().to_vec();
    bytes.extend(seal(&format!("{list}/{id}"), 0));
    hex::encode(bytes)
}

/// Returns the id in a cursor of this list: the id of the previous page's last item. Fails if the cursor is malformed
/// or belongs to another list.
pub fn read_named_cursor(list: &str, cursor: Option<&str>) -> Result<Option<String>, Error> {
    let Some(cursor) = cursor else { return Ok(None) };
    let read = || {
        let bytes = hex::decode(cursor).ok()?;
        let (id, sealed) = bytes.split_last_chunk::<SEAL_BYTES>()?;
        let id = String::from_utf8(id.to_vec()).ok()?;
        (*sealed == seal(&format!("{list}/{id}"), 0)).then_some(id)
    };
    read().map(Some).ok_or_else(wrong_list)
}

/// Returns the error for a cursor that is malformed or was issued for another list.
pub fn wrong_list() -> Error {
    Error::invalid_cursor("the cursor is malformed or belongs to another list")
}

/// The maximum number of rows on a page of a pipeline's result.
pub const MAX_ROWS: u64 = 10_000;

/// Returns the requested page of a pipeline's result, or `None` if the request contains neither a limit nor a cursor.
pub fn paging(limit: Option<u64>, cursor: Option<&str>) -> Result<Option<PageRequest>, Error> {
    let limit = match limit {
        Some(limit @ 1..=MAX_ROWS) => Some(limit as u32),
        Some(limit) => return Err(Error::invalid(format!("`limit` is {limit}; expected 1 to {MAX_ROWS}"))),
        None => None,
    };
    let after = cursor.map(continuation).transpose()?;
    Ok((limit.is_some() || after.is_some()).then_some(PageRequest { limit, after }))
}

/// Returns an opaque cursor for the next page of a pipeline's result.
pub fn encode_continuation(next: Continuation) -> String {
    let Continuation { position, now_ms, seed, offset, limit, binding } = next;
    let mut bytes = Vec::with_capacity(CONTINUATION_BYTES);
    for part in [position, now_ms as u64, seed, offset, u64::from(limit), binding] {
        bytes.extend(part.to_be_bytes());
    }
    bytes.extend(sealed(&bytes));
    hex::encode(bytes)
}

const CONTINUATION_BYTES: usize = 6 * 8 + SEAL_BYTES;

fn sealed(bytes: &[u8]) -> [u8; SEAL_BYTES] {
    seal(&hex::encode(bytes), 0)
}

fn continuation(cursor: &str) -> Result<Continuation, Error> {
    let read = || {
        let bytes = hex::decode(cursor).ok()?;
        let (parts, seal) = bytes.split_at_checked(CONTINUATION_BYTES - SEAL_BYTES)?;
        if seal != sealed(parts) {
            return None;
        }
        let mut parts = parts.chunks_exact(8).map(|part| part.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)));
        let mut next = || parts.next();
        Some(Continuation {
            position: next()?,
            now_ms: next()? as i64,
            seed: next()?,
            offset: next()?,
            limit: u32::try_from(next()?).ok()?,
            binding: next()?,
        })
    };
    read().ok_or_else(|| Error::invalid_cursor("the cursor is malformed or does not belong to a pipeline"))
}
