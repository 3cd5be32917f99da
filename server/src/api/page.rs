//! Lists: limits, opaque cursors, and the shape of a page.

use foldwork_engine::Error;
use foldwork_engine::workspace::Page;
use serde::Serialize;

/// Rows of a page where the client does not say, and the most it may ask for.
pub const DEFAULT_LIMIT: u64 = 50;
pub const MAX_LIMIT: u64 = 200;

/// A page on the wire.
#[derive(Serialize)]
pub struct PageBody<T> {
    pub data: Vec<T>,
    pub next_cursor: Option<String>,
}

impl<T> PageBody<T> {
    /// Writes a page; `list` is bound into its cursor, so that a cursor is good for one list only.
    pub fn new<S>(page: Page<S>, list: &str, write: impl FnMut(S) -> T) -> PageBody<T> {
        let next_cursor = page.next.map(|next| cursor(list, next));
        PageBody { data: page.items.into_iter().map(write).collect(), next_cursor }
    }
}

/// How many rows are asked for: 1 to 200, 50 where it is not said.
pub fn limit(limit: Option<u64>) -> Result<usize, Error> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Error::invalid(format!("limit is {limit}; allowed is 1 to {MAX_LIMIT}")));
    }
    Ok(limit as usize)
}

/// Bytes at a cursor's end that tell whether it was made here for this list.
const SEAL: usize = 4;

fn seal(list: &str, place: u64) -> [u8; SEAL] {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(format!("cursor/{list}/{place}"));
    [digest[0], digest[1], digest[2], digest[3]]
}

/// A place in a list, as text that means nothing to a client.
pub fn cursor(list: &str, place: u64) -> String {
    let mut bytes = place.to_be_bytes().to_vec();
    bytes.extend(seal(list, place));
    hex::encode(bytes)
}

/// The place that a cursor of this list stands for.
pub fn place(list: &str, cursor: Option<&str>) -> Result<Option<u64>, Error> {
    let Some(cursor) = cursor else { return Ok(None) };
    let read = || {
        let bytes: [u8; 8 + SEAL] = hex::decode(cursor).ok()?.try_into().ok()?;
        let (place, sealed) = bytes.split_first_chunk::<8>()?;
        let place = u64::from_be_bytes(*place);
        (sealed == seal(list, place)).then_some(place)
    };
    read().map(Some).ok_or_else(|| Error::invalid("the cursor is not one of this list"))
}
