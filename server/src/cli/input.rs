//! Reads lines from a file or standard input. The compression, if any, is detected from the first bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};

/// The base-2 logarithm of the maximum window size of a zstd frame. `zstd --long=27` writes frames with this window.
const WINDOW_LOG_MAX: u32 = 27;
/// The maximum length of a line in bytes. The default of the setting `[http] body_limit` is much lower, so a server
/// with this default rejects even shorter events.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A file or standard input that is read line by line.
pub struct LineInput {
    reader: Box<dyn BufRead + Send>,
    consumed: Arc<AtomicU64>,
    /// The size of the file in bytes, or `None` if the input is not a regular file.
    pub size_bytes: Option<u64>,
    line: Vec<u8>,
    number: u64,
}

/// A reader that counts the bytes of the file before decompression.
struct CountingReader<R> {
    inner: R,
    consumed: Arc<AtomicU64>,
}

impl LineInput {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            return Self::from_reader(io::stdin(), None).context("standard input cannot be read");
        }
        let name = path.display();
        let file = File::open(path).with_context(|| format!("{name} cannot be opened"))?;
        let about = file.metadata().with_context(|| format!("{name} cannot be opened"))?;
        if about.is_dir() {
            bail!("{name} is a folder; to import a repository's history, use: import git {name}");
        }
        let size_bytes = about.is_file().then_some(about.len());
        Self::from_reader(file, size_bytes).with_context(|| format!("{name} cannot be read"))
    }

    /// Creates an input for any reader. `size_bytes` is the compressed size, if known.
    pub fn from_reader(reader: impl Read + Send + 'static, size_bytes: Option<u64>) -> io::Result<Self> {
        let consumed = Arc::new(AtomicU64::new(0));
        let reader = unpacked(CountingReader { inner: reader, consumed: Arc::clone(&consumed) })?;
        Ok(Self { reader, consumed, size_bytes, line: Vec::new(), number: 0 })
    }

    /// Returns the number of bytes read from the file, before decompression.
    pub fn consumed_bytes(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// Returns the next line that is not blank, with its number, or `None` at the end of the input.
    pub fn next_line(&mut self) -> anyhow::Result<Option<(u64, &str)>> {
        loop {
            self.line.clear();
            self.number += 1;
            let number = self.number;
            let length = (&mut self.reader)
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut self.line)
                .with_context(|| format!("line {number} cannot be read"))?;
            if length == 0 {
                return Ok(None);
            }
            if length as u64 == MAX_LINE_BYTES && !self.line.ends_with(b"\n") {
                bail!("line {number} is too long; expected less than {} MiB", MAX_LINE_BYTES >> 20);
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let number = self.number;
        let text = std::str::from_utf8(&self.line).with_context(|| format!("line {number} is not UTF-8"))?;
        let text = if number == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        Ok(Some((number, text.trim())))
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.consumed.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

fn unpacked(mut packed: impl Read + Send + 'static) -> io::Result<Box<dyn BufRead + Send>> {
    let mut head = Vec::new();
    packed.by_ref().take(ZSTD_MAGIC.len() as u64).read_to_end(&mut head)?;
    let is_zstd = head.starts_with(&ZSTD_MAGIC);
    let is_gzip = head.starts_with(&GZIP_MAGIC);
    let reader = BufReader::with_capacity(128 * 1024, Cursor::new(head).chain(packed));
    if is_zstd {
        let mut decoder = zstd::Decoder::with_buffer(reader)?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        return Ok(Box::new(BufReader::with_capacity(128 * 1024, decoder)));
    }
    if is_gzip {
        let decoder = flate2::bufread::MultiGzDecoder::new(reader);
        return Ok(Box::new(BufReader::with_capacity(128 * 1024, decoder)));
    }
    Ok(Box::new(reader))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &str = "{\"a\":1}\r\n\n  \n{\"b\":2}";

    fn lines(bytes: Vec<u8>) -> anyhow::Result<Vec<(u64, String)>> {
        let mut input = LineInput::from_reader(Cursor::new(bytes), None)?;
        let mut lines = Vec::new();
        while let Some((number, line)) = input.next_line()? {
            lines.push((number, line.to_owned()));
        }
        Ok(lines)
    }

    fn expected() -> Vec<(u64, String)> {
        vec![(1, "{\"a\":1}".to_owned()), (4, "{\"b\":2}".to_owned())]
    }

    #[test]
    fn plain_text_is_read_with_its_line_numbers() {
        assert_eq!(lines(TEXT.into()).expect("readable"), expected());
        assert_eq!(lines(format!("\u{feff}{TEXT}").into()).expect("readable"), expected());
        assert!(lines(Vec::new()).expect("readable").is_empty());
        assert_eq!(lines(b"x".to_vec()).expect("readable"), [(1, "x".to_owned())]);
    }

    #[test]
    fn zstd_with_a_long_window_is_detected_by_its_content() {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).expect("valid level");
        encoder.long_distance_matching(true).expect("valid setting");
        encoder.window_log(WINDOW_LOG_MAX).expect("valid window");
        encoder.write_all(TEXT.as_bytes()).expect("written");
        assert_eq!(lines(encoder.finish().expect("written")).expect("readable"), expected());
    }

    #[test]
    fn gzip_of_several_members_is_detected_by_its_content() {
        let (first, second) = TEXT.split_at(10);
        let mut packed = Vec::new();
        for part in [first, second] {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(part.as_bytes()).expect("written");
            packed.extend(encoder.finish().expect("written"));
        }
        assert_eq!(lines(packed).expect("readable"), expected());
    }

    #[test]
    fn the_error_about_a_truncated_or_non_utf_8_file_names_the_line() {
        let mut packed = zstd::encode_all(TEXT.as_bytes(), 3).expect("packed");
        packed.truncate(packed.len() - 4);
        assert!(format!("{:#}", lines(packed).expect_err("a truncated file")).starts_with("line "));
        let error = lines(b"{}\n\xff\n".to_vec()).expect_err("not UTF-8");
        assert!(error.to_string().starts_with("line 2 is not UTF-8"));
    }
}
