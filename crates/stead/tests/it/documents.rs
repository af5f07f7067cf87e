//! Runs the commands in README.md, CONTRIBUTING.md, SECURITY.md, ARCHITECTURE.md and `docs/`, and compares their output
//! with the page.
//!
//! The `sh` blocks of a page run in order in one shell. Lines that begin with `#>` are the expected output, in which
//! `…` stands for any text. A command must exit with code 0, or with the code in its comment `# exit CODE`. In a block
//! marked `sh no-run: REASON`, only the existence of the `stead` commands and flags is checked.

use std::{fmt::Write as _, fs, path::Path, path::PathBuf, process::Command};

const OUTPUT_MARK: &str = "#>";
const ANY_TEXT: char = '…';
const NOT_RUN: &str = "sh no-run:";

struct FencedCodeBlock {
    line: usize,
    /// The text after the opening fence of a code block: the language, and a reason if an `sh` block is not run.
    info: String,
    text: String,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct DocumentedCommand {
    line: usize,
    text: String,
    output: Option<String>,
    exit_code: i32,
}

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn document_paths() -> Vec<PathBuf> {
    let root = repository_root();
    let mut pages: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md"].iter().map(|name| root.join(name)).collect();
    let mut directories = vec![root.join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

fn parse_blocks(page: &str) -> Vec<FencedCodeBlock> {
    let mut blocks: Vec<FencedCodeBlock> = Vec::new();
    let mut is_open = false;
    for (index, line) in page.lines().enumerate() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            is_open = !is_open;
            if is_open {
                blocks.push(FencedCodeBlock { line: index + 1, info: info.trim().to_owned(), text: String::new() });
            }
        } else if let Some(block) = blocks.last_mut().filter(|_| is_open) {
            block.text.push_str(line);
            block.text.push('\n');
        }
    }
    assert!(!is_open, "a fence is not closed");
    blocks
}

fn parse_commands(block: &FencedCodeBlock) -> Vec<DocumentedCommand> {
    let mut commands: Vec<DocumentedCommand> = Vec::new();
    let mut continues = false;
    for (index, line) in block.text.lines().enumerate() {
        match (line.strip_prefix(OUTPUT_MARK), commands.last_mut()) {
            (Some(output), Some(command)) => {
                let expected = command.output.get_or_insert_default();
                expected.push_str(output.strip_prefix(' ').unwrap_or(output));
                expected.push('\n');
            }
            (None, Some(command)) if continues => command.text.push_str(line),
            (_, _) => {
                let exit_code = line
                    .rsplit_once("# exit ")
                    .map_or(0, |(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap());
                let line_number = block.line + 1 + index;
                commands.push(DocumentedCommand { line: line_number, text: line.to_owned(), output: None, exit_code });
            }
        }
        continues = line.ends_with('\\');
        if let Some(command) = commands.last_mut().filter(|_| continues) {
            command.text.push('\n');
        }
    }
    commands.retain(|command| !command.text.trim().is_empty());
    commands
}

fn matches_expected(expected: &str, output: &str) -> bool {
    let mut parts = expected.trim_end().split(ANY_TEXT);
    let Some(mut rest) = output.trim_end().strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = "";
    let mut has_wildcard = false;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        (last, has_wildcard) = (part, true);
    }
    rest.is_empty() || (has_wildcard && (last.is_empty() || output.trim_end().ends_with(last)))
}

fn run_commands(commands: &[DocumentedCommand]) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    let (work, results) = (home.path().join("work"), home.path().join("results"));
    fs::create_dir(&work).unwrap();
    fs::create_dir(&results).unwrap();
    let mut script = String::new();
    for (number, command) in commands.iter().enumerate() {
        let file = results.join(number.to_string());
        writeln!(script, "{{ {}\n}} > {file}.out 2>&1; echo $? > {file}.code", command.text, file = file.display())
            .unwrap();
    }
    let binaries = Path::new(env!("CARGO_BIN_EXE_stead")).parent().unwrap();
    let search_path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let status = Command::new("bash")
        .args(["-c", &script])
        .current_dir(&work)
        .env_clear()
        .envs([("PATH", search_path.as_str()), ("LC_ALL", "C.UTF-8")])
        .env("HOME", home.path())
        .env("XDG_STATE_HOME", home.path().join("state"))
        .status()
        .unwrap();
    assert!(status.code().is_some(), "the shell was killed");
    let mut problems = Vec::new();
    for (number, command) in commands.iter().enumerate() {
        let output = fs::read_to_string(results.join(format!("{number}.out"))).unwrap_or_default();
        let code = fs::read_to_string(results.join(format!("{number}.code"))).unwrap_or_default();
        let line = command.line;
        if code.trim() != command.exit_code.to_string() {
            problems.push(format!("line {line}: exit code {}, not {}:\n{output}", code.trim(), command.exit_code));
        } else if let Some(expected) = command.output.as_ref().filter(|expected| !matches_expected(expected, &output)) {
            problems.push(format!("line {line}: the page shows\n{expected}but the command prints\n{output}"));
        }
    }
    problems
}

/// Shell texts, such as a pipe sign, after which the word `stead` is a command.
const BEFORE_A_COMMAND: [&str; 5] = ["-- ", "| ", "$(", "&& ", "stead "];

fn find_unknown_flags(line: &str) -> Vec<String> {
    let starts = line.match_indices("stead ").map(|(at, _)| at);
    let is_command = |at: &usize| *at == 0 || BEFORE_A_COMMAND.iter().any(|before| line[..*at].ends_with(before));
    let mut problems = Vec::new();
    for command in starts.filter(is_command).map(|at| &line[at + "stead ".len()..]) {
        let words: Vec<&str> = command.split([' ', '|', ')', '"']).take_while(|word| !word.starts_with('#')).collect();
        // The words after `--` are the command line of another program.
        let words = words.split(|word| *word == "--").next().unwrap_or_default();
        let is_name = |word: &&&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '.');
        let names: Vec<&str> = words.iter().take_while(is_name).copied().collect();
        let fewest = usize::from(words.first().is_some_and(|word| !word.starts_with("--")));
        let Some(help) = (fewest..=names.len()).rev().find_map(|count| help_text(&names[..count])) else {
            problems.push(format!("`stead {command}`: no such command"));
            continue;
        };
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            let flag = flag.split('=').next().unwrap_or(flag);
            if !help.split_whitespace().any(|word| word.trim_end_matches([',', ']', '.']) == flag) {
                problems.push(format!("`stead {command}`: {flag} is not in its help"));
            }
        }
    }
    problems
}

fn help_text(names: &[&str]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_stead")).args(names).arg("--help").output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// Finds the `stead` commands in inline code, which can continue on the next line.
fn inline_commands(page: &str) -> Vec<String> {
    let mut is_open = false;
    let text = page.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_open ^= is_fence;
        !is_open && !is_fence
    });
    let paragraphs = text.collect::<Vec<_>>().join("\n");
    let spans = paragraphs.split("\n\n").flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2));
    let commands = spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
    let looks_like_command = |span: &String| {
        span.strip_prefix("stead ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '-'))
    };
    commands.filter(looks_like_command).collect()
}

fn check_page(page: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut commands = Vec::new();
    for block in parse_blocks(page) {
        let found = match block.info.split(' ').next().unwrap_or_default() {
            "sh" if block.info == "sh" => {
                commands.extend(parse_commands(&block));
                continue;
            }
            "sh" => match block.info.strip_prefix(NOT_RUN).map(str::trim) {
                None | Some("") => vec![format!("'{}' has no reason not to run", block.info)],
                Some(_) => block.text.lines().flat_map(find_unknown_flags).collect(),
            },
            "json" => find_json_errors(&block.text),
            "toml" => {
                toml::from_str::<toml::Table>(&block.text).err().map(|error| error.to_string()).into_iter().collect()
            }
            "console" => {
                block.text.lines().filter_map(|line| line.strip_prefix("$ ")).flat_map(find_unknown_flags).collect()
            }
            "text" | "rust" => Vec::new(),
            other => vec![format!("a block of the language '{other}'")],
        };
        problems.extend(found.into_iter().map(|problem| format!("line {}: {problem}", block.line)));
    }
    problems.extend(inline_commands(page).iter().flat_map(|command| find_unknown_flags(command)));
    problems.extend(run_commands(&commands));
    problems
}

fn find_json_errors(text: &str) -> Vec<String> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    values.filter_map(Result::err).map(|error| error.to_string()).collect()
}

#[test]
fn commands_in_documents_run_as_printed() {
    let root = repository_root();
    let mut problems = Vec::new();
    for path in document_paths() {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let found = check_page(&fs::read_to_string(&path).unwrap());
        problems.extend(found.into_iter().map(|problem| format!("{name} {problem}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn wrong_pages_are_reported() {
    for bad in [
        "```sh\nfalse\n```",
        "```sh\necho a\n#> b\n```",
        "```sh\ntrue # exit 3\n```",
        "```sh no-run:\ntrue\n```",
        "```sh no-run: needs a server\nstead frobnicate\n```",
        "```sh no-run: needs a server\nstead read --frobnicate\n```",
        "```console\n$ stead frobnicate\noutput of stead\n```",
        "Run `stead\nfrobnicate` now.",
        "Run `stead read --frobnicate`.",
        "```json\n{]\n```",
        "```toml\n= 1\n```",
        "```\nplain\n```",
    ] {
        assert_eq!(check_page(bad).len(), 1, "{bad}");
    }
    for good in [
        "```sh\nx=1\necho a $x c\n#> a … c\n(exit 3) # exit 3\n```",
        "```sh no-run: needs a server\nstead read --help\n```",
        "`stead --help`, `stead read PATH --lines 1-2`, `stead`, `stead.read`",
    ] {
        assert_eq!(check_page(good), Vec::<String>::new(), "{good}");
    }
}
