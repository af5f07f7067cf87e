//! `read`: the bytes of one file, honestly. Text with its encoding and endings, anything else as base64; by page, by
//! lines or by bytes; always with the version of the whole file and, when something is left out, the next call.

mod bytes;
mod lines;
mod range;
mod raw;

use range::{Range, Unit};
use serde::Deserialize;
use serde_json::{Map, Value};
use text::{
    encoding::{Detected, detect},
    visible::visible_line,
};

use super::answer::{Facts, excerpt};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Operation, Planned, Target},
    plan::Top,
    terms::Evidence,
    version::Version,
    view::View,
    workspace::{FileBytes, Node, Want},
};

/// The arguments of `read`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    path: String,
    lines: Option<String>,
    bytes: Option<String>,
    #[serde(rename = "as")]
    form: Option<String>,
}

/// How the content shall come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As text if it is text, as base64 otherwise.
    Fitting,
    /// As text or not at all.
    Text,
    /// As base64.
    Base64,
}

impl Form {
    fn parse(written: Option<&str>) -> Result<Self, Failure> {
        match written {
            None => Ok(Form::Fitting),
            Some("text") => Ok(Form::Text),
            Some("base64") => Ok(Form::Base64),
            Some(other) => {
                Err(Failure::new(Kind::BadRequest, format!("cannot read as '{}'", excerpt(other)))
                    .hint("as is \"text\" or \"base64\"; leave it out to get what fits the file"))
            }
        }
    }

    /// The argument that asks for this form.
    fn argument(self) -> Option<&'static str> {
        match self {
            Form::Fitting => None,
            Form::Text => Some("text"),
            Form::Base64 => Some("base64"),
        }
    }
}

/// Which part of the file is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Start,
    Lines(Range),
    Bytes(Range),
}

impl Read {
    fn wish(&self) -> Result<(Part, Form), Failure> {
        let form = Form::parse(self.form.as_deref())?;
        let part = match (&self.lines, &self.bytes) {
            (None, None) => Part::Start,
            (Some(lines), None) => Part::Lines(range::parse(lines, Unit::Lines)?),
            (None, Some(bytes)) => Part::Bytes(range::parse(bytes, Unit::Bytes)?),
            (Some(_), Some(_)) => {
                return Err(Failure::new(Kind::BadRequest, "lines and bytes exclude each other")
                    .hint("give one of them"));
            }
        };
        if let (Part::Lines(_), Form::Base64) = (part, form) {
            return Err(
                Failure::new(Kind::BadRequest, "base64 has no lines").hint("give bytes instead of lines")
            );
        }
        Ok((part, form))
    }
}

impl Operation for Read {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        self.wish()?;
        Ok(vec![Ask::read(&self.path)])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        file_at(target)?;
        if view.terms.evidence == Evidence::Bytes {
            return raw::bytes(view, target, self.wish()?.0);
        }
        match self.wish()? {
            (Part::Bytes(range), form) => bytes::exact(view, target, range, form),
            (Part::Start, Form::Base64) => bytes::first_page(view, target),
            (Part::Start, form @ (Form::Fitting | Form::Text)) => text_or_bytes(view, target, None, form),
            (Part::Lines(range), form) => text_or_bytes(view, target, Some(range), form),
        }
    }
}

/// The regular file at a target, or what to do instead.
pub(super) fn file_at(target: &Target) -> Result<Node, Failure> {
    let path = &target.path;
    let Some(node) = target.node else {
        let parent = path.parent().unwrap_or_default();
        return Err(Failure::new(Kind::NotFound, format!("{path} does not exist"))
            .hint(format!("call list with path {parent} to see what is there")));
    };
    match node.top {
        Top::File => Ok(node),
        Top::Directory => Err(Failure::new(Kind::IsDirectory, format!("{path} is a directory"))
            .hint(format!("call list with path {path}"))),
        Top::Link | Top::Special => {
            Err(Failure::new(Kind::NotRegular, format!("{path} is not a regular file"))
                .hint("only files can be read"))
        }
    }
}

/// Reads the whole file and shows a page of it.
fn text_or_bytes(
    view: &View<'_>,
    target: &Target,
    range: Option<Range>,
    form: Form,
) -> Result<Planned, Failure> {
    let path = &target.path;
    let file =
        view.read(path, Want::Whole { limit_bytes: limits::READ_WHOLE_BYTES_MAX }).map_err(|failure| {
            if failure.kind != Kind::TooLarge {
                return failure;
            }
            failure.hint(format!("call read with path {path}, bytes \"0-{}\"", limits::PAGE_CHARS - 1))
        })?;
    view.remember(path, file.version, Some(&file.bytes));
    match (detect(&file.bytes), form, range) {
        (Detected::Text { encoding }, _, _) => lines::page_of(view, target, file, encoding, range, form),
        (Detected::Binary, Form::Fitting, None) => bytes::start_of(view, target, file),
        (Detected::Binary, _, _) => Err(not_text(target, &file)),
    }
}

fn not_text(target: &Target, file: &FileBytes) -> Failure {
    let path = &target.path;
    Failure::new(Kind::NotText, format!("{path} is not text"))
        .hint(format!("call read with path {path}, as \"base64\""))
        .fact("size", file.node.size)
        .fact("version", file.version.to_string())
}

/// The facts that every answer of `read` has, around its content.
fn facts(target: &Target, version: &Version, rev: String, node: &Node, content: String) -> Facts {
    Facts::new()
        .with("path", target.path.to_string())
        .with("content", content)
        .file(version, rev)
        .with("size", node.size)
}

/// What follows when more of the file is left.
struct Next {
    argument: &'static str,
    range: String,
    form: Form,
}

impl Next {
    fn object(&self, target: &Target) -> Map<String, Value> {
        Facts::new()
            .with("path", target.path.to_string())
            .with(self.argument, self.range.clone())
            .maybe("as", self.form.argument())
            .object()
    }

    fn sentence(&self, target: &Target) -> String {
        let form = self.form.argument().map_or(String::new(), |form| format!(", as \"{form}\""));
        let path = target.path.to_wire();
        format!("call read with path {}, {} \"{}\"{form}", visible_line(&path), self.argument, self.range)
    }
}

/// Adds that a file has other names, which a change through this one will not reach.
fn with_links(facts: Facts, node: &Node) -> Facts {
    if node.links <= 1 {
        return facts;
    }
    let notice = format!(
        "this file has {} names; a change through this one leaves the others as they are",
        node.links
    );
    facts.with("links", node.links).with("notices", vec![notice])
}

/// The text twin: the content, then one line of facts, then the next call.
fn twin(content: &str, facts_line: &str, more: Option<String>) -> String {
    let mut text = String::with_capacity(content.len() + facts_line.len() + 64);
    text.push_str(content);
    if !content.is_empty() && !content.ends_with(['\n', '\r']) {
        text.push('\n');
    }
    text.push_str(facts_line);
    if let Some(more) = more {
        text.push('\n');
        text.push_str(&more);
    }
    text
}
