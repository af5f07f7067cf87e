//! `search`: the lines below a directory that hold a text or match a regular expression, grouped by file, in byte order
//! of the paths. One hit a line. Files that are not text or too large are counted, never silently skipped.

mod lines;

use lines::{Hit, Pattern};
use path::RelPath;
use serde::Deserialize;
use serde_json::{Map, Value};
use text::{
    encoding::{Detected, decode, detect},
    visible::visible_line,
};

use super::{
    answer::Facts,
    find::bounded,
    list, seek,
    seek::{Names, Step},
};
use crate::{
    failure::{Failure, Kind},
    glob::Globs,
    limits,
    operation::{Ask, Operation, Planned, Target},
    plan::Top,
    terms::Evidence,
    view::View,
};

/// The arguments of `search`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    query: String,
    path: Option<String>,
    regex: Option<bool>,
    glob: Option<String>,
    context: Option<u64>,
    all: Option<bool>,
    max: Option<u64>,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    files: Vec<(RelPath, Vec<Hit>)>,
    /// Hits that are shown.
    hits: usize,
    /// Hits there are, shown or not.
    total: usize,
    scanned: u64,
    bytes: u64,
    binary: u64,
    large: u64,
    unreadable: u64,
}

impl Operation for Search {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        self.pattern()?;
        Ok(vec![Ask::read(self.path.as_deref().unwrap_or("."))])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        let glob = Globs::by_name(self.glob.as_deref())?;
        let max = bounded(self.max, limits::SEARCH_HITS_DEFAULT, limits::SEARCH_HITS_MAX)?;
        let (pattern, context) = (self.pattern()?, self.context()?);
        let mut found = Found::default();
        let mut unseen = seek::Unseen::default();
        if target.node.is_some_and(|node| node.top == Top::File) {
            found.look_into(view, &target.path, &pattern, context, max)?;
        } else {
            list::directory_at(target)?;
            let include = &view.terms.filter.include;
            let wanted = |below: &RelPath| {
                (glob.is_empty() || glob.matches(below)) && (include.is_empty() || include.matches(below))
            };
            unseen = seek::walk(view, &target.path, Names::from(self.all), &mut |met| {
                if met.top == Top::File && wanted(&met.below) {
                    found.look_into(view, &met.path, &pattern, context, max)?;
                }
                Ok(Step::On)
            })?;
            found.unreadable += unseen.closed;
        }
        Ok(found.planned(&target.path, &self.query, unseen))
    }
}

impl Search {
    fn pattern(&self) -> Result<Pattern, Failure> {
        if self.query.is_empty() {
            return Err(Failure::new(Kind::BadRequest, "the query is empty").hint("say what to look for"));
        }
        if self.regex == Some(true) { Pattern::regex(&self.query) } else { Pattern::literal(&self.query) }
    }

    fn context(&self) -> Result<usize, Failure> {
        match usize::try_from(self.context.unwrap_or(0)) {
            Ok(lines) if lines <= limits::SEARCH_CONTEXT_MAX => Ok(lines),
            Ok(_) | Err(_) => Err(Failure::new(
                Kind::BadRequest,
                format!("context is at most {} lines", limits::SEARCH_CONTEXT_MAX),
            )
            .hint("read the lines around a hit instead")),
        }
    }
}

impl Found {
    /// Looks through one file.
    fn look_into(
        &mut self,
        view: &View<'_>,
        path: &RelPath,
        pattern: &Pattern,
        context: usize,
        max: usize,
    ) -> Result<(), Failure> {
        view.control.check()?;
        if !view.may_read(path) {
            return Ok(());
        }
        let bytes = match view.workspace().scan(path, limits::SEARCH_FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(failure) if failure.kind == Kind::TooLarge => {
                self.large += 1;
                return Ok(());
            }
            // Gone or closed since it was listed: one file does not hide the others.
            Err(_) => {
                self.unreadable += 1;
                return Ok(());
            }
        };
        let Detected::Text { encoding } = detect(&bytes) else {
            self.binary += 1;
            return Ok(());
        };
        let Ok(text) = decode(&bytes, encoding) else {
            self.binary += 1;
            return Ok(());
        };
        self.scanned += 1;
        self.bytes += bytes.len() as u64;
        let room = max - self.hits;
        let shown_max = match view.terms.evidence {
            Evidence::None => limits::SEARCH_LINE_CHARS_MAX,
            Evidence::Bytes => usize::MAX,
        };
        let (mut hits, total) = pattern.hits(&text, context, room, shown_max)?;
        if view.terms.evidence == Evidence::Bytes && text.ends_with('\n') {
            let last = text.matches('\n').count() as u64 + 1;
            hits.iter_mut().for_each(|hit| hit.ends_at(last, context));
        }
        self.total += total;
        self.hits += hits.len();
        if !hits.is_empty() {
            self.files.push((path.clone(), hits));
        }
        Ok(())
    }

    fn planned(self, top: &RelPath, query: &str, unseen: seek::Unseen) -> Planned {
        let text = self.twin(query, &unseen);
        let truncated = unseen.cut || self.hits < self.total;
        let files: Vec<Value> = self.files.iter().map(|(path, hits)| file(path, hits)).collect();
        let some = |count: u64| (count > 0).then_some(count);
        let answer = Facts::new()
            .with("path", top.to_string())
            .with("files", files)
            .with("total", self.total)
            .with("scanned", self.scanned)
            .maybe("binary", some(self.binary))
            .maybe("large", some(self.large))
            .maybe("unreadable", some(self.unreadable))
            .maybe("ignored", unseen.ignored())
            .with("truncated", truncated)
            .answer(text);
        Planned::Read { answer, bytes: self.bytes }
    }

    fn twin(&self, query: &str, unseen: &seek::Unseen) -> String {
        let mut text = String::new();
        for (path, hits) in &self.files {
            let wire = path.to_wire();
            text.push_str(&format!("{}\n", visible_line(&wire)));
            for hit in hits {
                hit.write(&mut text);
            }
        }
        let (query, total, files) = (visible_line(query), self.total, self.files.len());
        match (total, total - self.hits) {
            (0, _) => text.push_str(&format!("[nothing holds {query}; {} files looked into", self.scanned)),
            (_, 0) => text.push_str(&format!("[{total} hits in {files} files")),
            (_, left) => text.push_str(&format!(
                "[{} hits in {files} files; truncated, {left} more: name a smaller path or a glob, or raise max up to {}",
                self.hits,
                limits::SEARCH_HITS_MAX
            )),
        }
        for (count, what) in
            [(self.binary, "not text"), (self.large, "too large"), (self.unreadable, "not readable")]
        {
            if count > 0 {
                text.push_str(&format!("; {count} {what}"));
            }
        }
        text.push_str(&unseen.note());
        text.push(']');
        text
    }
}

fn file(path: &RelPath, hits: &[Hit]) -> Value {
    let hits: Vec<Value> = hits.iter().map(|hit| Value::Object(hit.object())).collect();
    let mut fields = Map::new();
    fields.insert("path".into(), path.to_string().into());
    fields.insert("hits".into(), hits.into());
    Value::Object(fields)
}
