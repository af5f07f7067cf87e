//! `cargo xtask bench search --huge`: files of 2 GiB, with the time and the peak memory of both sides. A file of one line and a file of
//! binary zeros must not cost more memory than any other; the run fails if they do.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use serde_json::json;

use super::{
    ripgrep::{Ripgrep, Rules},
    started, tree,
};
use crate::bench::{field, statistics::shown};

const BYTES: u64 = 2 << 30;
/// The most memory that the server may hold, whatever it looks into.
const MEGABYTES_MAX: f64 = 200.0;
const BUFFER_BYTES: usize = 1 << 20;

/// A huge file.
struct Huge {
    what: &'static str,
    /// What is written over and over.
    part: String,
    /// What stands once in 16 MiB.
    mark: &'static str,
}

/// Makes each file, looks into it, and removes it.
pub(super) fn run(ripgrep: &Ripgrep, binary: &Path, place: &Path) -> Result<(), String> {
    let line = "some words of text that stand in a line and mean nothing at all\n";
    let mut failures = Vec::new();
    for huge in [
        Huge { what: "2 GiB in lines, 128 hits", part: line.to_owned(), mark: "frequentNeedle\n" },
        Huge {
            what: "2 GiB in lines, 33,554,432 hits",
            part: line.replace("nothing", tree::FREQUENT),
            mark: "",
        },
        Huge { what: "2 GiB in one line", part: line.replace('\n', " "), mark: "frequentNeedle " },
        Huge { what: "2 GiB of nothing", part: String::new(), mark: "" },
    ] {
        let workspace = place.join("huge");
        std::fs::create_dir_all(&workspace).map_err(|error| error.to_string())?;
        let path = workspace.join("huge.txt");
        huge.write(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut stead = started(&field::stead(binary, &workspace, &place.join("huge-state"), "fast"))?;
        let timed = stead.call("search", &json!({ "query": tree::FREQUENT }))?;
        let found = &timed.result["structuredContent"];
        let ours = stead.peak_megabytes()?;
        stead.stop();
        let (count, milliseconds) = ripgrep.count(&workspace, tree::FREQUENT, Rules::Obeyed)?;
        let theirs = ripgrep.peak_megabytes(&workspace, tree::FREQUENT, Rules::Obeyed)?;
        println!(
            "huge: {}: {} hits, left {}, binary {}, {} ms, {} MB; ripgrep: {count} lines, {} ms, {} MB",
            huge.what,
            found["total"],
            found["left"],
            found["binary"],
            shown(timed.milliseconds),
            shown(ours),
            shown(milliseconds),
            shown(theirs),
        );
        if ours > MEGABYTES_MAX {
            failures.push(format!("{}: {} MB", huge.what, shown(ours)));
        }
        std::fs::remove_file(&path).map_err(|error| error.to_string())?;
    }
    if failures.is_empty() { Ok(()) } else { Err(format!("too much memory: {}", failures.join("; "))) }
}

impl Huge {
    fn write(&self, path: &Path) -> std::io::Result<()> {
        let file = File::create(path)?;
        if self.part.is_empty() {
            return file.set_len(BYTES);
        }
        let mut block = self.part.repeat(BUFFER_BYTES / self.part.len());
        block.truncate(block.len() - block.len() % self.part.len());
        let mut out = BufWriter::new(file);
        let (mut written, mut blocks) = (0, 0_u32);
        while written < BYTES {
            out.write_all(block.as_bytes())?;
            written += block.len() as u64;
            blocks += 1;
            if blocks.is_multiple_of(16) {
                out.write_all(self.mark.as_bytes())?;
            }
        }
        out.flush()
    }
}
