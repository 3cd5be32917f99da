//! The media type of a file.

use mime_guess::Mime;

use crate::error::{Error, Result};

/// The maximum length of a media type, in bytes.
const MAX_TYPE_BYTES: usize = 255;

/// Returns the media type of a file: the given type, or a type guessed from the file name.
pub fn mime_type(given: Option<&str>, filename: &str) -> Result<String> {
    let Some(given) = given.map(str::trim).filter(|given| !given.is_empty()) else {
        return Ok(mime_guess::from_path(filename).first_or_octet_stream().to_string());
    };
    match given.parse::<Mime>() {
        Ok(kind) if given.len() <= MAX_TYPE_BYTES && !kind.subtype().as_str().is_empty() => Ok(kind.to_string()),
        _ => Err(Error::invalid_at(
            "/mime_type",
            format!("expected a media type such as text/plain, of at most {MAX_TYPE_BYTES} bytes"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_media_type_is_derived_from_the_file_name() {
        assert_eq!(mime_type(None, "a.PNG").expect("a type"), "image/png");
        assert_eq!(mime_type(Some(" "), "a").expect("a type"), "application/octet-stream");
        assert_eq!(mime_type(Some("text/plain; charset=utf-8"), "a").expect("a type"), "text/plain; charset=utf-8");
        for wrong in ["text", "text/", "a/b\r\nx: y", "a b/c", &format!("a/{}", "x".repeat(255))] {
            assert!(mime_type(Some(wrong), "a").is_err(), "{wrong:?}");
        }
    }
}
