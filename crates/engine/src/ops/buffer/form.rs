//! The text of an editor and the bytes of a file: the same characters, where the editor may hold plain line feeds and
//! knows no encoding. Pure.

use text::lines;

use crate::{
    buffers::Endings,
    failure::{Failure, Kind},
    limits,
    ops::{encode_like, text_of},
};

/// The bytes that a file would have with this text, in the encoding and with the line endings of what is on disk.
pub(super) fn bytes(text: &str, saved: Option<&[u8]>) -> Result<(Vec<u8>, Endings), Failure> {
    let Some(saved) = saved else {
        return fitting(text.as_bytes().to_vec()).map(|bytes| (bytes, Endings::OfFile));
    };
    let before = text_of(saved).ok_or_else(|| {
        Failure::new(Kind::NotText, "what is on disk is not text, so nothing of it can be open")
    })?;
    let found = lines::endings(before.as_bytes());
    // A text without a single carriage return of a file that has one in every line was stripped of them by its editor.
    let stripped = found.crlf > 0 && found.lf == 0 && !text.contains('\r') && text.contains('\n');
    let (text, endings) = if stripped {
        (text.replace('\n', "\r\n"), Endings::LineFeed)
    } else {
        (text.to_owned(), Endings::OfFile)
    };
    Ok((fitting(encode_like(&text, saved)?)?, endings))
}

fn fitting(bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
    if bytes.len() as u64 <= limits::BUFFER_BYTES_MAX {
        return Ok(bytes);
    }
    Err(Failure::new(Kind::TooLarge, format!("{} bytes are more than a buffer holds", bytes.len()))
        .hint("save it, and let agents read the file")
        .fact("limit_bytes", limits::BUFFER_BYTES_MAX))
}

/// The text as its editor holds it.
pub(super) fn text(bytes: &[u8], endings: Endings) -> Result<String, Failure> {
    let text =
        text_of(bytes).ok_or_else(|| Failure::new(Kind::NotText, "the buffer no longer holds text"))?;
    Ok(match endings {
        Endings::OfFile => text.into_owned(),
        Endings::LineFeed => text.replace("\r\n", "\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_takes_on_the_form_of_its_file_and_comes_back() {
        for (text, saved, expected, endings) in [
            ("a\nb\n", &b"x\r\ny\r\n"[..], &b"a\r\nb\r\n"[..], Endings::LineFeed),
            ("a\r\nb\n", b"x\r\ny\r\n", b"a\r\nb\n", Endings::OfFile),
            ("a\nb\n", b"x\r\ny\n", b"a\nb\n", Endings::OfFile),
            ("a", b"x\r\n", b"a", Endings::OfFile),
            ("\u{e9}\n", b"\xff\xfea\0", b"\xff\xfe\xe9\0\n\0", Endings::OfFile),
        ] {
            let (bytes, found) = bytes(text, Some(saved)).unwrap();
            assert_eq!((bytes.as_slice(), found), (expected, endings), "{text:?}");
            assert_eq!(super::text(&bytes, found).unwrap().trim_start_matches('\u{feff}'), text);
        }
        assert_eq!(bytes("a\n", Some(b"\0\x01")).unwrap_err().kind, Kind::NotText);
    }
}
