//! Administers hosted workspaces for the command line and for HTTP; each request yields one JSON object.

use std::{
    io::{Read, Write},
    path::Path,
    sync::Arc,
};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use stead_engine::{Caller, CallerAccessMode, Error, ErrorKind, Grants, Principal, UtcSecond};
use stead_local::{
    AccessTokenRecord, CreateTokenRequest, CreateWorkspaceRequest, ListWorkspacesRequest, TokenScope,
    WorkspaceCopyCounts, WorkspaceListFilter, WorkspaceName, WorkspaceRegistry, WorkspaceRegistryOptions,
};
use stead_path::RelPath;
use stead_protocols::http::{WorkspaceAdminRequest, WorkspaceExportStartInfo, WorkspaceRegistryAdmin};

use crate::cli::{IndexModeArg, WorkspaceFlags};

pub(crate) fn registry_options(flags: &WorkspaceFlags, directory: &Path) -> WorkspaceRegistryOptions {
    let mut options = WorkspaceRegistryOptions::new(directory.to_owned());
    options.durability = flags.durability.into();
    options.name_profile = flags.names.into();
    options.resolver = flags.resolver.into();
    options.index_mode = match flags.index {
        IndexModeArg::On => stead_local::IndexBuildAndUseMode::Maintain,
        IndexModeArg::Use => stead_local::IndexBuildAndUseMode::UseExisting,
        IndexModeArg::Off => stead_local::IndexBuildAndUseMode::Off,
    };
    options
}

pub(crate) struct RegistryWorkspaceAdmin(pub(crate) Arc<WorkspaceRegistry>);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListWorkspacesArgs {
    cursor: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    trash: bool,
}

#[derive(Debug, Deserialize)]
struct NewWorkspaceNameAndArgs {
    name: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RestoreTrashedWorkspaceArgs {
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AdminCreateTokenArgs {
    principal: String,
    #[serde(default)]
    read_only: bool,
    readable: Option<Vec<String>>,
    writable: Option<Vec<String>>,
    lasts_seconds: Option<u32>,
    #[serde(default)]
    label: String,
}

fn decode_args<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Error> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Error::new(ErrorKind::BadRequest, format!("invalid arguments: {error}"))
            .with_next_step("GET /v1/openapi.json describes the arguments")
    })
}

fn parse_paths(wires: Option<Vec<String>>) -> Result<Vec<RelPath>, Error> {
    let Some(wires) = wires else { return Ok(vec![RelPath::root()]) };
    wires.iter().map(|wire| Ok(RelPath::from_wire(wire)?)).collect()
}

impl AdminCreateTokenArgs {
    fn into_token_request(self, now_ms: i64) -> Result<CreateTokenRequest, Error> {
        let access = if self.read_only { CallerAccessMode::ReadOnly } else { CallerAccessMode::ReadWrite };
        let (readable, writable) = (parse_paths(self.readable)?, parse_paths(self.writable)?);
        let lasts_ms = self.lasts_seconds.map(|seconds| i64::from(seconds) * 1000);
        Ok(CreateTokenRequest {
            principal: Principal::parse(&self.principal)?,
            grants: Grants { access, readable, writable, ..Grants::default() },
            expires_ms: lasts_ms.map(|lasts_ms| now_ms.saturating_add(lasts_ms)),
            label: self.label,
        })
    }
}

pub(crate) fn token_to_json(token: &AccessTokenRecord) -> Value {
    let (readable, writable) = token.readable_and_writable();
    json!({
        "id": token.id,
        "principal": token.principal,
        "read_only": token.is_read_only(),
        "readable": readable,
        "writable": writable,
        "label": token.label,
        "created": UtcSecond { unix_ms: token.created_ms },
        "ends": token.expires_ms.map(|unix_ms| UtcSecond { unix_ms }),
    })
}

impl RegistryWorkspaceAdmin {
    fn list_workspaces(&self, args: ListWorkspacesArgs) -> Result<Value, Error> {
        let filter = if args.trash { WorkspaceListFilter::Trashed } else { WorkspaceListFilter::Active };
        let (found, next) = self.0.list(&ListWorkspacesRequest { cursor: args.cursor, limit: args.limit, filter })?;
        let workspaces: Vec<Value> = found.iter().map(stead_local::WorkspaceDescription::to_json).collect();
        Ok(json!({ "workspaces": workspaces, "truncated": next.is_some(), "cursor": next }))
    }

    fn create_token(&self, by: &Caller, name: &str, args: Map<String, Value>) -> Result<Value, Error> {
        let request = decode_args::<AdminCreateTokenArgs>(args)?.into_token_request(self.0.now_ms())?;
        let (created, secret) = self.0.create_token(by, &WorkspaceName::parse(name)?, &request)?;
        let mut object = token_to_json(&created.token);
        object["token"] = secret.into();
        Ok(object)
    }

    fn revoke_token(&self, by: &Caller, name: &str, id: &str) -> Result<Value, Error> {
        let scope = self.0.scope_of_workspace(&WorkspaceName::parse(name)?)?;
        let missing = || {
            Error::new(ErrorKind::NotFound, format!("workspace {name} has no token {id}"))
                .with_next_step(format!("GET /v1/workspaces/{name}/tokens lists its tokens"))
        };
        self.0.load_token(id)?.filter(|found| found.scope == scope).ok_or_else(missing)?;
        Ok(token_to_json(&self.0.revoke_token(by, id)?))
    }

    fn list_tokens(&self, scope: &TokenScope) -> Result<Value, Error> {
        let tokens: Vec<Value> = self.0.list_tokens(scope)?.iter().map(token_to_json).collect();
        Ok(json!({ "tokens": tokens }))
    }
}

impl WorkspaceRegistryAdmin for RegistryWorkspaceAdmin {
    fn run_request(&self, by: &Caller, request: WorkspaceAdminRequest) -> Result<Value, Error> {
        match request {
            WorkspaceAdminRequest::List(args) => self.list_workspaces(decode_args(args)?),
            WorkspaceAdminRequest::Create(args) => {
                let NewWorkspaceNameAndArgs { name, rest } = decode_args(args)?;
                let request: CreateWorkspaceRequest = decode_args(rest)?;
                Ok(self.0.create(by, &WorkspaceName::parse(&name)?, &request)?.to_json())
            }
            WorkspaceAdminRequest::Show(name) => self.0.describe(&WorkspaceName::parse(&name)?),
            WorkspaceAdminRequest::Destroy(name) => Ok(self.0.destroy(by, &WorkspaceName::parse(&name)?)?.to_json()),
            WorkspaceAdminRequest::Fork(from, args) => {
                let NewWorkspaceNameAndArgs { name, rest } = decode_args(args)?;
                let (from, name) = (WorkspaceName::parse(&from)?, WorkspaceName::parse(&name)?);
                Ok(self.0.fork(by, &from, &name, &decode_args(rest)?)?.to_json())
            }
            WorkspaceAdminRequest::Restore(name, args) => {
                let rename = decode_args::<RestoreTrashedWorkspaceArgs>(args)?.name;
                let rename = rename.as_deref().map(WorkspaceName::parse).transpose()?;
                Ok(self.0.restore(by, &name, rename.as_ref())?.to_json())
            }
            WorkspaceAdminRequest::ListTokens(name) => {
                let scope = self.0.scope_of_workspace(&WorkspaceName::parse(&name)?)?;
                self.list_tokens(&scope)
            }
            WorkspaceAdminRequest::CreateToken(name, args) => self.create_token(by, &name, args),
            WorkspaceAdminRequest::RevokeToken(name, id) => self.revoke_token(by, &name, &id),
        }
    }

    fn export_workspace(
        &self,
        by: &Caller,
        name: &str,
        begin: &mut dyn FnMut(WorkspaceExportStartInfo),
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let mut report =
            |copied: WorkspaceCopyCounts| begin(WorkspaceExportStartInfo { omitted_files: copied.skipped });
        self.0.export_archive(by, &WorkspaceName::parse(name)?, &mut report, out).map(drop)
    }

    fn import_workspace(
        &self,
        by: &Caller,
        name: &str,
        args: Map<String, Value>,
        from: &mut dyn Read,
    ) -> Result<Value, Error> {
        Ok(self.0.import_workspace(by, &WorkspaceName::parse(name)?, &decode_args(args)?, from)?.to_json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_message<T: DeserializeOwned>(probe: Value) -> String {
        let Value::Object(probe) = probe else { return String::new() };
        decode_args::<T>(probe).err().map(|failure| failure.message).unwrap_or_default()
    }

    #[test]
    fn bodies_have_the_fields_of_0_1_0() {
        let probe = json!({ "nothing": 1 });
        let start = "invalid arguments: unknown field `nothing`, expected";
        for (refusal, expected) in [
            (error_message::<ListWorkspacesArgs>(probe.clone()), "one of `cursor`, `limit`, `trash`"),
            (error_message::<RestoreTrashedWorkspaceArgs>(probe.clone()), "`name`"),
            (
                error_message::<AdminCreateTokenArgs>(probe),
                "one of `principal`, `read_only`, `readable`, `writable`, `lasts_seconds`, `label`",
            ),
        ] {
            assert_eq!(refusal, format!("{start} {expected}"));
        }
        assert_eq!(error_message::<NewWorkspaceNameAndArgs>(json!({})), "invalid arguments: missing field `name`");
    }
}
