//! `search`: the lines below a directory that hold a text or match a regular expression. One hit a line. The native
//! answer has what was meant first; a dialect that wants the bytes gets byte order of the paths. Files that are not text
//! are counted and those not looked into as a whole are named, never silently skipped.

mod flow;
mod known;
mod large;
mod left;
mod lines;
mod native;
mod nearest;
mod pace;
mod page;
mod query;
mod ranked;

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Instant};

use known::Shelves;
use left::{Left, Why};
pub(crate) use lines::Cases;
use lines::{Hit, Matched, Pattern, Syntax, Take, Words};
use nearest::Manner;
use path::RelPath;
use query::Query;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use text::{rank::Place, visible::visible_line};

use super::{answer::Facts, find::bounded, list, seek, seek::Names};
use crate::{
    failure::{Failure, Kind},
    glob::Globs,
    index::{goes_on, text_of},
    limits,
    operation::{Ask, Operation, Planned, Target},
    plan::Top,
    terms::{Evidence, Ranking},
    unsaved::Unsaved,
    view::View,
    workspace::Pieces,
};

/// The arguments of `search`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    query: Query,
    path: Option<String>,
    regex: Option<bool>,
    word: Option<bool>,
    ignore_case: Option<bool>,
    glob: Option<String>,
    context: Option<u64>,
    all: Option<bool>,
    max: Option<u64>,
    budget: Option<u64>,
    cursor: Option<String>,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    files: Vec<(RelPath, Vec<Hit>)>,
    /// Hits that are shown.
    hits: usize,
    /// Hits there are, shown or not.
    total: usize,
    /// Files that hold hits, shown or not.
    holding: usize,
    scanned: u64,
    bytes: u64,
    binary: u64,
    left: Left,
    unreadable: u64,
    /// The bytes of the file that is looked into, kept for the next one.
    buffer: Vec<u8>,
}

impl Operation for Search {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        self.pattern(view)?;
        Ok(vec![Ask::read(self.path.as_deref().unwrap_or("."))])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        let max = bounded(self.max, limits::SEARCH_HITS_DEFAULT, limits::SEARCH_HITS_MAX)?;
        let (pattern, context) = (self.pattern(view)?, self.context()?);
        // Looked up once: a walk asks for every file.
        let typed = &view.unsaved_within(&target.path)?;
        match (view.terms.evidence, view.terms.ranking) {
            (Evidence::None, _) => {
                let until = in_time(view, 1);
                let look =
                    Look { view, pattern: &pattern, context, max: limits::SEARCH_KEPT_MAX, until, typed };
                native::answer(self, &look, target, max)
            }
            (Evidence::Bytes, Ranking::ByMeaning) => {
                let until = in_time(view, 1);
                let look =
                    Look { view, pattern: &pattern, context, max: limits::SEARCH_KEPT_MAX, until, typed };
                let (found, unseen) = self.gather(&look, target)?;
                Ok(ranked::planned(&found, &target.path, unseen, max))
            }
            (Evidence::Bytes, Ranking::ByPlace) => {
                let until = in_time(view, 1);
                let look = Look { view, pattern: &pattern, context, max, until, typed };
                let (found, unseen) = self.gather(&look, target)?;
                Ok(found.planned(&target.path, &self.query.shown(), unseen))
            }
        }
    }
}

impl Search {
    /// Looks through everything below a place.
    fn gather(&self, look: &Look<'_>, target: &Target) -> Result<(Found, seek::Unseen), Failure> {
        let (view, max) = (look.view, look.max);
        let (mut found, mut unseen) = (Found::default(), seek::Unseen::default());
        if target.node.is_some_and(|node| node.top == Top::File) {
            look.at_file(&mut found, &Source::Known(&target.path))?;
        } else {
            list::directory_at(target)?;
            let glob = Globs::by_name(self.glob.as_deref())?;
            let include = &view.terms.filter.include;
            let wanted = |below: &[u8]| {
                (glob.is_empty() || glob.match_bytes(below))
                    && (include.is_empty() || include.match_bytes(below))
            };
            if let Some(surveyed) = self.surveyed(look, &target.path)? {
                return Ok(surveyed);
            }
            let sieve = view.workspace().sieve(look.pattern.need());
            let make = || (Found::default(), Shelves::new(sieve.as_deref()));
            let gathered;
            (gathered, unseen) =
                seek::walk(view, &target.path, Names::from(self.all), &make, &|(own, shelves), met| {
                    if met.top != Top::File || !wanted(met.below()) || !view.may_read(met.path) {
                        return Ok(());
                    }
                    // An index knows what is on disk, not what somebody types.
                    let typed = look.typed.contains_key(met.path);
                    match if typed { None } else { shelves.known(met) } {
                        Some(known) => own.count(known),
                        None => look.at_file(own, &Source::Met(met))?,
                    }
                    Ok(())
                })?;
            found = Found::merged(gathered.into_iter().map(|(found, _)| found));
            view.workspace().searched(found.files_met());
            found.unreadable += unseen.closed;
        }
        found.cut(max, look.weighs());
        Ok((found, unseen))
    }

    fn pattern(&self, view: &View<'_>) -> Result<Pattern, Failure> {
        let manner = self.manner();
        Pattern::new(&self.query.texts(view)?, manner.syntax, manner.words, manner.cases)
    }

    /// How the query is to be read.
    fn manner(&self) -> Manner {
        Manner {
            syntax: if self.regex == Some(true) { Syntax::Regex } else { Syntax::Literal },
            words: if self.word == Some(true) { Words::Whole } else { Words::Parts },
            cases: if self.ignore_case == Some(true) { Cases::Same } else { Cases::Differ },
        }
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

/// When the last large file has to be done with, if a look may take one part of `parts` of the time that is left and some
/// of that is for the answer.
fn in_time(view: &View<'_>, parts: u32) -> Instant {
    let now = Instant::now();
    now + view.control.deadline().saturating_duration_since(now) * 7 / 8 / parts
}

/// Where the bytes of a file come from.
enum Source<'s, 'm, 'v> {
    /// A file that is known by its path.
    Known(&'s RelPath),
    /// A file on a walk.
    Met(&'s seek::Met<'m, 'v>),
}

impl Source<'_, '_, '_> {
    fn path(&self) -> &RelPath {
        match self {
            Self::Known(path) => path,
            Self::Met(met) => met.path,
        }
    }

    fn scan(&self, view: &View<'_>, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        match self {
            Self::Known(path) => {
                *bytes = view.workspace().scan(path, limits::SEARCH_FILE_BYTES_MAX)?;
                Ok(())
            }
            Self::Met(met) => met.scan(view, &goes_on, bytes),
        }
    }

    fn pieces(&self, view: &View<'_>) -> Result<Box<dyn Pieces>, Failure> {
        match self {
            Self::Known(path) => view.workspace().pieces(path),
            Self::Met(met) => met.pieces(view),
        }
    }
}

/// What is looked for in every file.
struct Look<'a> {
    view: &'a View<'a>,
    pattern: &'a Pattern,
    context: usize,
    max: usize,
    /// When large files are no longer looked into.
    until: Instant,
    /// What editors have not saved.
    typed: &'a BTreeMap<RelPath, Arc<Unsaved>>,
}

impl Look<'_> {
    /// Whether hits are weighed. The native answer always has what was meant first.
    fn weighs(&self) -> Ranking {
        match self.view.terms.evidence {
            Evidence::None => Ranking::ByMeaning,
            Evidence::Bytes => self.view.terms.ranking,
        }
    }

    /// Looks through one file.
    fn at_file(&self, found: &mut Found, source: &Source<'_, '_, '_>) -> Result<(), Failure> {
        let path = source.path();
        if !self.view.may_read(path) {
            return Ok(());
        }
        if let Some(unsaved) = self.typed.get(path) {
            return self.at_bytes(found, path, &unsaved.text);
        }
        let mut bytes = std::mem::take(&mut found.buffer);
        let looked = match source.scan(self.view, &mut bytes) {
            Ok(()) => self.at_bytes(found, path, &bytes),
            Err(failure) if failure.kind == Kind::TooLarge => self.at_large(found, source),
            // Gone or closed since it was listed: one file does not hide the others.
            Err(_) => {
                found.unreadable += 1;
                Ok(())
            }
        };
        found.buffer = bytes;
        looked
    }

    fn at_bytes(&self, found: &mut Found, path: &RelPath, bytes: &[u8]) -> Result<(), Failure> {
        let Self { view, pattern, context, .. } = *self;
        let Some(text) = text_of(bytes) else {
            found.binary += 1;
            return Ok(());
        };
        found.scanned += 1;
        found.bytes += bytes.len() as u64;
        let place = self.place(path);
        let mut matched = pattern.hits(&text, self.take(place.as_ref()), view.control)?;
        if self.weighs() == Ranking::ByPlace && text.ends_with('\n') {
            let last = text.matches('\n').count() as u64 + 1;
            matched.hits.iter_mut().for_each(|hit| hit.ends_at(last, context));
        }
        self.keep(found, path, matched);
        Ok(())
    }

    /// What hits of a file are weighed by, if they are.
    fn place(&self, path: &RelPath) -> Option<Place> {
        (self.weighs() == Ranking::ByMeaning).then(|| Place::of(&path.to_string()))
    }

    fn take<'t>(&self, place: Option<&'t Place>) -> Take<'t> {
        let chars_max = match self.weighs() {
            Ranking::ByMeaning => limits::SEARCH_LINE_CHARS_MAX,
            Ranking::ByPlace => usize::MAX,
        };
        Take { context: self.context, room: self.max, chars_max, place }
    }

    /// Keeps what was found in a file.
    fn keep(&self, found: &mut Found, path: &RelPath, matched: Matched) {
        let Matched { hits, total, passed } = matched;
        if passed {
            found.left.add(path, Why::Line);
        }
        found.total += total;
        self.view.control.count_found(total as u64);
        found.hits += hits.len();
        if !hits.is_empty() {
            found.holding += 1;
            found.files.push((path.clone(), hits));
        }
        if found.hits >= self.max.saturating_mul(HELD_FACTOR) {
            found.cut(self.max, self.weighs());
        }
    }
}

/// How many times the hits of an answer are held before those that will not be shown go.
const HELD_FACTOR: usize = 4;

impl Found {
    /// What several threads found, as one.
    fn merged(gathered: impl Iterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for one in gathered {
            all.files.extend(one.files);
            all.hits += one.hits;
            all.total += one.total;
            all.scanned += one.scanned;
            all.bytes += one.bytes;
            all.binary += one.binary;
            all.left.join(one.left);
            all.unreadable += one.unreadable;
            all.holding += one.holding;
        }
        all
    }

    /// Puts files in order and keeps the first hits, or the best.
    fn cut(&mut self, max: usize, ranking: Ranking) {
        self.files.sort_unstable_by(|(one, _), (two, _)| seek::by_place(one, two));
        if ranking == Ranking::ByMeaning && self.hits > max {
            self.keep_best(max);
        }
        let mut room = max;
        self.files.retain_mut(|(_, hits)| {
            hits.truncate(room);
            room -= hits.len();
            !hits.is_empty()
        });
        self.hits = max - room;
    }

    /// Keeps the hits that count most. Files are in order, and none stands twice.
    fn keep_best(&mut self, max: usize) {
        let worth = |at: usize, hit: &Hit| (hit.weight.role, Reverse(hit.weight.points), at, hit.line);
        let files = self.files.iter().enumerate();
        let mut worths: Vec<_> =
            files.flat_map(|(at, (_, hits))| hits.iter().map(move |hit| worth(at, hit))).collect();
        if worths.len() <= max {
            return;
        }
        let (_, first_out, _) = worths.select_nth_unstable(max);
        let first_out = *first_out;
        for (at, (_, hits)) in self.files.iter_mut().enumerate() {
            hits.retain(|hit| worth(at, hit) < first_out);
        }
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
            .maybe("large", some(self.left.count()))
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
            [(self.binary, "not text"), (self.left.count(), "too large"), (self.unreadable, "not readable")]
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
