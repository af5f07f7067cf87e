//! One server in the field: how it is started, and how each thing is asked of it. Every answer is checked for being
//! whole before its time counts.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use serde_json::{Value, json};

use super::{
    files,
    speaker::{Speaker, milliseconds},
};

/// Whose vocabulary a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vocabulary {
    Stead,
    Reference,
}

/// How a server is started.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

impl Recipe {
    /// Starts the server, asks for its tools and ends it. The time is from before the start to the list of tools.
    pub(super) fn start_once(&self) -> Result<f64, String> {
        let mut command = self.command();
        let started = Instant::now();
        let mut speaker = Speaker::start(&mut command)?;
        speaker.open()?;
        let ended = started.elapsed();
        speaker.stop();
        Ok(milliseconds(ended))
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}

/// A running server with its workspace.
pub(super) struct Peer {
    vocabulary: Vocabulary,
    workspace: PathBuf,
    speaker: Speaker,
    /// The version of the file that is written over, as the last answer gave it.
    base: Option<String>,
    writes: usize,
}

/// What listing a large directory took.
pub(super) struct Listed {
    pub(super) first_milliseconds: f64,
    pub(super) first_entries: usize,
    pub(super) all_milliseconds: f64,
    pub(super) pages: usize,
}

impl Peer {
    pub(super) fn start(vocabulary: Vocabulary, recipe: &Recipe, workspace: &Path) -> Result<Self, String> {
        let mut speaker = Speaker::start(&mut recipe.command())?;
        speaker.open()?;
        Ok(Self { vocabulary, workspace: workspace.to_owned(), speaker, base: None, writes: 0 })
    }

    /// Reads a whole file and holds it against what it should be.
    pub(super) fn read(&mut self, path: &str, wanted: &str) -> Result<f64, String> {
        let (tool, arguments) = self.read_request(path);
        let timed = self.speaker.call(tool, &arguments)?;
        whole(&timed.result, wanted, path)?;
        Ok(timed.milliseconds)
    }

    /// Reads every file of the pool without waiting for answers in between.
    pub(super) fn read_pool(&mut self) -> Result<f64, String> {
        let paths: Vec<String> = (0..files::POOL.1).map(files::pooled).collect();
        let (tools, arguments): (Vec<&str>, Vec<Value>) =
            paths.iter().map(|path| self.read_request(path)).unzip();
        let tool = tools.first().copied().unwrap_or_default();
        let (milliseconds, results) = self.speaker.call_all(tool, &arguments)?;
        for (number, (result, path)) in results.iter().zip(&paths).enumerate() {
            whole(result, &files::text(files::SMALL.bytes, number), path)?;
        }
        Ok(milliseconds)
    }

    fn read_request(&self, path: &str) -> (&'static str, Value) {
        match self.vocabulary {
            // A range, because without one long text comes by the page.
            Vocabulary::Stead => ("read", json!({ "path": path, "bytes": "0-" })),
            Vocabulary::Reference => ("read_text_file", json!({ "path": self.absolute(path) })),
        }
    }

    /// Writes one file over with new content and checks what is on the disk.
    pub(super) fn overwrite(&mut self) -> Result<f64, String> {
        self.writes += 1;
        let content = files::text(files::SMALL.bytes, self.writes);
        let timed = match self.vocabulary {
            Vocabulary::Stead => {
                let base = self.known_base()?;
                let arguments = json!({ "path": files::WRITTEN, "content": content, "base": base });
                self.speaker.call("write", &arguments)?
            }
            Vocabulary::Reference => {
                let arguments = json!({ "path": self.absolute(files::WRITTEN), "content": content });
                self.speaker.call("write_file", &arguments)?
            }
        };
        self.base = timed.result["structuredContent"]["version"].as_str().map(str::to_owned);
        let written = fs::read_to_string(self.workspace.join(files::WRITTEN));
        if written.is_ok_and(|written| written == content) {
            Ok(timed.milliseconds)
        } else {
            Err("a write was answered but is not on the disk".to_owned())
        }
    }

    /// The version to write over: what the last write answered, or what is there before the first.
    fn known_base(&mut self) -> Result<String, String> {
        if let Some(base) = self.base.take() {
            return Ok(base);
        }
        let stat = self.speaker.call("stat", &json!({ "path": files::WRITTEN }))?.result;
        let version = stat["structuredContent"]["version"].as_str();
        version.map(str::to_owned).ok_or_else(|| format!("no version: {stat}"))
    }

    /// Lists the large directory to its end.
    pub(super) fn list(&mut self) -> Result<Listed, String> {
        match self.vocabulary {
            Vocabulary::Stead => self.list_pages(),
            Vocabulary::Reference => self.list_at_once(),
        }
    }

    fn list_pages(&mut self) -> Result<Listed, String> {
        let mut listed =
            Listed { first_milliseconds: 0.0, first_entries: 0, all_milliseconds: 0.0, pages: 0 };
        let mut names = std::collections::HashSet::new();
        let mut arguments = json!({ "path": files::MANY.0 });
        loop {
            let mut timed = self.speaker.call("list", &arguments)?;
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
        complete(names.len())?;
        Ok(listed)
    }

    fn list_at_once(&mut self) -> Result<Listed, String> {
        let timed = self.speaker.call("list_directory", &json!({ "path": self.absolute(files::MANY.0) }))?;
        let text = timed.result["content"][0]["text"].as_str().unwrap_or_default();
        let entries = text.lines().filter(|line| line.contains("entry-")).count();
        complete(entries)?;
        Ok(Listed {
            first_milliseconds: timed.milliseconds,
            first_entries: entries,
            all_milliseconds: timed.milliseconds,
            pages: 1,
        })
    }

    fn absolute(&self, path: &str) -> String {
        self.workspace.join(path).to_string_lossy().into_owned()
    }

    pub(super) fn peak_megabytes(&self) -> Result<f64, String> {
        self.speaker.peak_megabytes()
    }

    pub(super) fn stop(self) {
        self.speaker.stop();
    }
}

/// Whether an answer carries the whole text, in its object or in its text.
fn whole(result: &Value, wanted: &str, path: &str) -> Result<(), String> {
    let carried = [&result["structuredContent"]["content"], &result["content"][0]["text"]];
    if carried.iter().any(|carried| carried.as_str() == Some(wanted)) {
        return Ok(());
    }
    Err(format!("the answer to reading {path} is not the whole file"))
}

fn complete(entries: usize) -> Result<(), String> {
    let wanted = files::MANY.1;
    if entries == wanted { Ok(()) } else { Err(format!("{entries} of {wanted} entries were listed")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_not_taken_for_the_whole() {
        let answer = json!({ "content": [{ "type": "text", "text": "ab" }], "structuredContent": {} });
        assert!(whole(&answer, "ab", "x").is_ok());
        assert!(whole(&answer, "abc", "x").is_err());
        let answer =
            json!({ "content": [{ "text": "elsewhere" }], "structuredContent": { "content": "abc" } });
        assert!(whole(&answer, "abc", "x").is_ok());
        assert!(complete(files::MANY.1 - 1).is_err());
    }
}
