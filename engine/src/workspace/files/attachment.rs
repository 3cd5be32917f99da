//! The header with which a browser saves a file under its name.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that are percent-encoded in the extended form of a header's parameter (RFC 5987).
const IN_PARAMETER: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the value of the header `Content-Disposition` that makes a browser save a file under its name (RFC 6266).
pub fn attachment(filename: &str) -> String {
    let plain = |letter: char| match letter {
        '"' | '\\' | '%' => '_',
        letter if letter.is_ascii_graphic() || letter == ' ' => letter,
        _ => '_',
    };
    let plain: String = filename.chars().map(plain).collect();
    if plain == filename {
        return format!("attachment; filename=\"{plain}\"");
    }
    let extended = utf8_percent_encode(filename, IN_PARAMETER);
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{extended}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_escaped_in_content_disposition() {
        assert_eq!(attachment("report 1.pdf"), "attachment; filename=\"report 1.pdf\"");
        let extended = "attachment; filename=\"na_ve.pdf\"; filename*=UTF-8''na%C3%AFve.pdf";
        assert_eq!(attachment("naïve.pdf"), extended);
        let quoted = "attachment; filename=\"a_; x=_.pdf\"; filename*=UTF-8''a%22%3B%20x%3D%5C.pdf";
        assert_eq!(attachment("a\"; x=\\.pdf"), quoted);
        assert!(!attachment("a\r\nb").contains(['\r', '\n']));
    }
}
