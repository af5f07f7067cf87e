//! One rule: which calls, rights, places, principals and sizes it is about, and the tier it gives them.

use path::RelPath;
use serde::Serialize;

use super::{Below, Tier};
use crate::{caller::Principal, glob::Globs, protected};

/// What a call wants with one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// See which names are in a directory.
    List,
    /// See what is in a file, or what kind of thing something is.
    Read,
    /// Make something where nothing is.
    Create,
    /// Change what is there.
    Modify,
    /// Take it away from there.
    Delete,
}

impl Right {
    /// Every right.
    pub const ALL: &[Right] = &[Right::List, Right::Read, Right::Create, Right::Modify, Right::Delete];

    /// The word that policies use.
    pub fn word(self) -> &'static str {
        match self {
            Right::List => "list",
            Right::Read => "read",
            Right::Create => "create",
            Right::Modify => "modify",
            Right::Delete => "delete",
        }
    }
}

/// Who asks for what.
pub(crate) struct Asked<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) operation: &'a str,
    pub(crate) tool: Option<&'a str>,
    /// What the tool's definition says.
    pub(crate) declared: Option<Tier>,
}

/// One thing that a call would do to one place.
pub(crate) struct Action<'a> {
    pub(crate) right: Right,
    pub(crate) path: &'a RelPath,
    /// Bytes that it would put there.
    pub(crate) bytes: Option<u64>,
    pub(crate) below: Below,
}

impl<'a> Action<'a> {
    pub(crate) fn new(right: Right, path: &'a RelPath) -> Self {
        Self { right, path, bytes: None, below: Below::Nothing }
    }

    pub(crate) fn of_bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }
}

/// Words of which one is enough: exact, with a `*` at the end, or `*` alone.
#[derive(Debug, Clone)]
pub(crate) struct Patterns(Vec<String>);

impl Patterns {
    pub(super) fn new(patterns: Vec<String>) -> Self {
        Self(patterns)
    }

    pub(crate) fn fit(&self, word: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => word.starts_with(start),
            None => pattern == word,
        })
    }

    /// Whether they are about a call: its operation, or the tool with or without its dialect.
    pub(crate) fn fit_call(&self, operation: &str, tool: Option<&str>) -> bool {
        let fits_tool =
            |tool: &str| self.fit(tool) || tool.split_once('/').is_some_and(|(_, name)| self.fit(name));
        self.fit(operation) || tool.is_some_and(fits_tool)
    }

    pub(crate) fn words(&self) -> &[String] {
        &self.0
    }
}

/// Places by pattern, with the patterns as they were written.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(super) globs: Globs,
    pub(super) written: Vec<String>,
}

impl Places {
    /// Whether a pattern could mean something below a place.
    fn could_be_below(&self, path: &RelPath) -> bool {
        self.written.iter().any(|pattern| {
            let parts = pattern.strip_prefix('/').unwrap_or(pattern).split('/');
            let fixed = parts.take_while(|part| !part.contains(['*', '?', '[', '{', '\\']));
            let anywhere = !pattern.contains('/');
            let mut pairs = path.components().zip(fixed);
            anywhere || pairs.all(|(name, part)| name == part.as_bytes())
        })
    }
}

/// One rule.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(super) operations: Option<Patterns>,
    pub(super) rights: Option<Vec<Right>>,
    pub(super) paths: Option<Places>,
    pub(super) principals: Option<Patterns>,
    pub(super) size_over: Option<u64>,
    pub(crate) tier: Tier,
}

impl Rule {
    pub(super) fn fits(&self, asked: &Asked<'_>, action: &Action<'_>) -> bool {
        self.fits_but_place(asked, action)
            && self.paths.as_ref().is_none_or(|places| places.globs.hide(action.path))
    }

    /// Whether it could fit something that comes along below the action's place.
    pub(super) fn could_fit(&self, asked: &Asked<'_>, action: &Action<'_>) -> bool {
        let below = |places: &Places| places.globs.hide(action.path) || places.could_be_below(action.path);
        self.fits_but_place(asked, action) && self.paths.as_ref().is_none_or(below)
    }

    fn fits_but_place(&self, asked: &Asked<'_>, action: &Action<'_>) -> bool {
        let sized = |limit: u64| action.bytes.is_some_and(|bytes| bytes > limit);
        self.may_concern(action.right)
            && self.is_of(asked)
            && self.is_about(asked.principal)
            && self.size_over.is_none_or(sized)
    }

    pub(super) fn may_concern(&self, right: Right) -> bool {
        self.rights.as_ref().is_none_or(|rights| rights.contains(&right))
            && (self.size_over.is_none() || matches!(right, Right::Create | Right::Modify))
    }

    pub(super) fn is_of(&self, asked: &Asked<'_>) -> bool {
        self.operations.as_ref().is_none_or(|patterns| patterns.fit_call(asked.operation, asked.tool))
    }

    pub(crate) fn is_about(&self, principal: &Principal) -> bool {
        self.principals.as_ref().is_none_or(|patterns| patterns.fit(&principal.to_string()))
    }

    pub(super) fn is_unconditional(&self) -> bool {
        self.paths.is_none() && self.rights.is_none() && self.size_over.is_none()
    }

    /// Whether it speaks of a protected place by name; a pattern that merely covers it does not.
    pub(super) fn names(&self, place: &[&str]) -> bool {
        let written = self.paths.as_ref().map_or(&[][..], |places| &places.written);
        written.iter().any(|pattern| protected::is_named(pattern, place))
    }

    pub(crate) fn paths(&self) -> &[String] {
        self.paths.as_ref().map_or(&[][..], |places| &places.written)
    }

    pub(crate) fn operations(&self) -> &[String] {
        self.operations.as_ref().map_or(&[][..], Patterns::words)
    }

    pub(crate) fn rights(&self) -> &[Right] {
        self.rights.as_deref().unwrap_or(&[])
    }
}
