//! Reading an archive, as a stream, from somebody who may mean harm. Promises: an entry is a plain file or a directory
//! with a path below the top; whatever else comes, or could be read in two ways, ends the reading; what is held in memory is
//! bounded.

use std::io::Read;

use engine::{Failure, Kind};
use path::{PATH_BYTES_MAX, RelPath};

use super::{BLOCK, CHECKSUM, GNU, KIND, MAGIC, MODE, NAME, POSIX, PREFIX, SIZE, checksum, padding};

/// Bytes of one record that describes the next entry.
const RECORD_BYTES_MAX: u64 = 64 << 10;
/// Records of that kind before one entry.
const RECORDS_MAX: usize = 4;
/// Keys of such records that change nothing here: times, owners and the like.
const HARMLESS: &[&str] =
    &["mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment", "hdrcharset"];
/// Beginnings of keys that change nothing here.
const HARMLESS_BEGINNINGS: &[&str] = &["SCHILY.", "LIBARCHIVE.", "RHT.", "STEAD."];
/// Blocks of zeros after the end.
const TAIL_BLOCKS_MAX: usize = 1 << 16;

/// How what people send instead of plain tar begins, and what undoes it.
const COMPRESSED: &[(&[u8], &str)] = &[
    (&[0x1f, 0x8b], "gunzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "unzstd"),
    (b"BZh", "bunzip2"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "unxz"),
];

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A directory.
    Directory(RelPath),
    /// A file, whose bytes are read next.
    File {
        path: RelPath,
        /// Whether its owner may run it.
        runnable: bool,
        size: u64,
    },
}

/// An archive on its way in.
pub(crate) struct Reader<'a> {
    from: &'a mut dyn Read,
    /// Entries so far, for saying where something is wrong.
    count: u64,
    /// Bytes of the present file that were not read, and what fills its last block.
    left: (u64, usize),
}

/// What records say about the next entry.
#[derive(Default)]
struct Said {
    path: Option<Vec<u8>>,
    size: Option<u64>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(from: &'a mut dyn Read) -> Self {
        Self { from, count: 0, left: (0, 0) }
    }

    /// The next entry; nothing at the end. What was not read of the one before is passed over.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, Failure> {
        while self.left.0 > 0 {
            let mut piece = [0; BLOCK];
            self.content(&mut piece)?;
        }
        self.fill()?;
        self.count += 1;
        let mut said = Said::default();
        for _ in 0..=RECORDS_MAX {
            let mut header = [0; BLOCK];
            if !self.block(&mut header)? {
                return Err(self.bad("the archive breaks off before its end"));
            }
            if header == [0; BLOCK] {
                if said.path.is_some() || said.size.is_some() {
                    return Err(self.bad("the archive ends after a record about an entry"));
                }
                self.tail()?;
                return Ok(None);
            }
            let form = self.form(&header)?;
            let size = self.number(&header[SIZE])?;
            match header[KIND] {
                b'L' => {
                    let mut name = self.record(size)?;
                    while name.last() == Some(&0) {
                        name.pop();
                    }
                    self.say_path(&mut said, name)?;
                }
                b'x' => self.records(size, &mut said)?,
                b'g' => self.global(size)?,
                b'0' | 0 | b'5' => return self.entry(&header, form, size, said).map(Some),
                b'1' | b'2' | b'K' => return Err(self.bad("links are not taken in")),
                b'3' | b'4' | b'6' => return Err(self.bad("devices and pipes are not taken in")),
                _ => return Err(self.bad("only plain files and directories are taken in")),
            }
        }
        Err(self.bad("too many records describe it"))
    }

    /// Bytes of the present file; nothing when all are read.
    pub(crate) fn content(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        let wanted = usize::try_from(self.left.0).unwrap_or(buffer.len()).min(buffer.len());
        if wanted == 0 {
            return Ok(0);
        }
        let count = self.read(&mut buffer[..wanted])?;
        if count == 0 {
            return Err(self.bad("the archive breaks off in it"));
        }
        self.left.0 -= count as u64;
        Ok(count)
    }

    fn entry(&mut self, header: &[u8; BLOCK], form: Form, size: u64, said: Said) -> Result<Entry, Failure> {
        let raw = match said.path {
            Some(path) => path,
            None => named(header, form),
        };
        let is_directory = header[KIND] == b'5';
        if raw.ends_with(b"/") && !is_directory {
            return Err(self.bad("a file has the name of a directory"));
        }
        let path = self.path(&raw)?;
        let size = said.size.unwrap_or(size);
        if is_directory {
            if size != 0 {
                return Err(self.bad("a directory has content"));
            }
            return Ok(Entry::Directory(path));
        }
        if path.is_root() {
            return Err(self.bad("a file has no name"));
        }
        let runnable = self.number(&header[MODE])? & 0o100 != 0;
        self.left = (size, padding(size));
        Ok(Entry::File { path, runnable, size })
    }

    /// A path below the top. One leading `./` and one trailing slash are as `tar` writes them; nothing else is forgiven.
    fn path(&self, raw: &[u8]) -> Result<RelPath, Failure> {
        if raw.first() == Some(&b'/') {
            return Err(self.bad("its path is absolute"));
        }
        let raw = raw.strip_prefix(b"./").unwrap_or(raw);
        let raw = raw.strip_suffix(b"/").unwrap_or(raw);
        if raw.is_empty() || raw == b"." {
            return Ok(RelPath::root());
        }
        if raw.contains(&0) {
            return Err(self.bad("its path holds a zero"));
        }
        if raw.split(|byte| *byte == b'/').any(|part| part.is_empty() || part == b"." || part == b"..") {
            return Err(self.bad("its path has a part that is empty, . or .."));
        }
        RelPath::from_components(raw.split(|byte| *byte == b'/'))
            .map_err(|error| self.bad(&format!("its path cannot be used: {error}")))
    }

    /// The form of a header whose sum is right.
    fn form(&self, header: &[u8; BLOCK]) -> Result<Form, Failure> {
        let told = self.number(&header[CHECKSUM]);
        if !told.as_ref().is_ok_and(|told| *told == checksum(header)) {
            self.refuse_compressed(header)?;
            told?;
            return Err(self.bad("its header is damaged, or this is no archive"));
        }
        match &header[MAGIC] {
            magic if magic == POSIX => Ok(Form::Posix),
            magic if magic == GNU => Ok(Form::Gnu),
            _ => Err(self.bad("its header is of a form that is not known here")),
        }
    }

    /// Says what is wrong where it is the archive as a whole. Asked only of what is no header: a name may begin like this.
    fn refuse_compressed(&self, start: &[u8]) -> Result<(), Failure> {
        match COMPRESSED.iter().find(|(magic, _)| self.count == 1 && start.starts_with(magic)) {
            Some((_, undoes)) => Err(self.bad(&format!("it is compressed; send what {undoes} makes of it"))),
            None => Ok(()),
        }
    }

    /// A number: octal digits between spaces and zeros, or base 256.
    fn number(&self, field: &[u8]) -> Result<u64, Failure> {
        let wrong = || self.bad("a number in its header cannot be read");
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

    /// A record as a whole.
    fn record(&mut self, size: u64) -> Result<Vec<u8>, Failure> {
        if size > RECORD_BYTES_MAX {
            return Err(self.bad("a record about it is too long"));
        }
        self.left = (size, padding(size));
        let mut record = vec![0; usize::try_from(size).unwrap_or_default()];
        let mut at = 0;
        while at < record.len() {
            at += self.content(&mut record[at..])?;
        }
        self.fill()?;
        Ok(record)
    }

    /// Records of POSIX: a length, a key and a value each.
    fn records(&mut self, size: u64, said: &mut Said) -> Result<(), Failure> {
        let record = self.record(size)?;
        for (key, value) in self.pairs(&record)? {
            match key {
                "path" => self.say_path(said, value.to_vec())?,
                "size" if said.size.is_none() => {
                    let text = std::str::from_utf8(value)
                        .ok()
                        .filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                    let size = text.and_then(|text| text.parse().ok());
                    said.size = Some(size.ok_or_else(|| self.bad("its size cannot be read"))?);
                }
                key if is_harmless(key) => {}
                _ => return Err(self.bad("a record about it says what is not known here")),
            }
        }
        Ok(())
    }

    /// Records about all entries: only remarks.
    fn global(&mut self, size: u64) -> Result<(), Failure> {
        let record = self.record(size)?;
        match self.pairs(&record)?.iter().all(|(key, _)| is_harmless(key)) {
            true => Ok(()),
            false => Err(self.bad("a record about every entry is not taken in")),
        }
    }

    fn pairs<'r>(&self, record: &'r [u8]) -> Result<Vec<(&'r str, &'r [u8])>, Failure> {
        let wrong = || self.bad("a record about it cannot be read");
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

    fn say_path(&self, said: &mut Said, path: Vec<u8>) -> Result<(), Failure> {
        if said.path.is_some() {
            return Err(self.bad("it is named twice"));
        }
        if path.is_empty() || path.len() > PATH_BYTES_MAX {
            return Err(self.bad("its path is empty or too long"));
        }
        said.path = Some(path);
        Ok(())
    }

    /// Reads what fills the last block of a file; it must be zeros.
    fn fill(&mut self) -> Result<(), Failure> {
        let mut padding = vec![0; std::mem::take(&mut self.left.1)];
        let mut at = 0;
        while at < padding.len() {
            match self.read(&mut padding[at..])? {
                0 => return Err(self.bad("the archive breaks off in it")),
                count => at += count,
            }
        }
        if padding.iter().any(|byte| *byte != 0) {
            return Err(self.bad("something hides after it"));
        }
        Ok(())
    }

    /// Nothing but zeros follows the first block of zeros.
    fn tail(&mut self) -> Result<(), Failure> {
        for _ in 0..TAIL_BLOCKS_MAX {
            let mut block = [0; BLOCK];
            if !self.block(&mut block)? {
                return Ok(());
            }
            if block != [0; BLOCK] {
                return Err(self.bad("something follows the end"));
            }
        }
        Err(self.bad("too much follows the end"))
    }

    /// One whole block; says whether there was one.
    fn block(&mut self, block: &mut [u8; BLOCK]) -> Result<bool, Failure> {
        let mut at = 0;
        while at < BLOCK {
            match self.read(&mut block[at..])? {
                0 if at == 0 => return Ok(false),
                0 => {
                    self.refuse_compressed(&block[..at])?;
                    return Err(self.bad("the archive breaks off in a header"));
                }
                count => at += count,
            }
        }
        Ok(true)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        loop {
            match self.from.read(buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Failure::new(
                        Kind::Io,
                        format!("the archive could not be read: {}", error.kind()),
                    ));
                }
                Ok(count) => return Ok(count),
            }
        }
    }

    /// What is wrong with the present entry. Its name is not told: it may be anything.
    pub(crate) fn bad(&self, what: &str) -> Failure {
        Failure::new(
            Kind::BadRequest,
            format!("entry {} of the archive: {what}; nothing was taken in", self.count),
        )
        .fact("entry", self.count)
    }
}

/// Which form a header has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Posix,
    Gnu,
}

/// The name in a header.
fn named(header: &[u8; BLOCK], form: Form) -> Vec<u8> {
    let until_zero =
        |field: &[u8]| field.iter().position(|byte| *byte == 0).map_or(field, |end| &field[..end]).to_vec();
    let name = until_zero(&header[NAME]);
    match form {
        Form::Posix if header[PREFIX.start] != 0 => {
            [until_zero(&header[PREFIX]).as_slice(), b"/", &name].concat()
        }
        Form::Posix | Form::Gnu => name,
    }
}

fn is_harmless(key: &str) -> bool {
    HARMLESS.contains(&key) || HARMLESS_BEGINNINGS.iter().any(|beginning| key.starts_with(beginning))
}
