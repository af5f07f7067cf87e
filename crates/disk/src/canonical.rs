//! From a path that may hold links to the one link-free spelling of the same place. Links are read and expanded here,
//! in user space, one at a time, each step confined like every other step. Never lets the kernel follow one; never
//! answers with a place outside the root, not even for a link that would come back.

use path::RelPath;
use rustix::{fs::OFlags, io::Errno};

use crate::{
    DiskError, ErrorKind, FileType, Last, Stat,
    confines::{Confines, Held, Resolver, duplicate},
    sys,
};
use std::os::fd::AsFd;

/// Most links expanded for one path; the kernel's own limit.
pub const LINKS_MAX: usize = 40;
/// Most components looked at for one path, those of link targets included.
pub const STEPS_MAX: usize = 4096;

/// The link-free spelling of `path`, and what is there where that was seen on the way. What does not exist yet is kept as it
/// is written.
pub(crate) fn canonical(
    confines: &Confines,
    roots: &[Vec<u8>],
    path: &RelPath,
    last: Last,
) -> Result<(RelPath, Option<Stat>), DiskError> {
    let flags = match last {
        Last::Follow => OFlags::PATH,
        Last::Keep => sys::PLACE,
    };
    match confines.resolver() {
        Resolver::Walker => {}
        Resolver::Kernel | Resolver::Auto => match confines.open_in_kernel(path, flags) {
            Err(error) if error.is_errno(Errno::LOOP) || error.kind == ErrorKind::Moved => {}
            Ok(handle) => {
                let held = confines.unhidden(path, handle)?;
                return Ok((path.clone(), Some(held.meta.stat)));
            }
            Err(error) => {
                if confines.hides_anything() {
                    confines.refuse_hidden_on_the_way(path)?;
                }
                // Nothing before the missing name was a link, or the answer would be another one.
                let is_missing = error.kind == ErrorKind::NotFound;
                return if is_missing { Ok((path.clone(), None)) } else { Err(error) };
            }
        },
    }
    Ok((Expansion::start(confines, roots, path)?.run(last)?, None))
}

/// One walk with its own link expansion.
struct Expansion<'a> {
    confines: &'a Confines,
    /// The absolute spellings of the root.
    roots: &'a [Vec<u8>],
    /// Where the walk stands.
    current: Held,
    /// How it got there, link-free.
    resolved: Vec<Vec<u8>>,
    /// What is still to go, the next one last.
    pending: Vec<Vec<u8>>,
    links: usize,
}

impl<'a> Expansion<'a> {
    fn start(confines: &'a Confines, roots: &'a [Vec<u8>], path: &RelPath) -> Result<Self, DiskError> {
        let pending = path.components().rev().map(<[u8]>::to_vec).collect();
        let current = root_of(confines)?;
        Ok(Self { confines, roots, current, resolved: Vec::new(), pending, links: 0 })
    }

    fn run(mut self, last: Last) -> Result<RelPath, DiskError> {
        let mut steps = 0;
        while let Some(name) = self.pending.pop() {
            steps += 1;
            if steps > STEPS_MAX {
                return Err(refusal(ErrorKind::LinkLoop));
            }
            if self.current.file_type() != FileType::Directory {
                return Err(refusal(ErrorKind::NotDirectory));
            }
            match name.as_slice() {
                b"" | b"." => {}
                b".." => self.go_up()?,
                _ => match self.confines.child(&self.current, &name) {
                    Err(error) if error.kind == ErrorKind::NotFound => return self.finish_missing(name),
                    Err(error) if error.is_errno(Errno::LOOP) => {
                        return Err(error.seen_as(ErrorKind::Moved));
                    }
                    Err(error) => return Err(error),
                    Ok(held) if held.file_type() == FileType::Link => {
                        if last == Last::Keep && self.pending.is_empty() {
                            self.resolved.push(name);
                            break;
                        }
                        self.expand(&held)?;
                    }
                    Ok(held) => {
                        self.resolved.push(name);
                        self.current = held;
                    }
                },
            }
        }
        assemble(&self.resolved)
    }

    /// Puts the target of a link in front of what is still to go.
    fn expand(&mut self, link: &Held) -> Result<(), DiskError> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(refusal(ErrorKind::LinkLoop));
        }
        let target = sys::read_link(link.handle.as_fd())?;
        let relative = match target.first() {
            Some(b'/') => {
                let rest = self.roots.iter().find_map(|root| strip_root(&target, root));
                let rest = rest.ok_or(refusal(ErrorKind::Escape))?.to_vec();
                self.resolved.clear();
                self.current = root_of(self.confines)?;
                rest
            }
            Some(_) | None => target,
        };
        self.pending.extend(relative.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
        Ok(())
    }

    /// One directory up, by resolving what is left from the root again.
    fn go_up(&mut self) -> Result<(), DiskError> {
        self.resolved.pop().ok_or(refusal(ErrorKind::Escape))?;
        self.current = self.confines.open(&assemble(&self.resolved)?)?;
        Ok(())
    }

    /// The rest of a path whose next name is missing. A `..` behind a missing name leads nowhere, and one that would
    /// leave the root is refused as such.
    fn finish_missing(mut self, name: Vec<u8>) -> Result<RelPath, DiskError> {
        self.resolved.push(name);
        let mut went_up = false;
        while let Some(name) = self.pending.pop() {
            match name.as_slice() {
                b"" | b"." => {}
                b".." => {
                    went_up = true;
                    self.resolved.pop().ok_or(refusal(ErrorKind::Escape))?;
                }
                _ => self.resolved.push(name),
            }
        }
        if went_up { Err(refusal(ErrorKind::NotFound)) } else { assemble(&self.resolved) }
    }
}

fn root_of(confines: &Confines) -> Result<Held, DiskError> {
    let root = confines.root();
    Ok(Held { handle: duplicate(root.handle.as_fd())?, meta: root.meta })
}

fn refusal(kind: ErrorKind) -> DiskError {
    DiskError::new(kind, "resolve")
}

fn assemble(components: &[Vec<u8>]) -> Result<RelPath, DiskError> {
    RelPath::from_components(components.iter().map(Vec::as_slice))
        .map_err(|_| refusal(ErrorKind::NameTooLong))
}

/// The rest of an absolute target behind the components of `root`; compared as components, never as text.
fn strip_root<'t>(target: &'t [u8], root: &[u8]) -> Option<&'t [u8]> {
    let mut rest = target;
    for wanted in root.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
        loop {
            let start = rest.iter().position(|byte| *byte != b'/')?;
            rest = &rest[start..];
            let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            let part = &rest[..end];
            rest = &rest[end..];
            match part {
                b"." => {}
                _ if part == wanted => break,
                _ => return None,
            }
        }
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_compared_by_component() {
        assert_eq!(strip_root(b"/srv/ws/a/b", b"/srv/ws"), Some(b"/a/b".as_slice()));
        assert_eq!(strip_root(b"//srv/.//ws", b"/srv/ws"), Some(b"".as_slice()));
        assert_eq!(strip_root(b"/srv/ws2/a", b"/srv/ws"), None);
        assert_eq!(strip_root(b"/srv/x/../ws/a", b"/srv/ws"), None);
        assert_eq!(strip_root(b"/srv", b"/srv/ws"), None);
        assert_eq!(strip_root(b"/a", b"/"), Some(b"/a".as_slice()));
    }
}
