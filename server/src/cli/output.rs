//! Writes a file, compressed according to its extension. The file appears under its final name only when it is
//! complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The base-2 logarithm of the compression window. A large window also finds distant repetitions. `zstd -d` and
/// `import` can both read this window.
const WINDOW_LOG: u32 = 27;

/// An output for lines of text: a file or standard output.
pub struct Output {
    /// The compressor, with the file or standard output as its destination.
    packer: Packer,
    /// The unfinished file and its final name, or `None` for standard output.
    target: Option<OutputFile>,
}

enum Packer {
    Plain(Box<dyn Write>),
    Zstd(Box<zstd::Encoder<'static, Box<dyn Write>>>),
    Gzip(flate2::write::GzEncoder<Box<dyn Write>>),
}

/// An unfinished file. Dropping this value removes the file unless the file was renamed.
struct OutputFile {
    unfinished: PathBuf,
    name: PathBuf,
    file: File,
    renamed: bool,
}

/// Prints text to standard output. Unlike `println!`, the function does not panic if the pipe is closed.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Returns a number and a noun with a regular plural: "1 event" or "2 events".
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Prints one line to standard output.
pub fn print_line(text: &str) -> anyhow::Result<()> {
    print(&format!("{text}\n"))
}

/// Writes text to standard error. Ignores an error, so that a command prints its result in any case.
pub fn note(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

impl Output {
    /// Opens an output; `-` is standard output.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            let plain = BufWriter::new(io::stdout());
            return Ok(Self { packer: Packer::Plain(Box::new(plain)), target: None });
        }
        let target = OutputFile::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
        let file = target.file.try_clone().with_context(|| format!("{} cannot be written", path.display()))?;
        let packer = Packer::for_name(path, Box::new(BufWriter::new(file)))?;
        Ok(Self { packer, target: Some(target) })
    }

    /// Writes one line.
    pub fn write_line(&mut self, line: &str) -> io::Result<()> {
        let writer = self.packer.writer();
        writer.write_all(line.as_bytes())?;
        writer.write_all(b"\n")
    }

    /// Writes the remaining output and renames the file to its final name.
    pub fn finish(self) -> anyhow::Result<()> {
        let name = self.target.as_ref().map_or(Path::new("standard output"), |target| target.name.as_path());
        self.packer.finish().with_context(|| format!("{} cannot be written", name.display()))?;
        self.target.map_or(Ok(()), OutputFile::rename)
    }
}

impl Packer {
    fn for_name(path: &Path, file: Box<dyn Write>) -> anyhow::Result<Self> {
        let extension =
            path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase();
        Ok(match extension.as_str() {
            "zst" => {
                let mut encoder = zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                encoder.long_distance_matching(true)?;
                encoder.window_log(WINDOW_LOG)?;
                encoder.include_checksum(true)?;
                Self::Zstd(Box::new(encoder))
            }
            "gz" => Self::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default())),
            _ => Self::Plain(file),
        })
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(writer) => writer,
            Self::Zstd(encoder) => encoder,
            Self::Gzip(encoder) => encoder,
        }
    }

    fn finish(self) -> io::Result<()> {
        let mut inner = match self {
            Self::Plain(writer) => writer,
            Self::Zstd(encoder) => encoder.finish()?,
            Self::Gzip(encoder) => encoder.finish()?,
        };
        inner.flush()
    }
}

impl OutputFile {
    fn create(path: &Path) -> anyhow::Result<Self> {
        let Some(file_name) = path.file_name() else { bail!("the path does not end in a file name") };
        if path.is_dir() {
            bail!("the path is a folder");
        }
        let mut unfinished_name = std::ffi::OsString::from(".");
        unfinished_name.push(file_name);
        unfinished_name.push(format!(".{}.part", std::process::id()));
        let unfinished = path.with_file_name(unfinished_name);
        let file = File::create(&unfinished)?;
        Ok(Self { unfinished, name: path.to_owned(), file, renamed: false })
    }

    fn rename(mut self) -> anyhow::Result<()> {
        let unsynced = || format!("{} cannot be written to the disk", self.unfinished.display());
        self.file.sync_all().with_context(unsynced)?;
        fs::rename(&self.unfinished, &self.name)
            .with_context(|| format!("{} cannot be renamed to {}", self.unfinished.display(), self.name.display()))?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if !self.renamed {
            // Ignores an error: an unfinished file that cannot be removed stays in the folder.
            let _ = fs::remove_file(&self.unfinished);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::input::LineInput;

    fn folder() -> PathBuf {
        let folder = std::env::temp_dir().join(format!("foldwork-output-{}", uuid::Uuid::now_v7()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        folder
    }

    #[test]
    fn plain_zstd_and_gzip_output_can_be_read_back() {
        let folder = folder();
        for name in ["events.ndjson", "events.ndjson.zst", "events.ndjson.GZ"] {
            let path = folder.join(name);
            let mut output = Output::open(&path).expect("opened");
            output.write_line("{\"a\":1}").expect("written");
            output.write_line("{\"b\":2}").expect("written");
            assert!(!path.exists(), "{name} appears only at the end");
            output.finish().expect("finished");
            let mut input = LineInput::open(&path).expect("opened");
            assert_eq!(input.next_line().expect("readable"), Some((1, "{\"a\":1}")));
            assert_eq!(input.next_line().expect("readable"), Some((2, "{\"b\":2}")));
            assert_eq!(input.next_line().expect("readable"), None);
        }
        assert_eq!(fs::read_dir(&folder).expect("listed").count(), 3);
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_dropped_output_leaves_no_file() {
        let folder = folder();
        let mut output = Output::open(&folder.join("events.ndjson")).expect("opened");
        output.write_line("{}").expect("written");
        drop(output);
        assert_eq!(fs::read_dir(&folder).expect("listed").count(), 0);
        assert!(Output::open(&folder).is_err());
        fs::remove_dir_all(folder).expect("removed");
    }
}
