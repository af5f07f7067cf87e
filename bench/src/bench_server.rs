//! A server in the benchmark: its start command and its tool calls. The time of a call counts only if the response is
//! complete.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    mcp_client::{McpBenchClient, to_milliseconds},
    workspace_files,
};

/// Whether a server has the tool names of stead or of the reference server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BenchServerToolNameScheme {
    Stead,
    Reference,
}

/// The start command of a server.
#[derive(Debug, Clone)]
pub(crate) struct BenchServerStartCommand {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
}

impl BenchServerStartCommand {
    /// Starts the server, lists its tools and stops it. Returns the time until the tool list arrived.
    pub(crate) fn start_once(&self) -> Result<f64, String> {
        let mut command = self.command();
        let started = Instant::now();
        let mut speaker = McpBenchClient::start(&mut command)?;
        speaker.initialize()?;
        let ended = started.elapsed();
        speaker.stop();
        Ok(to_milliseconds(ended))
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}

pub(crate) struct BenchServer {
    vocabulary: BenchServerToolNameScheme,
    workspace: PathBuf,
    client: McpBenchClient,
    /// The version of the overwritten file according to the last write.
    base_version: Option<String>,
    writes: usize,
}

pub(crate) struct ListTiming {
    pub(crate) first_milliseconds: f64,
    pub(crate) first_entries: usize,
    pub(crate) all_milliseconds: f64,
    pub(crate) pages: usize,
}

impl BenchServer {
    pub(crate) fn start(
        vocabulary: BenchServerToolNameScheme,
        recipe: &BenchServerStartCommand,
        workspace: &Path,
    ) -> Result<Self, String> {
        let mut speaker = McpBenchClient::start(&mut recipe.command())?;
        speaker.initialize()?;
        Ok(Self { vocabulary, workspace: workspace.to_owned(), client: speaker, base_version: None, writes: 0 })
    }

    /// Reads a whole file and compares it with `wanted`.
    pub(crate) fn read_file(&mut self, path: &str, wanted: &str) -> Result<f64, String> {
        let (tool, arguments) = self.read_request(path);
        let timed = self.client.call_tool(tool, &arguments)?;
        check_whole_text(&timed.result, wanted, path)?;
        Ok(timed.milliseconds)
    }

    /// Reads every file of the pool with pipelined requests.
    pub(crate) fn read_pool(&mut self) -> Result<f64, String> {
        let paths: Vec<String> = (0..workspace_files::FILE_POOL.1).map(workspace_files::pool_path).collect();
        let (tools, arguments): (Vec<&str>, Vec<Value>) = paths.iter().map(|path| self.read_request(path)).unzip();
        let tool = tools.first().copied().unwrap_or_default();
        let (milliseconds, results) = self.client.call_all(tool, &arguments)?;
        for (number, (result, path)) in results.iter().zip(&paths).enumerate() {
            check_whole_text(result, &workspace_files::generate_text(workspace_files::SMALL_FILE.bytes, number), path)?;
        }
        Ok(milliseconds)
    }

    fn read_request(&self, path: &str) -> (&'static str, Value) {
        match self.vocabulary {
            // A byte range, because text without one is paginated.
            BenchServerToolNameScheme::Stead => ("read", json!({ "path": path, "bytes": "0-" })),
            BenchServerToolNameScheme::Reference => ("read_text_file", json!({ "path": self.absolute_path(path) })),
        }
    }

    /// Overwrites a file and checks the content on disk.
    pub(crate) fn overwrite(&mut self) -> Result<f64, String> {
        self.writes += 1;
        let content = workspace_files::generate_text(workspace_files::SMALL_FILE.bytes, self.writes);
        let timed = match self.vocabulary {
            BenchServerToolNameScheme::Stead => {
                let base = self.current_base()?;
                let arguments = json!({ "path": workspace_files::WRITTEN_FILE, "content": content, "base": base });
                self.client.call_tool("write", &arguments)?
            }
            BenchServerToolNameScheme::Reference => {
                let arguments =
                    json!({ "path": self.absolute_path(workspace_files::WRITTEN_FILE), "content": content });
                self.client.call_tool("write_file", &arguments)?
            }
        };
        self.base_version = timed.result["structuredContent"]["version"].as_str().map(str::to_owned);
        let written = fs::read_to_string(self.workspace.join(workspace_files::WRITTEN_FILE));
        if written.is_ok_and(|written| written == content) {
            Ok(timed.milliseconds)
        } else {
            Err("a write was answered but is not on the disk".to_owned())
        }
    }

    /// The current version of the file to overwrite, from the last write or from the server.
    fn current_base(&mut self) -> Result<String, String> {
        if let Some(base) = self.base_version.take() {
            return Ok(base);
        }
        let stat = self.client.call_tool("stat", &json!({ "path": workspace_files::WRITTEN_FILE }))?.result;
        let version = stat["structuredContent"]["version"].as_str();
        version.map(str::to_owned).ok_or_else(|| format!("no version: {stat}"))
    }

    /// Lists the large directory with all pages.
    pub(crate) fn list_directory(&mut self) -> Result<ListTiming, String> {
        match self.vocabulary {
            BenchServerToolNameScheme::Stead => self.list_pages(),
            BenchServerToolNameScheme::Reference => self.list_at_once(),
        }
    }

    fn list_pages(&mut self) -> Result<ListTiming, String> {
        let mut listed = ListTiming { first_milliseconds: 0.0, first_entries: 0, all_milliseconds: 0.0, pages: 0 };
        let mut names = std::collections::HashSet::new();
        let mut arguments = json!({ "path": workspace_files::LARGE_DIRECTORY.0 });
        loop {
            let mut timed = self.client.call_tool("list", &arguments)?;
            let answer = &mut timed.result["structuredContent"];
            for entry in answer["entries"].as_array().into_iter().flatten() {
                names.extend(entry["path"].as_str().map(str::to_owned));
            }
            listed.pages += 1;
            listed.all_milliseconds += timed.milliseconds;
            if listed.pages == 1 {
                listed.first_milliseconds = timed.milliseconds;
                listed.first_entries = names.len();
            }
            arguments = answer["next"].take();
            if arguments.is_null() {
                break;
            }
        }
        check_entry_count(names.len())?;
        Ok(listed)
    }

    fn list_at_once(&mut self) -> Result<ListTiming, String> {
        let timed = self
            .client
            .call_tool("list_directory", &json!({ "path": self.absolute_path(workspace_files::LARGE_DIRECTORY.0) }))?;
        let text = timed.result["content"][0]["text"].as_str().unwrap_or_default();
        let entries = text.lines().filter(|line| line.contains("entry-")).count();
        check_entry_count(entries)?;
        Ok(ListTiming {
            first_milliseconds: timed.milliseconds,
            first_entries: entries,
            all_milliseconds: timed.milliseconds,
            pages: 1,
        })
    }

    fn absolute_path(&self, path: &str) -> String {
        self.workspace.join(path).to_string_lossy().into_owned()
    }

    pub(crate) fn peak_megabytes(&self) -> Result<f64, String> {
        self.client.peak_megabytes()
    }

    pub(crate) fn stop(self) {
        self.client.stop();
    }
}

/// Checks that the result of a read has the whole file, as structured content or as text.
fn check_whole_text(result: &Value, wanted: &str, path: &str) -> Result<(), String> {
    let carried = [&result["structuredContent"]["content"], &result["content"][0]["text"]];
    if carried.iter().any(|carried| carried.as_str() == Some(wanted)) {
        return Ok(());
    }
    Err(format!("the result of reading {path} is not the whole file"))
}

fn check_entry_count(entries: usize) -> Result<(), String> {
    let wanted = workspace_files::LARGE_DIRECTORY.1;
    if entries == wanted { Ok(()) } else { Err(format!("{entries} of {wanted} entries were listed")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_text_is_rejected() {
        let answer = json!({ "content": [{ "type": "text", "text": "ab" }], "structuredContent": {} });
        assert!(check_whole_text(&answer, "ab", "x").is_ok());
        assert!(check_whole_text(&answer, "abc", "x").is_err());
        let answer = json!({ "content": [{ "text": "elsewhere" }], "structuredContent": { "content": "abc" } });
        assert!(check_whole_text(&answer, "abc", "x").is_ok());
        assert!(check_entry_count(workspace_files::LARGE_DIRECTORY.1 - 1).is_err());
    }
}
