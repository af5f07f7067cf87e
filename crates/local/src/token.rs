//! Access tokens of network clients, session tickets, and the random bytes of both.
//!
//! An access token is bound to one workspace, a principal, grants and an expiry. The secret of an access token has 256
//! random bits, is returned once at creation, and is stored only as a hash.
//!
//! A session ticket connects a server process, which an agent starts, with the agent's session. A session ticket grants
//! no rights: it only decides in which session the calls are recorded.

use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stead_engine::{
    AdministrationCall, CallerAccessMode, CallerAuthority, Error, ErrorKind, Grants, NextStep, Principal, UtcSecond,
    ops::{AccessTokenFields, CreateTokenArgs},
};
use stead_path::RelPath;

use crate::{
    approver::constant_time_eq,
    group_commit::{JournalAppendOutcome, TransactionBodyFn},
    limits::{TICKET_LIFETIME_MS, TOKEN_LABEL_CHARS_MAX, TOKENS_MAX},
    open::LocalWorkspace,
    store::{self, TransactionSyncPolicy},
};

/// The first characters of every access token, by which scanners find leaked tokens.
pub const TOKEN_PREFIX: &str = "stead_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;
pub(crate) const TOKEN_SELECT: &str = "SELECT id, hash, principal, reach, label, created_ms, ends_ms FROM tokens";

/// A request to create an access token.
#[derive(Debug, Clone)]
pub struct CreateTokenRequest {
    pub principal: Principal,
    pub grants: Grants,
    /// The expiry of the new access token in Unix milliseconds; `None` means that the token never expires.
    pub expires_ms: Option<i64>,
    pub label: String,
}

/// A stored access token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessTokenRecord {
    /// The public id of the access token, which is not secret.
    pub id: String,
    pub principal: String,
    pub label: String,
    /// The creation time of the access token in Unix milliseconds.
    pub created_ms: i64,
    /// The expiry of the access token in Unix milliseconds; revocation sets the expiry to the current time.
    pub expires_ms: Option<i64>,
    stored_grants: StoredTokenGrants,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredTokenGrants {
    read_only: bool,
    readable: Vec<String>,
    writable: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    administer: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    export: bool,
}

impl CreateTokenRequest {
    /// The request for a token that the arguments of `token.create` describe.
    pub(crate) fn from_args(args: &CreateTokenArgs, now_ms: i64) -> Result<Self, Error> {
        let (principal, grants) = args.principal_and_grants()?;
        Ok(Self { principal, grants, expires_ms: args.expires_ms(now_ms)?, label: args.label.clone() })
    }
}

impl AccessTokenRecord {
    /// The token as `token.list` returns it.
    pub(crate) fn to_fields(&self, now_ms: i64) -> AccessTokenFields {
        let StoredTokenGrants { read_only, readable, writable, administer, export } = self.stored_grants.clone();
        let (id, principal, label) = (self.id.clone(), self.principal.clone(), self.label.clone());
        let (created, is_expired) = (UtcSecond { unix_ms: self.created_ms }, self.is_expired(now_ms));
        let ends = self.expires_ms.map(|unix_ms| UtcSecond { unix_ms });
        AccessTokenFields {
            id,
            principal,
            read_only,
            readable,
            writable,
            label,
            created,
            ends,
            administer,
            export,
            is_expired,
        }
    }

    /// Whether the access token is expired or revoked.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|ends_ms| ends_ms <= now_ms)
    }

    pub(crate) fn grants_json(&self) -> Result<String, Error> {
        serde_json::to_string(&self.stored_grants).map_err(|error| Error::new(ErrorKind::Io, error.to_string()))
    }

    /// Returns the paths and operations that the access token permits.
    pub fn grants(&self) -> Result<Grants, Error> {
        let broken = |_| {
            Error::new(
                ErrorKind::AuditUnavailable,
                "the database in the state directory is damaged: a token cannot be read",
            )
            .with_next_step("revoke the token and create a new one")
        };
        let paths = |wires: &[String]| -> Result<Vec<RelPath>, Error> {
            wires.iter().map(|wire| RelPath::from_wire(wire).map_err(broken)).collect()
        };
        let access =
            if self.stored_grants.read_only { CallerAccessMode::ReadOnly } else { CallerAccessMode::ReadWrite };
        let (readable, writable) = (paths(&self.stored_grants.readable)?, paths(&self.stored_grants.writable)?);
        let authority = match (self.stored_grants.administer, self.stored_grants.export) {
            (false, _) => CallerAuthority::UseFiles,
            (true, false) => CallerAuthority::AdministrationToken,
            (true, true) => CallerAuthority::AdministrationAndExportToken,
        };
        Ok(Grants { access, readable, writable, authority, ..Grants::default() })
    }
}

impl LocalWorkspace {
    /// Creates an access token, and returns its record and its text, which is never stored.
    pub fn create_token(
        &self,
        request: &CreateTokenRequest,
        call: &AdministrationCall<'_>,
    ) -> Result<(AccessTokenRecord, String), Error> {
        self.insert_new_token(request, None, call)
    }

    /// Replaces an access token by a new token with the same grants. The old access token expires after `overlap_ms`
    /// milliseconds.
    pub fn rotate_token(
        &self,
        id: &str,
        overlap_ms: i64,
        call: &AdministrationCall<'_>,
    ) -> Result<(AccessTokenRecord, String), Error> {
        let old = self.load_token(id)?.ok_or_else(|| token_not_found(id))?;
        let now_ms = self.clock.now().wall_ms;
        if old.is_expired(now_ms) {
            return Err(Error::new(ErrorKind::Expired, format!("token {id} is revoked or expired"))
                .with_next_step(NextStep::person_command("token create --principal PRINCIPAL", "create a new token")));
        }
        let request = CreateTokenRequest {
            principal: Principal::parse(&old.principal)?,
            grants: old.grants()?,
            expires_ms: old.expires_ms,
            label: old.label,
        };
        self.insert_new_token(&request, Some((old.id, now_ms.saturating_add(overlap_ms.max(0)))), call)
    }

    fn insert_new_token(
        &self,
        request: &CreateTokenRequest,
        replaced: Option<(String, i64)>,
        call: &AdministrationCall<'_>,
    ) -> Result<(AccessTokenRecord, String), Error> {
        let (token, secret) = generate_token(request, self.clock.now().wall_ms)?;
        self.record_token_change(call, &token, Some(hash(&secret)), replaced)?;
        let text = format_token(&token.id, &secret);
        Ok((token, text))
    }

    /// Returns all access tokens of the workspace, newest first.
    pub fn list_tokens(&self) -> Result<Vec<AccessTokenRecord>, Error> {
        self.store.run_query(|connection| {
            let mut statement = connection.prepare_cached(&format!("{TOKEN_SELECT} ORDER BY created_ms DESC, id"))?;
            let rows = statement.query_map([], |row| Ok(token_from_row(row)?.1))?;
            rows.collect()
        })
    }

    /// Revokes an access token immediately.
    pub fn revoke_token(&self, id: &str, call: &AdministrationCall<'_>) -> Result<AccessTokenRecord, Error> {
        let mut token = self.load_token(id)?.ok_or_else(|| token_not_found(id))?;
        let now_ms = self.clock.now().wall_ms;
        if !token.is_expired(now_ms) {
            token.expires_ms = Some(now_ms);
        }
        self.record_token_change(call, &token, None, None)?;
        Ok(token)
    }

    /// Finds the valid access token with this text, or returns `None`.
    pub fn authenticate_token(&self, text: &str) -> Result<Option<AccessTokenRecord>, Error> {
        let (id, secret) = split_token(text);
        let found = self.load_token_with_hash(id)?;
        // Hashes are compared even for an unknown id, so that timing does not reveal which ids exist.
        let (stored_hash, token) = found.map_or(([0; 32], None), |(stored_hash, token)| (stored_hash, Some(token)));
        let matches = constant_time_eq(&hash(secret), &stored_hash);
        Ok(token.filter(|token| matches && !token.is_expired(self.clock.now().wall_ms)))
    }

    /// Loads an access token by its public id.
    pub fn load_token(&self, id: &str) -> Result<Option<AccessTokenRecord>, Error> {
        Ok(self.load_token_with_hash(id)?.map(|(_, token)| token))
    }

    fn load_token_with_hash(&self, id: &str) -> Result<Option<([u8; 32], AccessTokenRecord)>, Error> {
        self.store.run_query(|connection| {
            connection
                .prepare_cached(&format!("{TOKEN_SELECT} WHERE id = ?1"))?
                .query_row(params![id], token_from_row)
                .optional()
        })
    }

    /// With `hash`, a new token is stored; without `hash`, the expiry of an existing token is changed. The journal
    /// entry does not contain the secret of the token.
    fn record_token_change(
        &self,
        call: &AdministrationCall<'_>,
        token: &AccessTokenRecord,
        hash: Option<[u8; 32]>,
        replaced: Option<(String, i64)>,
    ) -> Result<(), Error> {
        let arguments = journal_arguments(token, replaced.as_ref().map(|(old, _)| old.as_str()), None);
        let reach = token.grants_json()?;
        let mut draft = self.pending_administration_entry(call.caller, call.operation, arguments);
        let (token, now_ms) = (token.clone(), self.clock.now().wall_ms);
        let body: TransactionBodyFn = Box::new(move |transaction, tip| {
            let open: i64 = transaction.query_row(
                "SELECT count(*) FROM tokens WHERE ends_ms IS NULL OR ends_ms > ?1",
                params![now_ms],
                |row| row.get(0),
            )?;
            if let Some(error) = hash.and_then(|_| token_limit_error(open)) {
                return Ok(JournalAppendOutcome::Refused(error));
            }
            store::append_entry(transaction, tip, &mut draft)?;
            match hash {
                Some(hash) => insert_token(transaction, &token, hash, &reach)?,
                None => shorten_token(transaction, &token.id, token.expires_ms.unwrap_or(now_ms))?,
            };
            if let Some((old, ends_ms)) = &replaced {
                shorten_token(transaction, old, *ends_ms)?;
            }
            Ok(JournalAppendOutcome::Recorded(tip.number, tip.hash))
        });
        self.submit(TransactionSyncPolicy::Now, body)?.into_recorded().map(drop)
    }
}

pub(crate) fn generate_token(request: &CreateTokenRequest, now_ms: i64) -> Result<(AccessTokenRecord, String), Error> {
    if request.label.chars().count() > TOKEN_LABEL_CHARS_MAX {
        let limit = format!("the label of the token has more than {TOKEN_LABEL_CHARS_MAX} characters");
        return Err(Error::new(ErrorKind::TooLarge, limit).with_next_step("choose a shorter label"));
    }
    let id: [u8; ID_BYTES] = random_bytes()?;
    let secret: [u8; SECRET_BYTES] = random_bytes()?;
    let token = AccessTokenRecord {
        id: to_hex(&id),
        principal: request.principal.to_string(),
        label: request.label.clone(),
        created_ms: now_ms,
        expires_ms: request.expires_ms,
        stored_grants: StoredTokenGrants {
            read_only: request.grants.access == CallerAccessMode::ReadOnly,
            readable: request.grants.readable.iter().map(ToString::to_string).collect(),
            writable: request.grants.writable.iter().map(ToString::to_string).collect(),
            administer: request.grants.authority != CallerAuthority::UseFiles,
            export: request.grants.authority == CallerAuthority::AdministrationAndExportToken,
        },
    };
    Ok((token, to_hex(&secret)))
}

pub(crate) fn format_token(id: &str, secret: &str) -> String {
    format!("{TOKEN_PREFIX}{id}_{secret}")
}

/// A malformed token text gives an empty id, which matches no token.
pub(crate) fn split_token(text: &str) -> (&str, &str) {
    text.strip_prefix(TOKEN_PREFIX).and_then(|rest| rest.split_once('_')).unwrap_or_default()
}

/// The arguments of the journal entry must not contain the secret of the token.
pub(crate) fn journal_arguments(token: &AccessTokenRecord, replaces: Option<&str>, workspace: Option<&str>) -> String {
    let mut arguments = serde_json::json!({
        "token": token.id, "principal": token.principal, "read_only": token.stored_grants.read_only,
        "readable": token.stored_grants.readable, "writable": token.stored_grants.writable, "ends_ms": token.expires_ms,
        "replaces": replaces,
    });
    if token.stored_grants.administer {
        arguments["administer"] = true.into();
        arguments["export"] = token.stored_grants.export.into();
    }
    if let Some(workspace) = workspace {
        arguments["workspace"] = workspace.into();
    }
    arguments.to_string()
}

pub(crate) fn token_limit_error(valid: i64) -> Option<Error> {
    let full = || {
        Error::new(ErrorKind::TooMany, format!("the limit of {TOKENS_MAX} valid tokens is reached"))
            .with_next_step(NextStep::person_command("token revoke ID", "revoke tokens that are no longer needed"))
    };
    (valid >= TOKENS_MAX as i64).then(full)
}

pub(crate) fn insert_token(
    transaction: &Transaction<'_>,
    token: &AccessTokenRecord,
    hash: [u8; 32],
    reach: &str,
) -> rusqlite::Result<usize> {
    transaction.execute(
        "INSERT INTO tokens VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![token.id, hash, token.principal, reach, token.label, token.created_ms, token.expires_ms],
    )
}

/// Lets a token end at this time, unless it ends earlier.
pub(crate) fn shorten_token(transaction: &Transaction<'_>, id: &str, ends_ms: i64) -> rusqlite::Result<usize> {
    transaction.execute(
        "UPDATE tokens SET ends_ms = ?2 WHERE id = ?1 AND (ends_ms IS NULL OR ends_ms > ?2)",
        params![id, ends_ms],
    )
}

pub(crate) fn token_not_found(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no token {id}"))
        .with_next_step(NextStep::person_command("token list", "list the tokens"))
}

pub(crate) fn token_from_row(row: &Row<'_>) -> rusqlite::Result<([u8; 32], AccessTokenRecord)> {
    let reach: String = row.get(3)?;
    let broken = |error| rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, Box::new(error));
    let token = AccessTokenRecord {
        id: row.get(0)?,
        principal: row.get(2)?,
        stored_grants: serde_json::from_str(&reach).map_err(broken)?,
        label: row.get(4)?,
        created_ms: row.get(5)?,
        expires_ms: row.get(6)?,
    };
    Ok((row.get(1)?, token))
}

pub(crate) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let error = |error| Error::new(ErrorKind::Io, format!("the system returned no random bytes: {error}"));
    stead_disk::random_bytes().map_err(error)
}

pub(crate) fn random_name(prefix: &str) -> Result<String, Error> {
    let bytes: [u8; 8] = random_bytes()?;
    Ok(format!("{prefix}{:016x}", u64::from_be_bytes(bytes)))
}

/// A stored session ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTicketRecord {
    pub principal: String,
    /// The session to which the ticket is bound, or `None` if the ticket is not bound yet.
    pub session: Option<String>,
}

impl LocalWorkspace {
    /// Creates a session ticket that is not bound to a session yet, and returns its text, which is never stored.
    pub fn create_session_ticket(&self, principal: &Principal) -> Result<String, Error> {
        let ticket = to_hex(&random_bytes::<SECRET_BYTES>()?);
        let (now_ms, principal) = (self.clock.now().wall_ms, principal.to_string());
        self.write_rows(|connection| {
            connection.execute("DELETE FROM tickets WHERE created_ms < ?1", params![now_ms - TICKET_LIFETIME_MS])?;
            connection
                .execute("INSERT INTO tickets VALUES (?1, ?2, NULL, ?3)", params![hash(&ticket), principal, now_ms])
        })?;
        Ok(ticket)
    }

    /// Binds a session ticket to a session; a bound ticket cannot be bound to a different session.
    pub fn bind_session_ticket(&self, ticket: &str, session: &str) -> Result<(), Error> {
        let bound = self.write_rows(|connection| {
            connection.execute(
                "UPDATE tickets SET session = ?2 WHERE hash = ?1 AND (session IS NULL OR session = ?2)",
                params![hash(ticket), session],
            )
        })?;
        match bound {
            0 => Err(Error::new(ErrorKind::NotFound, "the session ticket does not exist, or another session uses it")
                .with_next_step("open a new session")),
            _ => Ok(()),
        }
    }

    /// Loads a session ticket by its text, or returns `None` if this workspace has no such ticket.
    pub fn load_session_ticket(&self, ticket: &str) -> Result<Option<SessionTicketRecord>, Error> {
        self.store.run_query(|connection| {
            connection
                .prepare_cached("SELECT principal, session FROM tickets WHERE hash = ?1")?
                .query_row(params![hash(ticket)], |row| {
                    Ok(SessionTicketRecord { principal: row.get(0)?, session: row.get(1)? })
                })
                .optional()
        })
    }
}
