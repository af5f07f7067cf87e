//! Reads an untrusted archive as a stream. Promises: an entry is a regular file or a directory with a path below the root;
//! any other or ambiguous entry is an error; memory use is bounded.

use std::io::Read;

use stead_engine::{Error, ErrorKind};
use stead_path::{PATH_BYTES_MAX, RelPath};

use super::{
    BLOCK_BYTES, CHECKSUM_FIELD, GNU_MAGIC, KIND_FIELD, MAGIC_FIELD, MODE_FIELD, NAME_FIELD, POSIX_MAGIC, PREFIX_FIELD,
    SIZE_FIELD, block_padding, header_checksum,
};

/// Limit of the size of one metadata record.
const RECORD_BYTES_MAX: u64 = 64 << 10;
/// Limit of metadata records before one entry.
const RECORDS_MAX: usize = 4;
/// Ignored keys of metadata records: times, owners and the like.
const IGNORED_PAX_KEYS: &[&str] = &["mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment", "hdrcharset"];
const IGNORED_PAX_PREFIXES: &[&str] = &["SCHILY.", "LIBARCHIVE.", "RHT.", "STEAD."];
/// Limit of zero blocks after the end.
const TRAILING_BLOCKS_MAX: usize = 1 << 16;

/// Signatures of compressed archives, and the program that decompresses them.
const COMPRESSION_SIGNATURES: &[(&[u8], &str)] = &[
    (&[0x1f, 0x8b], "gunzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "unzstd"),
    (b"BZh", "bunzip2"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "unxz"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TarEntry {
    Directory(RelPath),
    /// A file, whose content is read next.
    File {
        path: RelPath,
        is_executable: bool,
        size: u64,
    },
}

pub(crate) struct TarReader<'a> {
    from: &'a mut dyn Read,
    /// Entries so far, for error messages.
    entry_count: u64,
    /// Unread bytes of the current file, and its padding.
    remaining: (u64, usize),
}

/// Metadata records about the next entry.
#[derive(Default)]
struct PaxOverrides {
    path: Option<Vec<u8>>,
    size: Option<u64>,
}

impl<'a> TarReader<'a> {
    pub(crate) fn new(from: &'a mut dyn Read) -> Self {
        Self { from, entry_count: 0, remaining: (0, 0) }
    }

    /// The next entry; `None` at the end. Skips the unread rest of the previous one.
    pub(crate) fn next(&mut self) -> Result<Option<TarEntry>, Error> {
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
                return Err(self.malformed_archive_error("the archive is truncated"));
            }
            if header == [0; BLOCK_BYTES] {
                if overrides.path.is_some() || overrides.size.is_some() {
                    return Err(self.malformed_archive_error("the archive ends after a metadata record"));
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
                b'1' | b'2' | b'K' => return Err(self.malformed_archive_error("links are not supported")),
                b'3' | b'4' | b'6' => {
                    return Err(self.malformed_archive_error("devices and pipes are not supported"));
                }
                _ => {
                    return Err(self.malformed_archive_error("only regular files and directories are supported"));
                }
            }
        }
        Err(self.malformed_archive_error("too many metadata records"))
    }

    /// Reads content of the current file; zero at its end.
    pub(crate) fn read_content(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let wanted = usize::try_from(self.remaining.0).unwrap_or(buffer.len()).min(buffer.len());
        if wanted == 0 {
            return Ok(0);
        }
        let count = self.read(&mut buffer[..wanted])?;
        if count == 0 {
            return Err(self.malformed_archive_error("the archive is truncated inside this entry"));
        }
        self.remaining.0 -= count as u64;
        Ok(count)
    }

    fn build_entry(
        &mut self,
        header: &[u8; BLOCK_BYTES],
        format: TarFormat,
        size: u64,
        overrides: PaxOverrides,
    ) -> Result<TarEntry, Error> {
        let raw = match overrides.path {
            Some(path) => path,
            None => header_path(header, format),
        };
        let is_directory = header[KIND_FIELD] == b'5';
        if raw.ends_with(b"/") && !is_directory {
            return Err(self.malformed_archive_error("a file has the name of a directory"));
        }
        let path = self.path(&raw)?;
        let size = overrides.size.unwrap_or(size);
        if is_directory {
            if size != 0 {
                return Err(self.malformed_archive_error("a directory has content"));
            }
            return Ok(TarEntry::Directory(path));
        }
        if path.is_root() {
            return Err(self.malformed_archive_error("a file has no name"));
        }
        let runnable = self.parse_number(&header[MODE_FIELD])? & 0o100 != 0;
        self.remaining = (size, block_padding(size));
        Ok(TarEntry::File { path, is_executable: runnable, size })
    }

    /// Parses a path. Accepts one leading `./` and one trailing slash, as `tar` writes them.
    fn path(&self, raw: &[u8]) -> Result<RelPath, Error> {
        if raw.first() == Some(&b'/') {
            return Err(self.malformed_archive_error("its path is absolute"));
        }
        let raw = raw.strip_prefix(b"./").unwrap_or(raw);
        let raw = raw.strip_suffix(b"/").unwrap_or(raw);
        if raw.is_empty() || raw == b"." {
            return Ok(RelPath::root());
        }
        if raw.contains(&0) {
            return Err(self.malformed_archive_error("its path contains a zero byte"));
        }
        if raw.split(|byte| *byte == b'/').any(|part| part.is_empty() || part == b"." || part == b"..") {
            return Err(self.malformed_archive_error("its path has a component that is empty, . or .."));
        }
        RelPath::from_components(raw.split(|byte| *byte == b'/'))
            .map_err(|error| self.malformed_archive_error(&format!("invalid path: {error}")))
    }

    /// The format of a header with a correct checksum.
    fn detect_format(&self, header: &[u8; BLOCK_BYTES]) -> Result<TarFormat, Error> {
        let checksum = self.parse_number(&header[CHECKSUM_FIELD]);
        if !checksum.as_ref().is_ok_and(|checksum| *checksum == header_checksum(header)) {
            self.refuse_compressed(header)?;
            checksum?;
            return Err(self.malformed_archive_error("the header is damaged, or this is not a tar archive"));
        }
        match &header[MAGIC_FIELD] {
            magic if magic == POSIX_MAGIC => Ok(TarFormat::Posix),
            magic if magic == GNU_MAGIC => Ok(TarFormat::Gnu),
            _ => Err(self.malformed_archive_error("unknown header format")),
        }
    }

    /// Reports a compressed archive. Only called for invalid headers: a file name may begin with such a signature.
    fn refuse_compressed(&self, start: &[u8]) -> Result<(), Error> {
        match COMPRESSION_SIGNATURES.iter().find(|(magic, _)| self.entry_count == 1 && start.starts_with(magic)) {
            Some((_, program)) => {
                Err(self
                    .malformed_archive_error(&format!("the archive is compressed; decompress it first with {program}")))
            }
            None => Ok(()),
        }
    }

    /// Parses a number: octal digits between spaces and zeros, or base 256.
    fn parse_number(&self, field: &[u8]) -> Result<u64, Error> {
        let wrong = || self.malformed_archive_error("malformed number in the header");
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
            return Err(self.malformed_archive_error("a metadata record is too long"));
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

    /// Reads POSIX records: length, key and value.
    fn read_pax_records(&mut self, size: u64, overrides: &mut PaxOverrides) -> Result<(), Error> {
        let record = self.read_record(size)?;
        for (key, value) in self.parse_pax_pairs(&record)? {
            match key {
                "path" => self.set_path_override(overrides, value.to_vec())?,
                "size" if overrides.size.is_none() => {
                    let text = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                    let size = text.and_then(|text| text.parse().ok());
                    overrides.size = Some(size.ok_or_else(|| self.malformed_archive_error("malformed size"))?);
                }
                key if is_ignored_pax_key(key) => {}
                _ => {
                    return Err(self.malformed_archive_error("unknown key in a metadata record"));
                }
            }
        }
        Ok(())
    }

    /// Reads records about all entries; only comments are allowed.
    fn read_global_records(&mut self, size: u64) -> Result<(), Error> {
        let record = self.read_record(size)?;
        match self.parse_pax_pairs(&record)?.iter().all(|(key, _)| is_ignored_pax_key(key)) {
            true => Ok(()),
            false => Err(self.malformed_archive_error("global metadata records are not supported")),
        }
    }

    fn parse_pax_pairs<'r>(&self, record: &'r [u8]) -> Result<Vec<(&'r str, &'r [u8])>, Error> {
        let wrong = || self.malformed_archive_error("malformed metadata record");
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
            return Err(self.malformed_archive_error("the entry has two names"));
        }
        if path.is_empty() || path.len() > PATH_BYTES_MAX {
            return Err(self.malformed_archive_error("its path is empty or too long"));
        }
        overrides.path = Some(path);
        Ok(())
    }

    /// Reads the padding of a file, which must be zeros.
    fn read_block_padding(&mut self) -> Result<(), Error> {
        let mut padding = vec![0; std::mem::take(&mut self.remaining.1)];
        let mut at = 0;
        while at < padding.len() {
            match self.read(&mut padding[at..])? {
                0 => return Err(self.malformed_archive_error("the archive is truncated inside this entry")),
                count => at += count,
            }
        }
        if padding.iter().any(|byte| *byte != 0) {
            return Err(self.malformed_archive_error("the padding after the file is not zero"));
        }
        Ok(())
    }

    /// Checks that only zeros follow the first zero block.
    fn check_trailing_blocks(&mut self) -> Result<(), Error> {
        for _ in 0..TRAILING_BLOCKS_MAX {
            let mut block = [0; BLOCK_BYTES];
            if !self.read_block(&mut block)? {
                return Ok(());
            }
            if block != [0; BLOCK_BYTES] {
                return Err(self.malformed_archive_error("data follows the end of the archive"));
            }
        }
        Err(self.malformed_archive_error("too many blocks follow the end of the archive"))
    }

    /// Reads one block. Returns whether there was one.
    fn read_block(&mut self, block: &mut [u8; BLOCK_BYTES]) -> Result<bool, Error> {
        let mut at = 0;
        while at < BLOCK_BYTES {
            match self.read(&mut block[at..])? {
                0 if at == 0 => return Ok(false),
                0 => {
                    self.refuse_compressed(&block[..at])?;
                    return Err(self.malformed_archive_error("the archive is truncated inside a header"));
                }
                count => at += count,
            }
        }
        Ok(true)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        loop {
            match self.from.read(buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Error::new(ErrorKind::Io, format!("cannot read the archive: {}", error.kind())));
                }
                Ok(count) => return Ok(count),
            }
        }
    }

    /// An error about the current entry. It leaves out the name, which is untrusted.
    pub(crate) fn malformed_archive_error(&self, what: &str) -> Error {
        Error::new(ErrorKind::BadRequest, format!("archive entry {}: {what}; nothing was imported", self.entry_count))
            .with_detail("entry", self.entry_count)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TarFormat {
    Posix,
    Gnu,
}

fn header_path(header: &[u8; BLOCK_BYTES], format: TarFormat) -> Vec<u8> {
    let until_zero =
        |field: &[u8]| field.iter().position(|byte| *byte == 0).map_or(field, |end| &field[..end]).to_vec();
    let name = until_zero(&header[NAME_FIELD]);
    match format {
        TarFormat::Posix if header[PREFIX_FIELD.start] != 0 => {
            [until_zero(&header[PREFIX_FIELD]).as_slice(), b"/", &name].concat()
        }
        TarFormat::Posix | TarFormat::Gnu => name,
    }
}

fn is_ignored_pax_key(key: &str) -> bool {
    IGNORED_PAX_KEYS.contains(&key) || IGNORED_PAX_PREFIXES.iter().any(|beginning| key.starts_with(beginning))
}
