//! `cargo xtask bench search --huge` searches files of 2 GiB and compares time and peak memory with ripgrep. The
//! benchmark fails if the server needs more than [`PEAK_MEGABYTES_MAX`] for a file.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use serde_json::json;

use super::{
    generated_tree,
    ripgrep::{BenchIgnoreRulesMode, Ripgrep},
    start_client,
};
use crate::{bench_servers, statistics::format_significant};

const HUGE_FILE_BYTES: u64 = 2 << 30;
/// The most memory in MB that the server may use to search a huge file.
const PEAK_MEGABYTES_MAX: f64 = 200.0;
const BUFFER_BYTES: usize = 1 << 20;

struct HugeFileSearchBenchCase {
    description: &'static str,
    repeated_text: String,
    /// The searched text, which occurs once per 16 MiB of the file.
    needle: &'static str,
}

/// Creates each huge file, searches it with the server and ripgrep, and removes it.
pub(super) fn run(ripgrep: &Ripgrep, binary: &Path, place: &Path) -> Result<(), String> {
    let line = "some words of text that stand in a line and mean nothing at all\n";
    let mut failures = Vec::new();
    for huge in [
        HugeFileSearchBenchCase {
            description: "2 GiB in lines, 128 hits",
            repeated_text: line.to_owned(),
            needle: "frequentNeedle\n",
        },
        HugeFileSearchBenchCase {
            description: "2 GiB in lines, 33,554,432 hits",
            repeated_text: line.replace("nothing", generated_tree::FREQUENT_TEXT),
            needle: "",
        },
        HugeFileSearchBenchCase {
            description: "2 GiB in one line",
            repeated_text: line.replace('\n', " "),
            needle: "frequentNeedle ",
        },
        HugeFileSearchBenchCase { description: "2 GiB of nothing", repeated_text: String::new(), needle: "" },
    ] {
        let workspace = place.join("huge");
        std::fs::create_dir_all(&workspace).map_err(|error| error.to_string())?;
        let path = workspace.join("huge.txt");
        huge.write(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut stead =
            start_client(&bench_servers::stead_launch(binary, &workspace, &place.join("huge-state"), "fast"))?;
        let timed = stead.call_tool("search", &json!({ "query": generated_tree::FREQUENT_TEXT }))?;
        let found = &timed.result["structuredContent"];
        let ours = stead.peak_megabytes()?;
        stead.stop();
        let (count, milliseconds) =
            ripgrep.count_lines(&workspace, generated_tree::FREQUENT_TEXT, BenchIgnoreRulesMode::Respect)?;
        let theirs =
            ripgrep.peak_megabytes(&workspace, generated_tree::FREQUENT_TEXT, BenchIgnoreRulesMode::Respect)?;
        println!(
            "huge: {}: {} hits, left {}, binary {}, {} ms, {} MB; ripgrep: {count} lines, {} ms, {} MB",
            huge.description,
            found["total"],
            found["left"],
            found["binary"],
            format_significant(timed.milliseconds),
            format_significant(ours),
            format_significant(milliseconds),
            format_significant(theirs),
        );
        if ours > PEAK_MEGABYTES_MAX {
            failures.push(format!("{}: {} MB", huge.description, format_significant(ours)));
        }
        std::fs::remove_file(&path).map_err(|error| error.to_string())?;
    }
    if failures.is_empty() { Ok(()) } else { Err(format!("too much memory: {}", failures.join("; "))) }
}

impl HugeFileSearchBenchCase {
    fn write(&self, path: &Path) -> std::io::Result<()> {
        let file = File::create(path)?;
        if self.repeated_text.is_empty() {
            return file.set_len(HUGE_FILE_BYTES);
        }
        let mut block = self.repeated_text.repeat(BUFFER_BYTES / self.repeated_text.len());
        block.truncate(block.len() - block.len() % self.repeated_text.len());
        let mut out = BufWriter::new(file);
        let (mut written, mut blocks) = (0, 0_u32);
        while written < HUGE_FILE_BYTES {
            out.write_all(block.as_bytes())?;
            written += block.len() as u64;
            blocks += 1;
            if blocks.is_multiple_of(16) {
                out.write_all(self.needle.as_bytes())?;
            }
        }
        out.flush()
    }
}
