//! The administration of a registry: its workspaces, tokens, journal and approver's secret.

use std::sync::Arc;

use stead_engine::{
    AdministrationCall, AdministrationStore, Engine, Error, ErrorKind,
    ops::{
        CreateTokenArgs, CreateTokenOutcome, CreateWorkspaceArgs, DestroyWorkspaceArgs, ExportWorkspaceArgs,
        ExportWorkspaceOutcome, ForkWorkspaceArgs, ImportWorkspaceArgs, ListTokensArgs, ListTokensOutcome,
        ListWorkspacesArgs, ListWorkspacesOutcome, RestoreWorkspaceArgs, RevokeTokenArgs, RevokeTokenOutcome,
        RotateTokenArgs, Secret, ShowWorkspaceArgs, WorkspaceDescription,
    },
};

use super::{TokenRecordWithScope, TokenScope, WorkspaceCopyCounts, WorkspaceName, WorkspaceRegistry};
use crate::token::CreateTokenRequest;

impl WorkspaceRegistry {
    /// Returns the engine that runs the operations of administration on this registry and its journal.
    pub fn administration_engine(self: &Arc<Self>) -> Engine {
        Engine::new(self.registry_workspace.clone()).with_administration(self.clone())
    }

    /// The scope of the tokens of the hosted workspace with this name.
    fn scope_of_hosted(&self, workspace: Option<&String>) -> Result<TokenScope, Error> {
        let name = workspace.ok_or_else(|| {
            Error::new(ErrorKind::BadRequest, "a workspace is required")
                .with_next_step("pass --workspace-name NAME, or --administer for an administrator token")
        })?;
        self.scope_of_workspace(&WorkspaceName::parse(name)?)
    }

    fn token_outcome(&self, (created, secret): (TokenRecordWithScope, String)) -> CreateTokenOutcome {
        CreateTokenOutcome { fields: created.token.to_fields(self.now_ms()), token: Secret(secret) }
    }
}

impl AdministrationStore for WorkspaceRegistry {
    fn has_approver_secret(&self) -> Result<bool, Error> {
        self.registry_workspace.has_approver_secret()
    }

    fn underlying_store(&self) -> Option<&dyn AdministrationStore> {
        Some(&*self.registry_workspace)
    }

    fn create_token(&self, args: &CreateTokenArgs, call: &AdministrationCall<'_>) -> Result<CreateTokenOutcome, Error> {
        let request = CreateTokenRequest::from_args(args, self.now_ms())?;
        let scope = match (&args.workspace, args.administer || args.estate) {
            (None, true) => TokenScope::Administration,
            (workspace, false) => self.scope_of_hosted(workspace.as_ref())?,
            (Some(_), true) => {
                return Err(Error::new(ErrorKind::BadRequest, "an administrator token has no workspace")
                    .with_next_step("omit the workspace; the token administers all of them"));
            }
        };
        Ok(self.token_outcome(self.create_token(call.caller, scope, &request, None)?))
    }

    fn rotate_token(&self, args: &RotateTokenArgs, call: &AdministrationCall<'_>) -> Result<CreateTokenOutcome, Error> {
        Ok(self.token_outcome(self.rotate_token(call.caller, &args.id, args.overlap_ms()?)?))
    }

    fn list_tokens(&self, args: &ListTokensArgs, _call: &AdministrationCall<'_>) -> Result<ListTokensOutcome, Error> {
        let administration = args.estate.then_some(TokenScope::Administration);
        let scope = administration.map_or_else(|| self.scope_of_hosted(args.workspace.as_ref()), Ok)?;
        let now_ms = self.now_ms();
        let tokens = self.list_tokens(&scope)?.iter().map(|token| token.to_fields(now_ms)).collect();
        Ok(ListTokensOutcome { tokens })
    }

    fn revoke_token(&self, args: &RevokeTokenArgs, call: &AdministrationCall<'_>) -> Result<RevokeTokenOutcome, Error> {
        if let Some(name) = &args.workspace {
            let scope = self.scope_of_workspace(&WorkspaceName::parse(name)?)?;
            let missing = || {
                Error::new(ErrorKind::NotFound, format!("workspace {name} has no token {}", args.id))
                    .with_next_step(format!("GET /v1/workspaces/{name}/tokens lists its tokens"))
            };
            self.load_token(&args.id)?.filter(|found| found.scope == scope).ok_or_else(missing)?;
        }
        let revoked = self.revoke_token(call.caller, &args.id)?;
        Ok(RevokeTokenOutcome { fields: revoked.to_fields(self.now_ms()) })
    }

    fn list_workspaces(
        &self,
        args: &ListWorkspacesArgs,
        _call: &AdministrationCall<'_>,
    ) -> Result<ListWorkspacesOutcome, Error> {
        let (workspaces, cursor) = self.list(args)?;
        Ok(ListWorkspacesOutcome { workspaces, truncated: cursor.is_some(), cursor })
    }

    fn show_workspace(
        &self,
        args: &ShowWorkspaceArgs,
        _call: &AdministrationCall<'_>,
    ) -> Result<WorkspaceDescription, Error> {
        self.describe(&WorkspaceName::parse(&args.name)?)
    }

    fn create_workspace(
        &self,
        args: &CreateWorkspaceArgs,
        call: &AdministrationCall<'_>,
    ) -> Result<WorkspaceDescription, Error> {
        self.create(call.caller, &WorkspaceName::parse(&args.name)?, args)
    }

    fn fork_workspace(
        &self,
        args: &ForkWorkspaceArgs,
        call: &AdministrationCall<'_>,
    ) -> Result<WorkspaceDescription, Error> {
        let (from, name) = (WorkspaceName::parse(&args.from)?, WorkspaceName::parse(&args.name)?);
        self.fork(call.caller, &from, &name, &args.into())
    }

    fn destroy_workspace(
        &self,
        args: &DestroyWorkspaceArgs,
        call: &AdministrationCall<'_>,
    ) -> Result<WorkspaceDescription, Error> {
        self.destroy(call.caller, &WorkspaceName::parse(&args.name)?)
    }

    fn restore_workspace(
        &self,
        args: &RestoreWorkspaceArgs,
        call: &AdministrationCall<'_>,
    ) -> Result<WorkspaceDescription, Error> {
        let rename = args.name.as_deref().map(WorkspaceName::parse).transpose()?;
        self.restore(call.caller, &args.workspace, rename.as_ref())
    }

    fn export_workspace(
        &self,
        args: &ExportWorkspaceArgs,
        call: &AdministrationCall<'_>,
    ) -> Result<ExportWorkspaceOutcome, Error> {
        let name = WorkspaceName::parse(&args.name)?;
        let out = call.stream()?;
        let mut begin = |counts: WorkspaceCopyCounts| out.0.begin_output(counts.skipped);
        let exported = self.export_archive(call.caller, &name, &mut begin, &mut out.clone())?;
        Ok(ExportWorkspaceOutcome { files: exported.files, bytes: exported.bytes, left_out: exported.skipped })
    }

    fn import_workspace(
        &self,
        args: &ImportWorkspaceArgs,
        call: &AdministrationCall<'_>,
    ) -> Result<WorkspaceDescription, Error> {
        let name = WorkspaceName::parse(&args.0.name)?;
        self.import_workspace(call.caller, &name, &args.0, &mut call.stream()?)
    }
}
