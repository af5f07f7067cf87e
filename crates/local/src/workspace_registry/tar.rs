//! Reads and writes `tar` archives as a stream, limited to regular files and directories.
//!
//! The archive reader does not trust its input: it rejects paths outside the root, and entries whose end or name is
//! ambiguous. The memory use of the archive reader is bounded.
//!
//! The crate `tar` (0.4.46) is not used: its reader holds a long name of any size in memory and accepts truncated or
//! ambiguous archives. The writer of the crate `tar` does not notice a file that is shorter than the size in its
//! header.

use std::{
    io::{self, Read, Write},
    ops::Range,
};

use stead_engine::{Error, ErrorKind};
use stead_path::{PATH_BYTES_MAX, RelPath};

const BLOCK_BYTES: usize = 512;
const NAME_FIELD: Range<usize> = 0..100;
const MODE_FIELD: Range<usize> = 100..108;
const SIZE_FIELD: Range<usize> = 124..136;
const MODIFIED_FIELD: Range<usize> = 136..148;
const CHECKSUM_FIELD: Range<usize> = 148..156;
const KIND_FIELD: usize = 156;
const MAGIC_FIELD: Range<usize> = 257..265;
const PREFIX_FIELD: Range<usize> = 345..500;
const POSIX_MAGIC: &[u8] = b"ustar\x0000";
const GNU_MAGIC: &[u8] = b"ustar  \0";
/// The name of an entry in which GNU tar stores the long name of the next entry.
const GNU_LONG_LINK_NAME: &[u8] = b"././@LongLink";

/// The checksum of a `tar` header counts the bytes of the checksum field as spaces.
fn header_checksum(header: &[u8; BLOCK_BYTES]) -> u64 {
    let at = |(at, byte): (usize, &u8)| {
        if CHECKSUM_FIELD.contains(&at) { u64::from(b' ') } else { u64::from(*byte) }
    };
    header.iter().enumerate().map(at).sum()
}

fn block_padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK_BYTES as u64).unwrap_or_default();
    if over == 0 { 0 } else { BLOCK_BYTES - over }
}

const RECORD_BYTES_MAX: u64 = 64 << 10;
/// The most metadata headers before one `tar` entry, such as long names and PAX records.
const RECORDS_MAX: usize = 4;
const IGNORED_PAX_KEYS: &[&str] = &["mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment", "hdrcharset"];
const IGNORED_PAX_PREFIXES: &[&str] = &["SCHILY.", "LIBARCHIVE.", "RHT.", "STEAD."];
const TRAILING_BLOCKS_MAX: usize = 1 << 16;

const COMPRESSION_SIGNATURES: &[(&[u8], &str)] = &[
    (&[0x1f, 0x8b], "gunzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "unzstd"),
    (b"BZh", "bunzip2"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "unxz"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TarEntry {
    Directory(RelPath),
    /// The content of an archived file can be read until the next entry is read.
    File {
        path: RelPath,
        is_executable: bool,
        size: u64,
    },
}

pub(super) struct TarReader<'a> {
    from: &'a mut dyn Read,
    entry_count: u64,
    /// The numbers of content bytes and padding bytes of the current archive entry that are not read yet.
    remaining: (u64, usize),
}

/// The values of `tar` metadata records replace values in the header of the next entry.
#[derive(Default)]
struct PaxOverrides {
    path: Option<Vec<u8>>,
    size: Option<u64>,
}

impl<'a> TarReader<'a> {
    pub(super) fn new(from: &'a mut dyn Read) -> Self {
        Self { from, entry_count: 0, remaining: (0, 0) }
    }

    /// Reading the next archive entry skips unread content of the previous entry.
    pub(super) fn next(&mut self) -> Result<Option<TarEntry>, Error> {
        while self.remaining.0 > 0 {
            let mut piece = [0; BLOCK_BYTES];
            self.read_content(&mut piece)?;
        }
        self.read_block_padding()?;
        self.entry_count += 1;
        let mut overrides = PaxOverrides::default();
        for _ in 0..=RECORDS_MAX {
            let mut header = [0; BLOCK_BYTES];
            if !self.read_block(&mut header)? {
                return Err(self.malformed("the archive is truncated"));
            }
            if header == [0; BLOCK_BYTES] {
                if overrides.path.is_some() || overrides.size.is_some() {
                    return Err(self.malformed("the archive ends after a metadata record"));
                }
                self.check_trailing_blocks()?;
                return Ok(None);
            }
            let format = self.detect_format(&header)?;
            let size = self.parse_number(&header[SIZE_FIELD])?;
            match header[KIND_FIELD] {
                b'L' => {
                    let mut name = self.read_record(size)?;
                    while name.last() == Some(&0) {
                        name.pop();
                    }
                    self.set_path_override(&mut overrides, name)?;
                }
                b'x' => self.read_pax_records(size, &mut overrides)?,
                b'g' => self.read_global_records(size)?,
                b'0' | 0 | b'5' => return self.build_entry(&header, format, size, overrides).map(Some),
                b'1' | b'2' | b'K' => return Err(self.malformed("links are not supported")),
                b'3' | b'4' | b'6' => {
                    return Err(self.malformed("devices and pipes are not supported"));
                }
                _ => {
                    return Err(self.malformed("only regular files and directories are supported"));
                }
            }
        }
        Err(self.malformed("too many metadata records"))
    }

    pub(super) fn read_content(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let wanted = usize::try_from(self.remaining.0).unwrap_or(buffer.len()).min(buffer.len());
        if wanted == 0 {
            return Ok(0);
        }
        let count = self.read(&mut buffer[..wanted])?;
        if count == 0 {
            return Err(self.malformed("the archive is truncated inside this entry"));
        }
        self.remaining.0 -= count as u64;
        Ok(count)
    }

    fn build_entry(
        &mut self,
        header: &[u8; BLOCK_BYTES],
        format: TarHeaderFormat,
        size: u64,
        overrides: PaxOverrides,
    ) -> Result<TarEntry, Error> {
        let raw = match overrides.path {
            Some(path) => path,
            None => header_path(header, format),
        };
        let is_directory = header[KIND_FIELD] == b'5';
        if raw.ends_with(b"/") && !is_directory {
            return Err(self.malformed("the name of a file ends with a slash"));
        }
        let path = self.path(&raw)?;
        let size = overrides.size.unwrap_or(size);
        if is_directory {
            if size != 0 {
                return Err(self.malformed("a directory has content"));
            }
            return Ok(TarEntry::Directory(path));
        }
        if path.is_root() {
            return Err(self.malformed("a file has no name"));
        }
        let runnable = self.parse_number(&header[MODE_FIELD])? & 0o100 != 0;
        self.remaining = (size, block_padding(size));
        Ok(TarEntry::File { path, is_executable: runnable, size })
    }

    /// The path of an archive entry may have a leading `./` and a trailing slash.
    fn path(&self, raw: &[u8]) -> Result<RelPath, Error> {
        if raw.first() == Some(&b'/') {
            return Err(self.malformed("its path is absolute"));
        }
        let raw = raw.strip_prefix(b"./").unwrap_or(raw);
        let raw = raw.strip_suffix(b"/").unwrap_or(raw);
        if raw.is_empty() || raw == b"." {
            return Ok(RelPath::root());
        }
        if raw.contains(&0) {
            return Err(self.malformed("its path contains a zero byte"));
        }
        if raw.split(|byte| *byte == b'/').any(|part| part.is_empty() || part == b"." || part == b"..") {
            return Err(self.malformed("its path has a component that is empty, . or .."));
        }
        RelPath::from_components(raw.split(|byte| *byte == b'/'))
            .map_err(|error| self.malformed(&format!("invalid path: {error}")))
    }

    fn detect_format(&self, header: &[u8; BLOCK_BYTES]) -> Result<TarHeaderFormat, Error> {
        let checksum = self.parse_number(&header[CHECKSUM_FIELD]);
        if !checksum.as_ref().is_ok_and(|checksum| *checksum == header_checksum(header)) {
            self.refuse_compressed(header)?;
            checksum?;
            return Err(self.malformed("the header is damaged, or this is not a tar archive"));
        }
        match &header[MAGIC_FIELD] {
            magic if magic == POSIX_MAGIC => Ok(TarHeaderFormat::Posix),
            magic if magic == GNU_MAGIC => Ok(TarHeaderFormat::Gnu),
            _ => Err(self.malformed("unknown header format")),
        }
    }

    /// Only an archive with an invalid header is tested for compression, because a valid archive may start with the
    /// signature of a compressed file.
    fn refuse_compressed(&self, start: &[u8]) -> Result<(), Error> {
        match COMPRESSION_SIGNATURES.iter().find(|(magic, _)| self.entry_count == 1 && start.starts_with(magic)) {
            Some((_, program)) => {
                Err(self.malformed(&format!("the archive is compressed; decompress it first with {program}")))
            }
            None => Ok(()),
        }
    }

    /// A number in a `tar` header is written in base 256 or in octal digits. Spaces may precede the octal digits of a
    /// `tar` number, and spaces or zero bytes may follow them.
    fn parse_number(&self, field: &[u8]) -> Result<u64, Error> {
        let wrong = || self.malformed("malformed number in the header");
        if field[0] == 0x80 {
            let (high, low) = field[1..].split_at(field.len() - 9);
            if high.iter().any(|byte| *byte != 0) {
                return Err(wrong());
            }
            return Ok(low.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)));
        }
        let text = field.trim_ascii_start();
        let end = text.iter().position(|byte| matches!(byte, 0 | b' ')).unwrap_or(text.len());
        let (digits, rest) = text.split_at(end);
        let octal = digits.iter().all(|byte| (b'0'..=b'7').contains(byte));
        if !octal || rest.iter().any(|byte| !matches!(byte, 0 | b' ')) {
            return Err(wrong());
        }
        let text = std::str::from_utf8(digits).map_err(|_| wrong())?;
        if text.is_empty() { Ok(0) } else { u64::from_str_radix(text, 8).map_err(|_| wrong()) }
    }

    fn read_record(&mut self, size: u64) -> Result<Vec<u8>, Error> {
        if size > RECORD_BYTES_MAX {
            return Err(self.malformed("a metadata record is too long"));
        }
        self.remaining = (size, block_padding(size));
        let mut record = vec![0; usize::try_from(size).unwrap_or_default()];
        let mut at = 0;
        while at < record.len() {
            at += self.read_content(&mut record[at..])?;
        }
        self.read_block_padding()?;
        Ok(record)
    }

    fn read_pax_records(&mut self, size: u64, overrides: &mut PaxOverrides) -> Result<(), Error> {
        let record = self.read_record(size)?;
        for (key, value) in self.parse_pax_pairs(&record)? {
            match key {
                "path" => self.set_path_override(overrides, value.to_vec())?,
                "size" if overrides.size.is_none() => {
                    let text = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                    let size = text.and_then(|text| text.parse().ok());
                    overrides.size = Some(size.ok_or_else(|| self.malformed("malformed size"))?);
                }
                key if is_ignored_pax_key(key) => {}
                _ => {
                    return Err(self.malformed("unknown key in a metadata record"));
                }
            }
        }
        Ok(())
    }

    /// Global metadata records apply to all later entries, so only records that can be ignored are accepted.
    fn read_global_records(&mut self, size: u64) -> Result<(), Error> {
        let record = self.read_record(size)?;
        match self.parse_pax_pairs(&record)?.iter().all(|(key, _)| is_ignored_pax_key(key)) {
            true => Ok(()),
            false => Err(self.malformed("global metadata records are not supported")),
        }
    }

    fn parse_pax_pairs<'r>(&self, record: &'r [u8]) -> Result<Vec<(&'r str, &'r [u8])>, Error> {
        let wrong = || self.malformed("malformed metadata record");
        let (mut pairs, mut rest) = (Vec::new(), record);
        while !rest.is_empty() {
            let space = rest.iter().position(|byte| *byte == b' ').ok_or_else(wrong)?;
            let digits = std::str::from_utf8(&rest[..space]).map_err(|_| wrong())?;
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(wrong());
            }
            let length: usize = digits.parse().map_err(|_| wrong())?;
            let line = rest.get(space + 1..length).ok_or_else(wrong)?;
            let line = line.strip_suffix(b"\n").ok_or_else(wrong)?;
            let equals = line.iter().position(|byte| *byte == b'=').ok_or_else(wrong)?;
            pairs.push((std::str::from_utf8(&line[..equals]).map_err(|_| wrong())?, &line[equals + 1..]));
            rest = &rest[length..];
        }
        Ok(pairs)
    }

    fn set_path_override(&self, overrides: &mut PaxOverrides, path: Vec<u8>) -> Result<(), Error> {
        if overrides.path.is_some() {
            return Err(self.malformed("the entry has two names"));
        }
        if path.is_empty() || path.len() > PATH_BYTES_MAX {
            return Err(self.malformed("its path is empty or too long"));
        }
        overrides.path = Some(path);
        Ok(())
    }

    /// The padding after an archived file must consist of zero bytes.
    fn read_block_padding(&mut self) -> Result<(), Error> {
        let mut padding = vec![0; std::mem::take(&mut self.remaining.1)];
        let mut at = 0;
        while at < padding.len() {
            match self.read(&mut padding[at..])? {
                0 => return Err(self.malformed("the archive is truncated inside this entry")),
                count => at += count,
            }
        }
        if padding.iter().any(|byte| *byte != 0) {
            return Err(self.malformed("the padding after the file is not zero"));
        }
        Ok(())
    }

    /// Only zero blocks may follow the first zero block, which marks the end of the archive.
    fn check_trailing_blocks(&mut self) -> Result<(), Error> {
        for _ in 0..TRAILING_BLOCKS_MAX {
            let mut block = [0; BLOCK_BYTES];
            if !self.read_block(&mut block)? {
                return Ok(());
            }
            if block != [0; BLOCK_BYTES] {
                return Err(self.malformed("data follows the end of the archive"));
            }
        }
        Err(self.malformed("too many blocks follow the end of the archive"))
    }

    fn read_block(&mut self, block: &mut [u8; BLOCK_BYTES]) -> Result<bool, Error> {
        let mut at = 0;
        while at < BLOCK_BYTES {
            match self.read(&mut block[at..])? {
                0 if at == 0 => return Ok(false),
                0 => {
                    self.refuse_compressed(&block[..at])?;
                    return Err(self.malformed("the archive is truncated inside a header"));
                }
                count => at += count,
            }
        }
        Ok(true)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        loop {
            match self.from.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Error::new(ErrorKind::Io, format!("cannot read the archive: {}", error.kind()))
                        .with_next_step("send the whole archive again"));
                }
                Ok(count) => return Ok(count),
            }
        }
    }

    /// An error about an archive entry does not contain the entry's name, because the name is not trusted.
    pub(super) fn malformed(&self, what: &str) -> Error {
        Error::new(
            ErrorKind::BadRequest,
            format!("entry {} of the archive: {what}; nothing was imported", self.entry_count),
        )
        .with_next_step("correct the archive, which must be an uncompressed tar file, and import it again")
        .with_entry(self.entry_count)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TarHeaderFormat {
    Posix,
    Gnu,
}

fn header_path(header: &[u8; BLOCK_BYTES], format: TarHeaderFormat) -> Vec<u8> {
    let until_zero =
        |field: &[u8]| field.iter().position(|byte| *byte == 0).map_or(field, |end| &field[..end]).to_vec();
    let name = until_zero(&header[NAME_FIELD]);
    match format {
        TarHeaderFormat::Posix if header[PREFIX_FIELD.start] != 0 => {
            [until_zero(&header[PREFIX_FIELD]).as_slice(), b"/", &name].concat()
        }
        TarHeaderFormat::Posix | TarHeaderFormat::Gnu => name,
    }
}

fn is_ignored_pax_key(key: &str) -> bool {
    IGNORED_PAX_KEYS.contains(&key) || IGNORED_PAX_PREFIXES.iter().any(|beginning| key.starts_with(beginning))
}

const COPY_BUFFER_BYTES: usize = 64 * 1024;

pub(super) struct TarWriter<'a> {
    out: &'a mut dyn Write,
}

impl<'a> TarWriter<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    pub(super) fn write_directory(&mut self, path: &[u8], mode: u32, modified_s: u64) -> io::Result<()> {
        self.write_header(&[path, b"/"].concat(), b'5', mode, modified_s, 0)
    }

    /// Writing an archived file fails if its content is shorter than `size`.
    pub(super) fn write_file(
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

    pub(super) fn finish(self) -> io::Result<()> {
        self.out.write_all(&[0; 2 * BLOCK_BYTES])?;
        self.out.flush()
    }

    fn write_header(&mut self, path: &[u8], kind: u8, mode: u32, modified_s: u64, size: u64) -> io::Result<()> {
        if path.len() > NAME_FIELD.len() {
            // A long name is written before the entry, in an entry of its own, with a final zero byte.
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

fn write_octal(field: &mut [u8], value: u64) {
    let digits = field.len() - 1;
    let text = format!("{value:0digits$o}");
    field[..digits].copy_from_slice(&text.as_bytes()[text.len() - digits..]);
}

/// A number that is too long for octal digits is written to a `tar` header in base 256.
fn write_number(field: &mut [u8], value: u64) {
    if value < 1 << (3 * (field.len() - 1)) {
        return write_octal(field, value);
    }
    let end = field.len();
    field[end - 8..].copy_from_slice(&value.to_be_bytes());
    field[0] = 0x80;
}
