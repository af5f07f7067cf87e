//! The access tokens of a registry. Each token gives access to one workspace, or to the administration of the registry
//! but to no files. Tokens are stored in the registry's database, so that a token can be checked without opening its
//! workspace. The check of a token takes the same steps for valid, expired, wrong and orphaned tokens.

use rusqlite::{OptionalExtension, params};
use stead_engine::{Caller, CallerAuthority, Error, ErrorKind, Grants, Principal};

use super::{WorkspaceName, WorkspaceRegistry, WorkspaceRowLifecycleState, rows};
use crate::{
    approver::constant_time_eq,
    group_commit::JournalAppendOutcome,
    token::{self, AccessTokenRecord, CreateTokenRequest},
};

/// The value in the database that marks an administration token.
const ADMIN_SCOPE_NAME: &str = "estate";

/// The part of a registry to which a token gives access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenScope {
    /// The token gives access to the workspace with this id.
    Workspace(String),
    /// The token gives access to the administration of the registry, but to no file.
    Administration,
}

impl TokenScope {
    fn stored_name(&self) -> &str {
        match self {
            TokenScope::Workspace(id) => id,
            TokenScope::Administration => ADMIN_SCOPE_NAME,
        }
    }

    fn from_stored_name(scope_name: String) -> Self {
        if scope_name == ADMIN_SCOPE_NAME { TokenScope::Administration } else { TokenScope::Workspace(scope_name) }
    }
}

/// An access token and its scope in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecordWithScope {
    pub token: AccessTokenRecord,
    pub scope: TokenScope,
}

impl TokenRecordWithScope {
    /// Returns the grants of the token. An administration token of 0.1.0 has no stored right to administer.
    pub fn grants(&self) -> Result<Grants, Error> {
        let grants = self.token.grants()?;
        match (&self.scope, grants.authority) {
            (TokenScope::Administration, CallerAuthority::UseFiles) => Ok(Grants {
                authority: CallerAuthority::AdministrationToken,
                readable: Vec::new(),
                writable: Vec::new(),
                ..grants
            }),
            (TokenScope::Administration | TokenScope::Workspace(_), _) => Ok(grants),
        }
    }
}

impl WorkspaceRegistry {
    /// Creates a token, and returns its record and its text, which is never stored. A token that replaces another one
    /// lets it end at the given time.
    pub fn create_token(
        &self,
        by: &Caller,
        scope: TokenScope,
        request: &CreateTokenRequest,
        replaced: Option<(String, i64)>,
    ) -> Result<(TokenRecordWithScope, String), Error> {
        let (token, secret) = token::generate_token(request, self.now_ms())?;
        let old_id = replaced.as_ref().map(|(id, _)| id.as_str());
        let arguments = token::journal_arguments(&token, old_id, Some(scope.stored_name()));
        let operation = if old_id.is_some() { "token.rotate" } else { "token.create" };
        let mut draft = self.registry_workspace.pending_administration_entry(by, operation, arguments);
        let (stored, scope_name, now_ms) = (token.clone(), scope.stored_name().to_owned(), self.now_ms());
        let (hash, reach) = (token::hash(&secret), token.grants_json()?);
        self.submit_change(Box::new(move |transaction, tip| {
            if scope_name != ADMIN_SCOPE_NAME
                && rows::find_by_id(transaction, &scope_name)?
                    .is_none_or(|row| row.lifecycle != WorkspaceRowLifecycleState::Ready)
            {
                return Ok(JournalAppendOutcome::Refused(
                    Error::new(ErrorKind::NotFound, "the workspace no longer exists")
                        .with_next_step("create the workspace again, or choose another one"),
                ));
            }
            let valid: i64 = transaction
                .prepare_cached(
                    "SELECT count(*) FROM token_places JOIN tokens ON id = token
                     WHERE workspace = ?1 AND (ends_ms IS NULL OR ends_ms > ?2)",
                )?
                .query_row(params![scope_name, now_ms], |row| row.get(0))?;
            if let Some(error) = token::token_limit_error(valid) {
                return Ok(JournalAppendOutcome::Refused(error));
            }
            crate::store::append_entry(transaction, tip, &mut draft)?;
            token::insert_token(transaction, &stored, hash, &reach)?;
            transaction
                .prepare_cached("INSERT INTO token_places VALUES (?1, ?2)")?
                .execute(params![stored.id, scope_name])?;
            if let Some((old, ends_ms)) = &replaced {
                token::shorten_token(transaction, old, *ends_ms)?;
            }
            Ok(JournalAppendOutcome::Recorded(tip.number, tip.hash))
        }))?;
        let text = token::format_token(&token.id, &secret);
        Ok((TokenRecordWithScope { token, scope }, text))
    }

    /// Returns the tokens that give access to this workspace or to the administration, newest first.
    pub fn list_tokens(&self, scope: &TokenScope) -> Result<Vec<AccessTokenRecord>, Error> {
        self.run_query(|connection| {
            connection
                .prepare_cached(&format!(
                    "{} WHERE id IN (SELECT token FROM token_places WHERE workspace = ?1)
                     ORDER BY created_ms DESC, id",
                    token::TOKEN_SELECT
                ))?
                .query_map(params![scope.stored_name()], |row| Ok(token::token_from_row(row)?.1))?
                .collect()
        })
    }

    /// Returns the token scope of the workspace with this name.
    pub fn scope_of_workspace(&self, name: &WorkspaceName) -> Result<TokenScope, Error> {
        Ok(TokenScope::Workspace(self.find_ready_workspace(name.as_str())?.id))
    }

    /// Replaces an access token by a new token with the same grants. The old access token expires after `overlap_ms`
    /// milliseconds.
    pub fn rotate_token(
        &self,
        by: &Caller,
        id: &str,
        overlap_ms: i64,
    ) -> Result<(TokenRecordWithScope, String), Error> {
        let old = self.load_token(id)?.ok_or_else(|| token::token_not_found(id))?;
        if old.token.is_expired(self.now_ms()) {
            return Err(Error::new(ErrorKind::Expired, format!("token {id} is revoked or expired"))
                .with_next_step("create a new token for the same workspace"));
        }
        let request = CreateTokenRequest {
            principal: Principal::parse(&old.token.principal)?,
            grants: old.token.grants()?,
            expires_ms: old.token.expires_ms,
            label: old.token.label.clone(),
        };
        let ends_ms = self.now_ms().saturating_add(overlap_ms.max(0));
        self.create_token(by, old.scope, &request, Some((old.token.id, ends_ms)))
    }

    /// Revokes an access token immediately.
    pub fn revoke_token(&self, by: &Caller, id: &str) -> Result<AccessTokenRecord, Error> {
        let mut token = self.load_token(id)?.ok_or_else(|| token::token_not_found(id))?.token;
        let now_ms = self.now_ms();
        let ends_ms = token.expires_ms.map_or(now_ms, |ends| ends.min(now_ms));
        token.expires_ms = Some(ends_ms);
        let arguments = serde_json::json!({ "token": token.id, "ends_ms": ends_ms });
        let id = token.id.clone();
        self.record_change(by, "token.revoke", &arguments, move |transaction| {
            token::shorten_token(transaction, &id, ends_ms).map(|_| Ok(()))
        })?;
        Ok(token)
    }

    /// Finds the valid access token with this text, with the same steps for every text, so that timing reveals nothing.
    pub fn authenticate(&self, text: &str) -> Result<Option<TokenRecordWithScope>, Error> {
        let (id, secret) = token::split_token(text);
        let (stored, found) = self.load_token_with_hash(id)?;
        let matches = constant_time_eq(&token::hash(secret), &stored);
        let now_ms = self.now_ms();
        Ok(found.filter(|found| matches && !found.token.is_expired(now_ms)))
    }

    /// Loads an access token by its public id.
    pub fn load_token(&self, id: &str) -> Result<Option<TokenRecordWithScope>, Error> {
        Ok(self.load_token_with_hash(id)?.1)
    }

    /// For an unknown id, the query returns a dummy row that matches no token, so that all ids take the same steps. A
    /// token of a workspace that is not ready is loaded and then ignored.
    fn load_token_with_hash(&self, id: &str) -> Result<([u8; 32], Option<TokenRecordWithScope>), Error> {
        let (hash, token, scope_name, stage) = self
            .run_query(|connection| {
                connection
                    .prepare_cached(
                        "SELECT id, hash, principal, reach, label, created_ms, ends_ms, workspace,
                     coalesce((SELECT stage FROM workspaces WHERE workspaces.id = workspace), -1)
                     FROM tokens JOIN token_places ON token = id WHERE id = ?1
                     UNION ALL SELECT '', zeroblob(32), 'agent:nobody',
                     '{\"read_only\":true,\"readable\":[],\"writable\":[]}', '', 0, 0, '',
                     coalesce((SELECT stage FROM workspaces WHERE id = ?1), -1) LIMIT 1",
                    )?
                    .query_row(params![id], |row| {
                        let (hash, token) = token::token_from_row(row)?;
                        Ok((hash, token, row.get::<_, String>(7)?, row.get::<_, i64>(8)?))
                    })
                    .optional()
            })?
            .ok_or_else(|| {
                Error::new(ErrorKind::AuditUnavailable, "internal error: the token query returned no row")
            })?;
        let is_usable = scope_name == ADMIN_SCOPE_NAME || stage == WorkspaceRowLifecycleState::Ready.to_number();
        let found = (is_usable && !token.id.is_empty())
            .then(|| TokenRecordWithScope { token, scope: TokenScope::from_stored_name(scope_name) });
        Ok((hash, found))
    }
}
