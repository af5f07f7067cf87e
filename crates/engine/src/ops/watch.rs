//! `watch` starts a watch, whose changes `watched` reports; `unwatch` ends the watch. A watch reports changes by other
//! programs as far as the kernel reports them; a `rescan` event marks lost events.

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    glob::GlobPatternSet,
    operation::{
        BuildWatchOutcomeFn, Operation, OperationPlanningResult, PathAccessRequest, PathlessOperation, PlanResult,
        ResolvedTarget,
    },
    ops::text_pages::shorten_for_error,
    outcome::{OperationOutcome, RecordedEntryFields},
    watches::{WatchBeginOrEndRequest, WatchDepth, WatchEventKind, WatchLifetimeKind},
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recursive: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    #[serde(skip)]
    pub lifetime: WatchLifetimeKind,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct WatchOutcome {
    pub watch: String,
    pub path: RelPath,
    pub recursive: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<WatchEventKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    pub cursor: String,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
    #[serde(skip)]
    pub change: BegunOrEndedWatch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BegunOrEndedWatch {
    Started,
    Ended,
}

impl OperationOutcome for WatchOutcome {}

impl WatchArgs {
    fn event_kinds(&self) -> Result<Vec<WatchEventKind>, Error> {
        let parse = |word: &String| {
            WatchEventKind::parse(word).ok_or_else(|| {
                let known: Vec<&str> = WatchEventKind::CHOICES.iter().map(|known| known.as_str()).collect();
                Error::new(ErrorKind::BadRequest, format!("unknown event type '{}'", shorten_for_error(word)))
                    .with_next_step(format!("use one or more of: {}", known.join(", ")))
            })
        };
        self.types.iter().map(parse).collect()
    }
}

impl Operation for WatchArgs {
    type Paths = PathAccessRequest;
    type Outcome = WatchOutcome;

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        self.event_kinds()?;
        if let Some(glob) = &self.glob {
            GlobPatternSet::from_name_patterns([glob.as_str()])?;
        }
        Ok(PathAccessRequest::read(self.path.as_deref().unwrap_or(".")))
    }

    fn plan(&self, _context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        if target.stat.is_none() {
            return Err(Error::new(ErrorKind::NotFound, format!("{} does not exist", target.path))
                .with_next_step("watch the directory in which it will be created"));
        }
        let request = WatchBeginOrEndRequest::Begin {
            path: target.path.clone(),
            depth: if self.recursive { WatchDepth::Deep } else { WatchDepth::Shallow },
            event_kinds: self.event_kinds()?,
            glob: self.glob.clone(),
            lifetime: self.lifetime,
        };
        Ok(OperationPlanningResult::Watch { request, build_outcome: build_watch_outcome(BegunOrEndedWatch::Started) })
    }
}

fn build_watch_outcome(change: BegunOrEndedWatch) -> BuildWatchOutcomeFn<WatchOutcome> {
    Box::new(move |watch, receipt| WatchOutcome {
        watch: watch.id.clone(),
        path: watch.path.clone(),
        recursive: watch.depth == WatchDepth::Deep,
        types: watch.event_kinds.clone(),
        glob: watch.glob.clone(),
        cursor: format!("r{}", receipt.entry),
        recorded: receipt.into(),
        change,
    })
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnwatchArgs {
    pub watch: String,
}

impl PathlessOperation for UnwatchArgs {
    type Outcome = WatchOutcome;

    fn plan(&self, _context: &CallContext<'_>) -> PlanResult<Self> {
        let request = WatchBeginOrEndRequest::End { id: self.watch.clone() };
        Ok(OperationPlanningResult::Watch { request, build_outcome: build_watch_outcome(BegunOrEndedWatch::Ended) })
    }
}
