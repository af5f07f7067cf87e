//! Writes an archive as a stream, without seeking.

use std::io::{self, Read, Write};

use super::{
    BLOCK_BYTES, CHECKSUM_FIELD, GNU_LONG_LINK_NAME, GNU_MAGIC, KIND_FIELD, MAGIC_FIELD, MODE_FIELD, MODIFIED_FIELD,
    NAME_FIELD, SIZE_FIELD, block_padding, header_checksum,
};

const COPY_BUFFER_BYTES: usize = 64 * 1024;

pub(crate) struct TarWriter<'a> {
    out: &'a mut dyn Write,
}

impl<'a> TarWriter<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    pub(crate) fn write_directory(&mut self, path: &[u8], mode: u32, modified_s: u64) -> io::Result<()> {
        self.write_header(&[path, b"/"].concat(), b'5', mode, modified_s, 0)
    }

    /// Writes a file. Fails if its length differs from `size`, which leaves the archive incomplete.
    pub(crate) fn write_file(
        &mut self,
        path: &[u8],
        mode: u32,
        modified_s: u64,
        size: u64,
        content: &mut dyn Read,
    ) -> io::Result<()> {
        self.write_header(path, b'0', mode, modified_s, size)?;
        let mut left = size;
        let mut piece = vec![0; COPY_BUFFER_BYTES];
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(COPY_BUFFER_BYTES).min(COPY_BUFFER_BYTES);
            let count = content.read(&mut piece[..wanted])?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.out.write_all(&piece[..count])?;
            left -= count as u64;
        }
        self.out.write_all(&[0; BLOCK_BYTES][..block_padding(size)])
    }

    /// Writes the end of the archive.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.out.write_all(&[0; 2 * BLOCK_BYTES])?;
        self.out.flush()
    }

    fn write_header(&mut self, path: &[u8], kind: u8, mode: u32, modified_s: u64, size: u64) -> io::Result<()> {
        if path.len() > NAME_FIELD.len() {
            // A long name precedes the entry as the content of its own entry, ending with a zero.
            let length = path.len() as u64 + 1;
            self.write_plain_header(GNU_LONG_LINK_NAME, b'L', 0o644, 0, length)?;
            self.out.write_all(path)?;
            self.out.write_all(&[0])?;
            self.out.write_all(&[0; BLOCK_BYTES][..block_padding(length)])?;
        }
        self.write_plain_header(&path[..path.len().min(NAME_FIELD.len())], kind, mode, modified_s, size)
    }

    fn write_plain_header(&mut self, name: &[u8], kind: u8, mode: u32, modified_s: u64, size: u64) -> io::Result<()> {
        let mut header = [0; BLOCK_BYTES];
        header[..name.len()].copy_from_slice(name);
        write_octal(&mut header[MODE_FIELD], u64::from(mode & 0o777));
        write_octal(&mut header[108..116], 0);
        write_octal(&mut header[116..124], 0);
        write_number(&mut header[SIZE_FIELD], size);
        write_number(&mut header[MODIFIED_FIELD], modified_s);
        header[KIND_FIELD] = kind;
        header[MAGIC_FIELD].copy_from_slice(GNU_MAGIC);
        let sum = header_checksum(&header);
        write_octal(&mut header[CHECKSUM_FIELD.start..CHECKSUM_FIELD.end - 1], sum);
        header[CHECKSUM_FIELD.end - 1] = b' ';
        self.out.write_all(&header)
    }
}

/// Writes octal digits with a zero at the end.
fn write_octal(field: &mut [u8], value: u64) {
    let digits = field.len() - 1;
    let text = format!("{value:0digits$o}");
    field[..digits].copy_from_slice(&text.as_bytes()[text.len() - digits..]);
}

/// Writes octal digits, or base 256 for larger numbers.
fn write_number(field: &mut [u8], value: u64) {
    if value < 1 << (3 * (field.len() - 1)) {
        return write_octal(field, value);
    }
    let end = field.len();
    field[end - 8..].copy_from_slice(&value.to_be_bytes());
    field[0] = 0x80;
}
