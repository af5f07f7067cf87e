//! Generates the tree for the search benchmark: packages with source files, dependencies in ignored directories, and
//! one large build directory. The tree is the same in every run.

use std::{fs, path::Path};

use super::queries::QueryRng;

pub(super) const RARE_TEXT: &str = "zebraQuartz";
/// A text that occurs in about one of five generated files, in about one line of twenty.
pub(super) const FREQUENT_TEXT: &str = "frequentNeedle";
/// A file name pattern that matches only [`RARE_NAME_COUNT`] files that are not ignored.
pub(super) const RARE_NAME_PATTERN: &str = "rare-*.rs";
pub(super) const RARE_NAME_COUNT: u64 = 3;

const SEED: u64 = 7;
const PACKAGE_COUNT: u64 = 40;
/// The number of distinct file contents in the generated tree.
const DISTINCT_TEXTS: u64 = 400;
/// The percentage of generated files that are sources; the others are dependencies or build output.
const SOURCES_PERCENT: usize = 60;
const DEPENDENCIES_PERCENT: usize = 35;
const FILE_ENDINGS: &[&str] = &["rs", "ts", "py", "go", "md"];
const WORDS: &[&str] = &[
    "alpha", "buffer", "stream", "handle", "parse", "render", "widget", "config", "value", "index", "cache", "queue",
    "worker", "thread", "result", "error", "option", "string", "number", "object", "method", "class", "static",
    "public", "private", "return", "import", "export", "const", "function", "async", "yield",
];

pub(super) fn generate_tree(top: &Path, files: usize) -> Result<(), String> {
    let mut chance = QueryRng::from_seed(SEED);
    let texts: Vec<String> = (0..DISTINCT_TEXTS).map(|number| generate_text(&mut chance, number)).collect();
    write_file(&top.join(".git/info/exclude"), "*.bak\n")?;
    write_file(&top.join(".gitignore"), "node_modules/\ntarget/\n*.log\n!keep.log\n/dist\n")?;
    let (sources, dependencies) = (files * SOURCES_PERCENT / 100, files * DEPENDENCIES_PERCENT / 100);
    for number in 0..files {
        let package = format!("package-{}", number as u64 % PACKAGE_COUNT);
        let group = number / 480;
        let directory = if number < sources {
            format!("{package}/src/module-{group}")
        } else if number < sources + dependencies {
            format!("{package}/node_modules/dependency-{group}/lib")
        } else {
            "target/debug/deps".to_owned()
        };
        let ending = FILE_ENDINGS[number % FILE_ENDINGS.len()];
        let content = chance.pick(&texts).map_or("", String::as_str);
        write_file(&top.join(directory).join(format!("file-{number}.{ending}")), content)?;
    }
    for number in 0..PACKAGE_COUNT {
        write_file(&top.join(format!("package-{number}/.gitignore")), "*.tmp\nbuild/\n")?;
    }
    for number in 0..RARE_NAME_COUNT {
        let path = top.join(format!("package-{number}/src/rare-{number}.rs"));
        write_file(&path, &format!("{}let {RARE_TEXT} = {number};\n", texts[0]))?;
    }
    Ok(())
}

fn generate_text(chance: &mut QueryRng, number: u64) -> String {
    let mut text = String::new();
    for _ in 0..10 + chance.below(110) {
        for _ in 0..3 + chance.below(8) {
            text.push_str(chance.pick(WORDS).copied().unwrap_or_default());
            text.push(' ');
        }
        if number.is_multiple_of(5) && chance.below(20) == 0 {
            text.push_str(FREQUENT_TEXT);
        }
        text.push('\n');
    }
    text
}

pub(super) fn write_file(path: &Path, content: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    match fs::write(path, content) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
            fs::write(path, content).map_err(failed)
        }
        other => other.map_err(failed),
    }
}
