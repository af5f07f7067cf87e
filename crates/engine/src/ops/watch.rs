//! `watch`: from now on, what happens at a place is told by `watched`, whoever does it. Other programs' changes are told
//! as far as the kernel tells them; where it could not, a rescan says so.

use serde::Deserialize;

use super::{
    answer::{Facts, excerpt},
    lock::shown,
};
use crate::{
    engine::Answer,
    failure::{Failure, Kind},
    glob::Globs,
    operation::{Ask, Operation, Planned, Target},
    view::View,
    watching::{Depth, Happening, Watch as Kept, WatchAsk},
    workspace::Committed,
};

/// The arguments of `watch`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Watch {
    path: Option<String>,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    types: Vec<String>,
    glob: Option<String>,
}

impl Watch {
    fn happenings(&self) -> Result<Vec<Happening>, Failure> {
        let chosen = |word: &String| {
            Happening::chosen(word).ok_or_else(|| {
                let known: Vec<&str> = Happening::CHOICES.iter().map(|known| known.word()).collect();
                Failure::new(Kind::BadRequest, format!("there is no event type '{}'", excerpt(word)))
                    .hint(format!("types are {}", known.join(", ")))
            })
        };
        self.types.iter().map(chosen).collect()
    }
}

impl Operation for Watch {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        self.happenings()?;
        if let Some(glob) = &self.glob {
            Globs::by_name([glob.as_str()])?;
        }
        Ok(vec![Ask::read(self.path.as_deref().unwrap_or("."))])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        if target.node.is_none() {
            return Err(Failure::new(Kind::NotFound, format!("{} does not exist", target.path))
                .hint("watch the directory it will be in"));
        }
        let ask = WatchAsk::Begin {
            path: target.path.clone(),
            depth: if self.recursive { Depth::Deep } else { Depth::Shallow },
            happenings: self.happenings()?,
            glob: self.glob.clone(),
            lasting: view.terms.lasting,
        };
        let finish = Box::new(|watch: &Kept, committed: &Committed| {
            let text = format!("watching {} as {}; call watched to hear", shown(&watch.path), watch.id);
            answered(watch, committed, text)
        });
        Ok(Planned::Watch { ask, finish })
    }
}

/// The answer of `watch` and `unwatch`.
pub(super) fn answered(watch: &Kept, committed: &Committed, text: String) -> Answer {
    let types: Vec<&str> = watch.happenings.iter().map(|happening| happening.word()).collect();
    Facts::new()
        .with("watch", watch.id.clone())
        .with("path", watch.path.to_string())
        .with("recursive", watch.depth == Depth::Deep)
        .maybe("types", (!types.is_empty()).then_some(types))
        .maybe("glob", watch.glob.clone())
        .with("cursor", format!("r{}", committed.number))
        .committed(committed)
        .line(text)
}
