//! Writing an archive, as a stream: nothing is gone back to.

use std::io::{self, Read, Write};

use super::{BLOCK, CHECKSUM, GNU, KIND, LONG_LINK, MAGIC, MODE, MODIFIED, NAME, SIZE, checksum, padding};

/// Bytes that are carried at once.
const PIECE: usize = 64 * 1024;

/// An archive on its way out.
pub(crate) struct Writer<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    /// A directory.
    pub(crate) fn directory(&mut self, path: &[u8], mode: u32, modified_s: u64) -> io::Result<()> {
        self.header(&[path, b"/"].concat(), b'5', mode, modified_s, 0)
    }

    /// A file. One that has another length by now than was said breaks the archive off.
    pub(crate) fn file(
        &mut self,
        path: &[u8],
        mode: u32,
        modified_s: u64,
        size: u64,
        content: &mut dyn Read,
    ) -> io::Result<()> {
        self.header(path, b'0', mode, modified_s, size)?;
        let mut left = size;
        let mut piece = vec![0; PIECE];
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let count = content.read(&mut piece[..wanted])?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.out.write_all(&piece[..count])?;
            left -= count as u64;
        }
        self.out.write_all(&[0; BLOCK][..padding(size)])
    }

    /// The end.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.flush()
    }

    fn header(&mut self, path: &[u8], kind: u8, mode: u32, modified_s: u64, size: u64) -> io::Result<()> {
        if path.len() > NAME.len() {
            // The name comes before, as the content of an entry of its own, and ends with a zero.
            let length = path.len() as u64 + 1;
            self.plain(LONG_LINK, b'L', 0o644, 0, length)?;
            self.out.write_all(path)?;
            self.out.write_all(&[0])?;
            self.out.write_all(&[0; BLOCK][..padding(length)])?;
        }
        self.plain(&path[..path.len().min(NAME.len())], kind, mode, modified_s, size)
    }

    fn plain(&mut self, name: &[u8], kind: u8, mode: u32, modified_s: u64, size: u64) -> io::Result<()> {
        let mut header = [0; BLOCK];
        header[..name.len()].copy_from_slice(name);
        octal(&mut header[MODE], u64::from(mode & 0o777));
        octal(&mut header[108..116], 0);
        octal(&mut header[116..124], 0);
        number(&mut header[SIZE], size);
        number(&mut header[MODIFIED], modified_s);
        header[KIND] = kind;
        header[MAGIC].copy_from_slice(GNU);
        let sum = checksum(&header);
        octal(&mut header[CHECKSUM.start..CHECKSUM.end - 1], sum);
        header[CHECKSUM.end - 1] = b' ';
        self.out.write_all(&header)
    }
}

/// Octal digits with a zero at the end.
fn octal(field: &mut [u8], value: u64) {
    let digits = field.len() - 1;
    let text = format!("{value:0digits$o}");
    field[..digits].copy_from_slice(&text.as_bytes()[text.len() - digits..]);
}

/// The same, and in base 256 what has more digits.
fn number(field: &mut [u8], value: u64) {
    if value < 1 << (3 * (field.len() - 1)) {
        return octal(field, value);
    }
    let end = field.len();
    field[end - 8..].copy_from_slice(&value.to_be_bytes());
    field[0] = 0x80;
}
