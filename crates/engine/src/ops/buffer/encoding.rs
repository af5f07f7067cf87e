//! Converts between the text of an editor and the bytes of a file. An editor may use plain line feeds and knows no
//! encoding. Pure.

use stead_text::lines;

use crate::{
    buffers::BufferLineEndings,
    errors::{Error, ErrorKind},
    limits,
    ops::{decode_diff_text, encode_like},
};

/// Encodes the text with the encoding and line endings of the file on disk.
pub(super) fn encode_editor_text(text: &str, saved: Option<&[u8]>) -> Result<(Vec<u8>, BufferLineEndings), Error> {
    let Some(saved) = saved else {
        return check_buffer_size(text.as_bytes().to_vec()).map(|bytes| (bytes, BufferLineEndings::SameAsFile));
    };
    let before = decode_diff_text(saved).ok_or_else(|| {
        Error::new(ErrorKind::NotText, "the file on disk is not text and cannot be opened as a buffer")
    })?;
    let found = lines::count_endings(before.as_bytes());
    // The file has only CRLF and the text has no carriage return: the editor stripped them.
    let stripped = found.crlf > 0 && found.lf == 0 && !text.contains('\r') && text.contains('\n');
    let (text, endings) = if stripped {
        (text.replace('\n', "\r\n"), BufferLineEndings::LfOnly)
    } else {
        (text.to_owned(), BufferLineEndings::SameAsFile)
    };
    Ok((check_buffer_size(encode_like(&text, saved)?)?, endings))
}

fn check_buffer_size(bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    if bytes.len() as u64 <= limits::BUFFER_BYTES_MAX {
        return Ok(bytes);
    }
    Err(Error::new(ErrorKind::TooLarge, format!("{} bytes exceed the buffer limit", bytes.len()))
        .with_next_step("save the buffer; agents then read the file")
        .with_detail("limit_bytes", limits::BUFFER_BYTES_MAX))
}

pub(super) fn decode_for_editor(bytes: &[u8], endings: BufferLineEndings) -> Result<String, Error> {
    let text =
        decode_diff_text(bytes).ok_or_else(|| Error::new(ErrorKind::NotText, "the buffer no longer holds text"))?;
    Ok(match endings {
        BufferLineEndings::SameAsFile => text.into_owned(),
        BufferLineEndings::LfOnly => text.replace("\r\n", "\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editor_text_round_trips_through_file_format() {
        for (text, saved, expected, endings) in [
            ("a\nb\n", &b"x\r\ny\r\n"[..], &b"a\r\nb\r\n"[..], BufferLineEndings::LfOnly),
            ("a\r\nb\n", b"x\r\ny\r\n", b"a\r\nb\n", BufferLineEndings::SameAsFile),
            ("a\nb\n", b"x\r\ny\n", b"a\nb\n", BufferLineEndings::SameAsFile),
            ("a", b"x\r\n", b"a", BufferLineEndings::SameAsFile),
            ("\u{e9}\n", b"\xff\xfea\0", b"\xff\xfe\xe9\0\n\0", BufferLineEndings::SameAsFile),
        ] {
            let (bytes, found) = encode_editor_text(text, Some(saved)).unwrap();
            assert_eq!((bytes.as_slice(), found), (expected, endings), "{text:?}");
            assert_eq!(decode_for_editor(&bytes, found).unwrap().trim_start_matches('\u{feff}'), text);
        }
        assert_eq!(encode_editor_text("a\n", Some(b"\0\x01")).unwrap_err().kind, ErrorKind::NotText);
    }
}
