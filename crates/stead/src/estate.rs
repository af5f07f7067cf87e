//! An estate as the command line and the HTTP face ask it: one errand in, one object out, whoever asks.

use std::{
    io::{Read, Write},
    path::Path,
    sync::Arc,
};

use engine::{Access, Caller, Failure, Grants, Kind, Principal};
use faces::http::{Errand, Leaving, Steward};
use local::{
    Copied, Estate, EstateOptions, Page, Paged, Scope, Token, TokenAsk, WorkspaceAsk, WorkspaceName,
};
use path::RelPath;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{
    cli::{Indexing, WorkspaceFlags},
    time,
};

/// How the flags open an estate.
pub(crate) fn options(flags: &WorkspaceFlags, directory: &Path) -> EstateOptions {
    let mut options = EstateOptions::new(directory.to_owned());
    options.durability = flags.durability.into();
    options.names = flags.names.into();
    options.resolver = flags.resolver.into();
    options.indexing = match flags.index {
        Indexing::On => local::Indexing::Keep,
        Indexing::Use => local::Indexing::Use,
        Indexing::Off => local::Indexing::Off,
    };
    options
}

/// Does errands on an estate.
pub(crate) struct Stewardship(pub(crate) Arc<Estate>);

/// Which page of workspaces.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListAsk {
    cursor: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    trash: bool,
}

/// A new workspace with its name.
#[derive(Debug, Deserialize)]
struct Named {
    name: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Under which name a workspace comes back.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RestoreAsk {
    name: Option<String>,
}

/// Who shall be let in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenWanted {
    principal: String,
    #[serde(default)]
    read_only: bool,
    readable: Option<Vec<String>>,
    writable: Option<Vec<String>>,
    lasts_seconds: Option<u32>,
    #[serde(default)]
    label: String,
}

fn decode<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Failure::new(Kind::BadRequest, format!("the arguments do not fit: {error}")))
}

fn paths(wires: Option<Vec<String>>) -> Result<Vec<RelPath>, Failure> {
    let Some(wires) = wires else { return Ok(vec![RelPath::root()]) };
    wires.iter().map(|wire| Ok(RelPath::from_wire(wire)?)).collect()
}

impl TokenWanted {
    fn ask(self, now_ms: i64) -> Result<TokenAsk, Failure> {
        let access = if self.read_only { Access::ReadOnly } else { Access::ReadWrite };
        let (readable, writable) = (paths(self.readable)?, paths(self.writable)?);
        let lasts_ms = self.lasts_seconds.map(|seconds| i64::from(seconds) * 1000);
        Ok(TokenAsk {
            principal: Principal::parse(&self.principal)?,
            grants: Grants { access, readable, writable, ..Grants::default() },
            ends_ms: lasts_ms.map(|lasts_ms| now_ms.saturating_add(lasts_ms)),
            label: self.label,
        })
    }
}

/// A token as it is told; never what it is.
pub(crate) fn described(token: &Token) -> Value {
    let (readable, writable) = token.reach();
    json!({
        "id": token.id,
        "principal": token.principal,
        "read_only": token.is_read_only(),
        "readable": readable,
        "writable": writable,
        "label": token.label,
        "created": time::iso_utc(token.created_ms),
        "ends": token.ends_ms.map(time::iso_utc),
    })
}

impl Stewardship {
    fn list(&self, ask: ListAsk) -> Result<Value, Failure> {
        let of = if ask.trash { Paged::Trash } else { Paged::Ready };
        let (found, next) = self.0.list(&Page { cursor: ask.cursor, limit: ask.limit, of })?;
        let workspaces: Vec<Value> = found.iter().map(local::Description::to_json).collect();
        Ok(json!({ "workspaces": workspaces, "truncated": next.is_some(), "cursor": next }))
    }

    fn make_token(&self, by: &Caller, name: &str, ask: Map<String, Value>) -> Result<Value, Failure> {
        let ask = decode::<TokenWanted>(ask)?.ask(self.0.now_ms())?;
        let (made, shown) = self.0.create_token(by, &WorkspaceName::parse(name)?, &ask)?;
        let mut object = described(&made.token);
        object["token"] = shown.into();
        Ok(object)
    }

    fn revoke(&self, by: &Caller, name: &str, id: &str) -> Result<Value, Failure> {
        let scope = self.0.scope_of(&WorkspaceName::parse(name)?)?;
        let missing = || Failure::new(Kind::NotFound, format!("workspace {name} has no token {id}"));
        self.0.token(id)?.filter(|found| found.scope == scope).ok_or_else(missing)?;
        Ok(described(&self.0.revoke_token(by, id)?))
    }

    fn tokens(&self, scope: &Scope) -> Result<Value, Failure> {
        let tokens: Vec<Value> = self.0.tokens(scope)?.iter().map(described).collect();
        Ok(json!({ "tokens": tokens }))
    }
}

impl Steward for Stewardship {
    fn run(&self, by: &Caller, errand: Errand) -> Result<Value, Failure> {
        match errand {
            Errand::List(ask) => self.list(decode(ask)?),
            Errand::Create(ask) => {
                let Named { name, rest } = decode(ask)?;
                let ask: WorkspaceAsk = decode(rest)?;
                Ok(self.0.create(by, &WorkspaceName::parse(&name)?, &ask)?.to_json())
            }
            Errand::Show(name) => self.0.describe(&WorkspaceName::parse(&name)?),
            Errand::Destroy(name) => Ok(self.0.destroy(by, &WorkspaceName::parse(&name)?)?.to_json()),
            Errand::Fork(from, ask) => {
                let Named { name, rest } = decode(ask)?;
                let (from, name) = (WorkspaceName::parse(&from)?, WorkspaceName::parse(&name)?);
                Ok(self.0.fork(by, &from, &name, &decode(rest)?)?.to_json())
            }
            Errand::Restore(name, ask) => {
                let rename = decode::<RestoreAsk>(ask)?.name;
                let rename = rename.as_deref().map(WorkspaceName::parse).transpose()?;
                Ok(self.0.restore(by, &name, rename.as_ref())?.to_json())
            }
            Errand::Tokens(name) => {
                let scope = self.0.scope_of(&WorkspaceName::parse(&name)?)?;
                self.tokens(&scope)
            }
            Errand::MakeToken(name, ask) => self.make_token(by, &name, ask),
            Errand::Revoke(name, id) => self.revoke(by, &name, &id),
        }
    }

    fn export(
        &self,
        by: &Caller,
        name: &str,
        begin: &mut dyn FnMut(Leaving),
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let mut told = |copied: Copied| begin(Leaving { left_out: copied.left_out });
        self.0.export(by, &WorkspaceName::parse(name)?, &mut told, out).map(drop)
    }

    fn import(
        &self,
        by: &Caller,
        name: &str,
        ask: Map<String, Value>,
        from: &mut dyn Read,
    ) -> Result<Value, Failure> {
        Ok(self.0.import(by, &WorkspaceName::parse(name)?, &decode(ask)?, from)?.to_json())
    }
}
