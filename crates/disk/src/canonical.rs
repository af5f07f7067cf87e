//! Resolves the symbolic links of a path to get its canonical path. Links are read and expanded in user space, one at a
//! time, so the kernel never follows a link. A symbolic link that leaves the root is an error, even if its target leads
//! back into the root.

use std::os::fd::AsFd;

use rustix::{fs::OFlags, io::Errno};
use stead_path::RelPath;

use crate::{
    DiskError, DiskErrorKind, FileType, FinalSymlink,
    confinement::{ConfinedPathResolver, OPathFdWithStat, PathResolutionMethod},
    sys,
};

/// The most symbolic links that are expanded for one path; the kernel has the same limit.
pub const SYMLINKS_MAX: usize = 40;
/// The most path components that are visited to resolve one path, including the components of link targets.
pub const STEPS_MAX: usize = 4096;

/// A path without symbolic links, and the handle of what is there; `None` if the path does not exist.
pub(crate) type CanonicalPathWithHandle = (RelPath, Option<OPathFdWithStat>);

/// Path components that do not exist are kept as written in the canonical path.
pub(crate) fn resolve_canonical(
    confines: &ConfinedPathResolver,
    roots: &[Vec<u8>],
    path: &RelPath,
    last: FinalSymlink,
) -> Result<CanonicalPathWithHandle, DiskError> {
    let flags = match last {
        FinalSymlink::Follow => OFlags::PATH,
        FinalSymlink::Keep => sys::PATH_HANDLE_FLAGS,
    };
    match confines.resolver() {
        PathResolutionMethod::Walker => {}
        PathResolutionMethod::Kernel | PathResolutionMethod::Auto => match confines.open_in_kernel(path, flags) {
            Err(error) if error.is_errno(Errno::LOOP) || error.kind == DiskErrorKind::ChangedConcurrently => {}
            Ok(handle) => {
                return Ok((path.clone(), Some(confines.check_not_hidden(path, handle)?)));
            }
            Err(error) => {
                if confines.hides_anything() {
                    confines.refuse_hidden_components(path)?;
                }
                // No component before the missing component is a link, because the kernel reports a link as `ELOOP`.
                let is_missing = error.kind == DiskErrorKind::NotFound;
                return if is_missing { Ok((path.clone(), None)) } else { Err(error) };
            }
        },
    }
    SymlinkExpander::start(confines, roots, path)?.run(last)
}

struct SymlinkExpander<'a> {
    confines: &'a ConfinedPathResolver,
    /// The absolute paths that lead to the root directory of the workspace.
    roots: &'a [Vec<u8>],
    current: OPathFdWithStat,
    resolved: Vec<Vec<u8>>,
    /// The path components that are not resolved yet, in reverse order.
    pending: Vec<Vec<u8>>,
    symlinks_followed: usize,
}

impl<'a> SymlinkExpander<'a> {
    fn start(confines: &'a ConfinedPathResolver, roots: &'a [Vec<u8>], path: &RelPath) -> Result<Self, DiskError> {
        let pending = path.components().rev().map(<[u8]>::to_vec).collect();
        let current = confines.root().try_clone()?;
        Ok(Self { confines, roots, current, resolved: Vec::new(), pending, symlinks_followed: 0 })
    }

    fn run(mut self, last: FinalSymlink) -> Result<CanonicalPathWithHandle, DiskError> {
        let mut steps = 0;
        while let Some(name) = self.pending.pop() {
            steps += 1;
            if steps > STEPS_MAX {
                return Err(resolution_error(DiskErrorKind::SymlinkLoop));
            }
            if self.current.file_type() != FileType::Directory {
                return Err(resolution_error(DiskErrorKind::NotDirectory));
            }
            match name.as_slice() {
                b"" | b"." => {}
                b".." => self.go_up()?,
                _ => match self.confines.child(&self.current, &name) {
                    Err(error) if error.kind == DiskErrorKind::NotFound => {
                        return Ok((self.finish_missing(name)?, None));
                    }
                    Err(error) if error.is_errno(Errno::LOOP) => {
                        return Err(error.with_kind(DiskErrorKind::ChangedConcurrently));
                    }
                    Err(error) => return Err(error),
                    Ok(opened) if opened.file_type() == FileType::Symlink => {
                        if last == FinalSymlink::Keep && self.pending.is_empty() {
                            self.resolved.push(name);
                            self.current = opened;
                            break;
                        }
                        self.expand_symlink(&opened)?;
                    }
                    Ok(opened) => {
                        self.resolved.push(name);
                        self.current = opened;
                    }
                },
            }
        }
        Ok((join_components(&self.resolved)?, Some(self.current)))
    }

    fn expand_symlink(&mut self, link: &OPathFdWithStat) -> Result<(), DiskError> {
        self.symlinks_followed += 1;
        if self.symlinks_followed > SYMLINKS_MAX {
            return Err(resolution_error(DiskErrorKind::SymlinkLoop));
        }
        let target = sys::read_link(link.handle.as_fd())?;
        let relative = match target.first() {
            Some(b'/') => {
                let rest = self.roots.iter().find_map(|root| strip_root(&target, root));
                let rest = rest.ok_or(resolution_error(DiskErrorKind::OutsideRoot))?.to_vec();
                self.resolved.clear();
                self.current = self.confines.root().try_clone()?;
                rest
            }
            Some(_) | None => target,
        };
        self.pending.extend(relative.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
        Ok(())
    }

    fn go_up(&mut self) -> Result<(), DiskError> {
        self.resolved.pop().ok_or(resolution_error(DiskErrorKind::OutsideRoot))?;
        self.current = self.confines.open(&join_components(&self.resolved)?)?;
        Ok(())
    }

    /// A `..` after a missing path component is an error.
    fn finish_missing(mut self, name: Vec<u8>) -> Result<RelPath, DiskError> {
        self.resolved.push(name);
        let mut went_up = false;
        while let Some(name) = self.pending.pop() {
            match name.as_slice() {
                b"" | b"." => {}
                b".." => {
                    went_up = true;
                    self.resolved.pop().ok_or(resolution_error(DiskErrorKind::OutsideRoot))?;
                }
                _ => self.resolved.push(name),
            }
        }
        if went_up { Err(resolution_error(DiskErrorKind::NotFound)) } else { join_components(&self.resolved) }
    }
}

fn resolution_error(kind: DiskErrorKind) -> DiskError {
    DiskError::new(kind, "resolve")
}

fn join_components(components: &[Vec<u8>]) -> Result<RelPath, DiskError> {
    RelPath::from_components(components.iter().map(Vec::as_slice))
        .map_err(|_| resolution_error(DiskErrorKind::NameTooLong))
}

/// Returns the rest of an absolute link target after `root`; both paths are compared component by component.
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
