//! The files both servers work on: equal, made anew for every run, ordinary text with quotes and tabs to escape.

use std::{fs, path::Path};

/// A file that is read.
pub(super) struct Sized {
    pub(super) name: &'static str,
    pub(super) bytes: usize,
}

pub(super) const SMALL: Sized = Sized { name: "small.txt", bytes: 1 << 10 };
pub(super) const MIDDLE: Sized = Sized { name: "middle.txt", bytes: 100 << 10 };
pub(super) const LARGE: Sized = Sized { name: "large.txt", bytes: 10 << 20 };
/// The file that is written over and over.
pub(super) const WRITTEN: &str = "written.txt";
/// The directory with many entries, and how many.
pub(super) const MANY: (&str, usize) = ("many", 10_000);
/// The directory of small files that are read one after the other, and how many.
pub(super) const POOL: (&str, usize) = ("pool", 1_000);

/// Fills a workspace.
pub(super) fn fill(workspace: &Path) -> Result<(), String> {
    for sized in [SMALL, MIDDLE, LARGE] {
        put(&workspace.join(sized.name), &text(sized.bytes, 0))?;
    }
    put(&workspace.join(WRITTEN), &text(SMALL.bytes, 0))?;
    make(&workspace.join(MANY.0))?;
    for number in 0..MANY.1 {
        put(&workspace.join(MANY.0).join(format!("entry-{number:05}.txt")), "")?;
    }
    make(&workspace.join(POOL.0))?;
    for number in 0..POOL.1 {
        put(&workspace.join(pooled(number)), &text(SMALL.bytes, number))?;
    }
    Ok(())
}

/// The path of one of the pool.
pub(super) fn pooled(number: usize) -> String {
    format!("{}/file-{number:04}.txt", POOL.0)
}

/// This many bytes of text. Another seed makes another text.
pub(super) fn text(bytes: usize, seed: usize) -> String {
    let mut text = String::with_capacity(bytes + 128);
    let mut line = seed;
    while text.len() < bytes {
        text.push_str(&format!("{line:>8}\tlet place = \"{seed}/{}\"; // one line of many\n", line * 7919));
        line += 1;
    }
    text.truncate(bytes);
    text
}

fn make(directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))
}

fn put(path: &Path, content: &str) -> Result<(), String> {
    fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_its_length_and_its_seed() {
        assert_eq!(text(1000, 1).len(), 1000);
        assert_eq!(text(1000, 1), text(1000, 1));
        assert_ne!(text(1000, 1), text(1000, 2));
    }
}
