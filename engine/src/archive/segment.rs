//! A segment of an archived log: an immutable object with consecutive lines, and checksums that detect every change.
//!
//! A segment is a zstd file. Its first frame contains the header: 64 hexadecimal digits, a line break, and JSON. The
//! frame is skippable, so `zstd -d` prints only the lines. The digits are the SHA-256 of everything after the line
//! break. Each line continues a chain of hashes through the whole log. The header contains the chain before and after
//! the segment, so a reader detects a missing segment or a segment of another log. A merge of segments keeps the chain.

use std::io::Read as _;

use aws_lc_rs::digest::{Context, SHA256, digest};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The version of the format.
const FORMAT: u64 = 1;
/// The first bytes of a skippable frame.
const SKIPPABLE: [u8; 4] = 0x184D_2A50_u32.to_le_bytes();
/// The number of digits of a hash.
const DIGITS: usize = 64;
/// The maximum size of the lines of a segment, in bytes.
pub const MAX_LINES_BYTES: u64 = 256 << 20;
/// The compression level. The level is fast, and its output has half the size of the fastest level's output.
const LEVEL: i32 = 3;

/// The state of the chain of hashes after a line. The default is the chain before the first line of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Chain([u8; 32]);

impl From<Chain> for String {
    fn from(chain: Chain) -> String {
        hex::encode(chain.0)
    }
}

impl TryFrom<String> for Chain {
    type Error = hex::FromHexError;

    fn try_from(text: String) -> Result<Chain, hex::FromHexError> {
        let mut chain = [0; 32];
        hex::decode_to_slice(text, &mut chain).map(|()| Chain(chain))
    }
}

impl Chain {
    /// Continues the chain with a line, which includes its line break.
    fn extend(&mut self, line: &[u8]) {
        let mut context = Context::new(&SHA256);
        context.update(&self.0);
        context.update(line);
        self.0.copy_from_slice(context.finish().as_ref());
    }

    /// Returns the chain after these lines.
    pub fn after(&self, lines: &[u8]) -> Chain {
        let mut chain = self.clone();
        lines.split_inclusive(|byte| *byte == b'\n').for_each(|line| chain.extend(line));
        chain
    }
}

/// The place in an archived log at which a segment begins or ends. The default is the place before the first segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivePlace {
    /// The number of the last level-0 segment before this place in the archived log. 0 at the beginning of the log.
    pub number: u64,
    /// The position of the last event before this place in the archived log.
    pub position: u64,
    /// The number of definitions before this place in the archived log.
    pub definitions: u64,
    pub chain: Chain,
}

/// The header of a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentHeader {
    pub format: u64,
    /// The version of the program that wrote the segment.
    pub program: String,
    pub workspace_id: String,
    pub epoch: u64,
    /// The place before the first line.
    pub after: ArchivePlace,
    /// The place after the last line.
    pub end: ArchivePlace,
    /// The id of the last event before the end of the segment. If the segment has no events, this event is in an
    /// earlier segment.
    pub last_event_id: Option<String>,
    /// The SHA-256 of the last definition before the end of the segment. If the segment has no definitions, this
    /// definition is in an earlier segment.
    pub last_definition: Option<String>,
    /// The time at which the first event of the segment was recorded, in milliseconds since 1970. `None` if the segment
    /// has no events.
    pub from: Option<i64>,
    /// The time at which the last event before the end of the segment was recorded, in milliseconds since 1970. If the
    /// segment has no events, this event is in an earlier segment.
    pub to: Option<i64>,
}

impl SegmentHeader {
    /// Creates the header of a segment.
    pub fn new(workspace_id: &str, epoch: u64, after: ArchivePlace, end: ArchivePlace) -> SegmentHeader {
        let (program, workspace_id) = (env!("CARGO_PKG_VERSION").to_owned(), workspace_id.to_owned());
        SegmentHeader { format: FORMAT, program, workspace_id, epoch, after, end, ..SegmentHeader::default() }
    }
}

/// A segment that was read.
#[derive(Debug)]
pub struct ArchiveSegment {
    pub header: SegmentHeader,
    pub lines: Vec<u8>,
}

/// Encodes a segment. Returns the completed header and the bytes of the segment. Sets `header.end.chain` to the chain
/// after the lines.
pub fn encode(mut header: SegmentHeader, lines: &[u8]) -> std::io::Result<(SegmentHeader, Bytes)> {
    header.end.chain = header.after.chain.after(lines);
    let text = serde_json::to_vec(&header)?;
    let body = zstd::stream::encode_all(lines, LEVEL)?;
    let seal = sealed(&text, &body);
    let length = u32::try_from(DIGITS + 1 + text.len()).map_err(std::io::Error::other)?.to_le_bytes();
    let segment = [&SKIPPABLE[..], &length, seal.as_bytes(), b"\n", &text, &body].concat();
    Ok((header, segment.into()))
}

fn sealed(header: &[u8], body: &[u8]) -> String {
    let mut context = Context::new(&SHA256);
    context.update(header);
    context.update(body);
    hex::encode(context.finish())
}

/// Reads and checks a segment. The error describes why the segment is invalid.
pub fn decode(segment: &[u8]) -> Result<ArchiveSegment, String> {
    let (header, body) = parts(segment)?;
    let mut lines = Vec::new();
    let decoder = zstd::stream::read::Decoder::new(body).map_err(|error| error.to_string())?;
    decoder.take(MAX_LINES_BYTES + 1).read_to_end(&mut lines).map_err(|error| error.to_string())?;
    if lines.len() as u64 > MAX_LINES_BYTES {
        return Err(format!("the lines have more than {MAX_LINES_BYTES} bytes"));
    }
    if header.after.chain.after(&lines) != header.end.chain {
        return Err("the hash of the lines differs from the hash in the header".into());
    }
    Ok(ArchiveSegment { header, lines })
}

/// Reads the header of a segment and checks the segment, without unpacking its lines.
pub fn header(segment: &[u8]) -> Result<SegmentHeader, String> {
    parts(segment).map(|(header, _)| header)
}

fn parts(segment: &[u8]) -> Result<(SegmentHeader, &[u8]), String> {
    let cut = || "the object is not a segment, or was cut off".to_owned();
    let rest = segment.strip_prefix(&SKIPPABLE).ok_or_else(cut)?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
    let (frame, body) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(cut)?;
    let (seal, text) = frame.split_at_checked(DIGITS).ok_or_else(cut)?;
    let text = text.strip_prefix(b"\n").ok_or_else(cut)?;
    if sealed(text, body).as_bytes() != seal {
        return Err("the content does not match the hash: the segment was changed or cut off".into());
    }
    let header: SegmentHeader =
        serde_json::from_slice(text).map_err(|error| format!("the header is invalid: {error}"))?;
    if header.format > FORMAT {
        return Err(format!("format {} is not supported; this program reads formats up to {FORMAT}", header.format));
    }
    Ok((header, body))
}

/// Returns the SHA-256 of bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(digest(&SHA256, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(after: ArchivePlace, lines: &[u8]) -> (SegmentHeader, Bytes) {
        let end = ArchivePlace { number: after.number + 1, ..after.clone() };
        encode(SegmentHeader::new("w", 1, after, end), lines).expect("a segment")
    }

    #[test]
    fn every_changed_byte_and_every_cut_of_a_segment_is_detected() {
        let (written, bytes) = segment(ArchivePlace::default(), b"{\"position\":1}\n{\"position\":2}\n");
        let found = decode(&bytes).expect("readable");
        assert_eq!((found.header, found.lines.len()), (written, 30));
        for index in 0..bytes.len() {
            for bit in [1, 128] {
                let mut changed = bytes.to_vec();
                changed[index] ^= bit;
                assert!(decode(&changed).is_err(), "byte {index}");
            }
            assert!(decode(&bytes[..index]).is_err(), "cut at {index}");
        }
    }

    #[test]
    fn a_merged_segment_ends_with_the_same_chain_hash_as_its_last_part() {
        let (first, _) = segment(ArchivePlace::default(), b"a\n");
        let (second, _) = segment(first.end.clone(), b"b\nc\n");
        let (merged, bytes) = segment(ArchivePlace::default(), b"a\nb\nc\n");
        assert_eq!(merged.end.chain, second.end.chain);
        assert_ne!(first.end.chain, second.end.chain);
        // A standard zstd decoder reads the lines as well.
        assert_eq!(zstd::stream::decode_all(&*bytes).expect("lines"), b"a\nb\nc\n");
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
