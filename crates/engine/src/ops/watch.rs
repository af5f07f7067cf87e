//! `watch` starts a watch, whose changes `watched` reports; `unwatch` ends the watch. Changes by other programs are
//! reported if the kernel reports them, and a `rescan` event marks a gap.

use serde::Deserialize;

use crate::{
    call_context::CallContext,
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    glob::Globs,
    operation::{
        Operation, OperationPlanningResult, PlanResult, RequestedPath, RequestedPathIndex, RequestedPaths,
        ResolvedTargets,
    },
    ops::outcome_builder::{OutcomeBuilder, shorten_for_error},
    watches::{Watch, WatchBeginOrEndRequest, WatchDepth, WatchEventKind},
    workspace::CommitReceipt,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WatchArgs {
    path: Option<String>,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    types: Vec<String>,
    glob: Option<String>,
}

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
    type Resolved = RequestedPathIndex;
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, paths: &mut RequestedPaths) -> Result<Self::Resolved, Error> {
        self.event_kinds()?;
        if let Some(glob) = &self.glob {
            Globs::from_name_patterns([glob.as_str()])?;
        }
        Ok(paths.add(RequestedPath::read(self.path.as_deref().unwrap_or("."))))
    }

    fn plan(&self, context: &CallContext<'_>, path: RequestedPathIndex, targets: &ResolvedTargets) -> PlanResult<Self> {
        let target = &targets[path];
        if target.stat.is_none() {
            return Err(Error::new(ErrorKind::NotFound, format!("{} does not exist", target.path))
                .with_next_step("watch the directory in which it will be created"));
        }
        let request = WatchBeginOrEndRequest::Begin {
            path: target.path.clone(),
            depth: if self.recursive { WatchDepth::Deep } else { WatchDepth::Shallow },
            event_kinds: self.event_kinds()?,
            glob: self.glob.clone(),
            lifetime: context.options.watch_lifetime,
        };
        let build_outcome = Box::new(|watch: &Watch, receipt: &CommitReceipt| {
            let text = format!("watching {} as {}; call watched for events", watch.path, watch.id);
            watch_outcome(watch, receipt, text)
        });
        Ok(OperationPlanningResult::Watch { request, build_outcome })
    }
}

fn watch_outcome(watch: &Watch, receipt: &CommitReceipt, text: String) -> CallOutcome {
    let types: Vec<&str> = watch.event_kinds.iter().map(|event_kind| event_kind.as_str()).collect();
    OutcomeBuilder::new()
        .with_field("watch", watch.id.clone())
        .with_field("path", watch.path.to_string())
        .with_field("recursive", watch.depth == WatchDepth::Deep)
        .with_some("types", (!types.is_empty()).then_some(types))
        .with_some("glob", watch.glob.clone())
        .with_field("cursor", format!("r{}", receipt.entry))
        .with_receipt(receipt)
        .build_one_line(text)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnwatchArgs {
    watch: String,
}

impl Operation for UnwatchArgs {
    type Resolved = ();
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, _paths: &mut RequestedPaths) -> Result<(), Error> {
        Ok(())
    }

    fn plan(&self, _context: &CallContext<'_>, (): (), _targets: &ResolvedTargets) -> PlanResult<Self> {
        let build_outcome = Box::new(|watch: &Watch, receipt: &CommitReceipt| {
            let text = format!("stopped watching {} as {}", watch.path, watch.id);
            watch_outcome(watch, receipt, text)
        });
        Ok(OperationPlanningResult::Watch {
            request: WatchBeginOrEndRequest::End { id: self.watch.clone() },
            build_outcome,
        })
    }
}
