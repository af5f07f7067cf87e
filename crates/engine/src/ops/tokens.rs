//! The tokens of HTTP clients, as the operations of `token` create and show them.

use serde::{Serialize, Serializer};
use stead_path::RelPath;

use super::{CreateTokenArgs, RotateTokenArgs};
use crate::{
    caller::{CallerAccessMode, CallerAuthority, Grants, Principal},
    errors::{Error, ErrorKind},
    outcome::is_default,
    utc_time::{UtcSecond, parse_duration_ms},
};

/// A secret, which cannot be printed for debugging and never becomes part of a journal entry or a replayed outcome.
#[derive(Clone, Default, JsonSchema)]
#[schemars(with = "String")]
pub struct Secret(pub String);

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl CreateTokenArgs {
    /// The principal and the grants of the new token. A token that administers opens no file.
    pub fn principal_and_grants(&self) -> Result<(Principal, Grants), Error> {
        let principal = Principal::parse(&self.principal)?;
        let access = if self.read_only { CallerAccessMode::ReadOnly } else { CallerAccessMode::ReadWrite };
        let authority = match (self.administer || self.estate, self.export) {
            (false, false) => {
                let (readable, writable) = (parse_paths(self.readable.as_ref())?, parse_paths(self.writable.as_ref())?);
                return Ok((principal, Grants { access, readable, writable, ..Grants::default() }));
            }
            (false, true) => {
                return Err(Error::new(ErrorKind::BadRequest, "only a token that administers can export")
                    .with_next_step("pass administer together with export"));
            }
            (true, false) => CallerAuthority::AdministrationToken,
            (true, true) => CallerAuthority::AdministrationAndExportToken,
        };
        if !matches!(principal, Principal::User(_)) {
            return Err(Error::new(ErrorKind::BadRequest, "an administrator token cannot belong to an agent")
                .with_next_step("pass a principal of the form user:NAME"));
        }
        Ok((principal, Grants { access, readable: Vec::new(), writable: Vec::new(), authority, ..Grants::default() }))
    }

    /// The end of the new token in Unix milliseconds, unless it is valid until it is revoked.
    pub fn expires_ms(&self, now_ms: i64) -> Result<Option<i64>, Error> {
        let lasts_ms = self.lasts.as_deref().map(|text| parse_duration("lasts", text)).transpose()?;
        let lasts_ms = lasts_ms.or_else(|| self.lasts_seconds.map(|seconds| i64::from(seconds) * 1000));
        Ok(lasts_ms.map(|lasts_ms| now_ms.saturating_add(lasts_ms)))
    }
}

fn parse_duration(argument: &str, text: &str) -> Result<i64, Error> {
    parse_duration_ms(text).ok_or_else(|| {
        Error::new(ErrorKind::BadRequest, format!("{argument}: '{text}' is not a duration"))
            .with_next_step("use a form such as 90s, 30m, 2h or 7d")
    })
}

fn parse_paths(wires: Option<&Vec<String>>) -> Result<Vec<RelPath>, Error> {
    let Some(wires) = wires else { return Ok(vec![RelPath::root()]) };
    let parse = |wire: &String| {
        // Shell completion adds a slash to a directory.
        RelPath::from_wire(wire.strip_suffix('/').unwrap_or(wire)).map_err(|error| {
            Error::new(ErrorKind::BadRequest, format!("{wire}: {error}"))
                .with_next_step("pass a path relative to the workspace, such as src/main.rs")
        })
    };
    wires.iter().map(parse).collect()
}

#[derive(Debug, Serialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "these are independent rights of a token")]
pub struct AccessTokenFields {
    pub id: String,
    pub principal: String,
    pub read_only: bool,
    pub readable: Vec<String>,
    pub writable: Vec<String>,
    pub label: String,
    pub created: UtcSecond,
    pub ends: Option<UtcSecond>,
    #[serde(skip_serializing_if = "is_default")]
    pub administer: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub export: bool,
    #[serde(skip)]
    pub is_expired: bool,
}

impl RotateTokenArgs {
    /// The time in milliseconds during which both tokens are valid.
    pub fn overlap_ms(&self) -> Result<i64, Error> {
        parse_duration("overlap", self.overlap.as_deref().unwrap_or("1h"))
    }
}
