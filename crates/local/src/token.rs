//! Tokens: what a client shows to be let in over a network. 256 random bits, shown once when they are made and kept only
//! as their hash; bound to this workspace, a principal, what it may reach, and a time. Making, replacing and revoking
//! one is an entry of the journal.

use engine::{Access, Failure, Grants, Kind, Principal};
use journal::Link;
use path::RelPath;
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    failure,
    group::{Outcome, Work},
    open::LocalWorkspace,
    store::{self, Sync},
};

/// How every token begins, so that scanners of leaked secrets know it.
pub const TOKEN_PREFIX: &str = "stead_";
/// Bytes of the part that names a token.
const ID_BYTES: usize = 8;
/// Bytes of the part that nobody can guess.
const SECRET_BYTES: usize = 32;
/// Tokens of one workspace that are not revoked or expired.
const TOKENS_MAX: usize = 10_000;
/// Longest remark about a token.
const LABEL_CHARS_MAX: usize = 100;
/// What every look-up of tokens reads.
pub(crate) const TOKEN: &str = "SELECT id, hash, principal, reach, label, created_ms, ends_ms FROM tokens";

/// Who shall be let in.
#[derive(Debug, Clone)]
pub struct TokenAsk {
    /// As whom.
    pub principal: Principal,
    /// What it may reach.
    pub grants: Grants,
    /// Until when, in unix milliseconds; for ever when nothing is said.
    pub ends_ms: Option<i64>,
    /// What it is for, in a person's words.
    pub label: String,
}

/// A token as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its name; no secret.
    pub id: String,
    /// As whom it lets in.
    pub principal: String,
    /// What it is for.
    pub label: String,
    /// When it was made.
    pub created_ms: i64,
    /// When it ends, or ended.
    pub ends_ms: Option<i64>,
    reach: Reach,
}

/// What a token lets reach, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Reach {
    read_only: bool,
    readable: Vec<String>,
    writable: Vec<String>,
}

impl Token {
    /// Whether it changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.reach.read_only
    }

    /// The subtrees that it may read and change.
    pub fn reach(&self) -> (&[String], &[String]) {
        (&self.reach.readable, &self.reach.writable)
    }

    /// Whether it lets nobody in any more.
    pub fn is_over(&self, now_ms: i64) -> bool {
        self.ends_ms.is_some_and(|ends_ms| ends_ms <= now_ms)
    }

    /// What it lets reach, as it is kept.
    pub(crate) fn reach_text(&self) -> Result<String, Failure> {
        serde_json::to_string(&self.reach).map_err(|error| Failure::new(Kind::Io, error.to_string()))
    }

    /// What whoever brings it may reach.
    pub fn grants(&self) -> Result<Grants, Failure> {
        let broken = |_| Failure::new(Kind::AuditUnavailable, "the store holds a malformed token");
        let paths = |wires: &[String]| -> Result<Vec<RelPath>, Failure> {
            wires.iter().map(|wire| RelPath::from_wire(wire).map_err(broken)).collect()
        };
        let access = if self.reach.read_only { Access::ReadOnly } else { Access::ReadWrite };
        let (readable, writable) = (paths(&self.reach.readable)?, paths(&self.reach.writable)?);
        Ok(Grants { access, readable, writable, ..Grants::default() })
    }
}

impl LocalWorkspace {
    /// Makes a token. What is shown to its bearer is answered once and kept nowhere.
    pub fn create_token(&self, ask: &TokenAsk) -> Result<(Token, String), Failure> {
        self.make_token(ask, None)
    }

    /// Makes a token like another one, which ends after a time in which both let in.
    pub fn rotate_token(&self, id: &str, overlap_ms: i64) -> Result<(Token, String), Failure> {
        let old = self.token(id)?.ok_or_else(|| unknown(id))?;
        let now_ms = self.clock.now().wall_ms;
        if old.is_over(now_ms) {
            return Err(Failure::new(Kind::Expired, format!("token {id} lets nobody in any more"))
                .hint("make a new one with `stead token create`"));
        }
        let ask = TokenAsk {
            principal: Principal::parse(&old.principal)?,
            grants: old.grants()?,
            ends_ms: old.ends_ms,
            label: old.label,
        };
        self.make_token(&ask, Some((old.id, now_ms.saturating_add(overlap_ms.max(0)))))
    }

    fn make_token(
        &self,
        ask: &TokenAsk,
        replaced: Option<(String, i64)>,
    ) -> Result<(Token, String), Failure> {
        let (token, secret) = fresh(ask, self.clock.now().wall_ms)?;
        self.record_token("token_create", &token, Some(hash(&secret)), replaced)?;
        let shown = shown(&token.id, &secret);
        Ok((token, shown))
    }

    /// Every token, the newest first.
    pub fn tokens(&self) -> Result<Vec<Token>, Failure> {
        self.store.look(|connection| {
            let mut statement =
                connection.prepare_cached(&format!("{TOKEN} ORDER BY created_ms DESC, id"))?;
            let rows = statement.query_map([], |row| Ok(read(row)?.1))?;
            rows.collect()
        })
    }

    /// Ends a token now.
    pub fn revoke_token(&self, id: &str) -> Result<Token, Failure> {
        let mut token = self.token(id)?.ok_or_else(|| unknown(id))?;
        let now_ms = self.clock.now().wall_ms;
        if !token.is_over(now_ms) {
            token.ends_ms = Some(now_ms);
            self.record_token("token_revoke", &token, None, None)?;
        }
        Ok(token)
    }

    /// The token that this text is, if it lets in now.
    pub fn admit_token(&self, shown: &str) -> Result<Option<Token>, Failure> {
        let (id, secret) = parts(shown);
        let found = self.kept_token(id)?;
        // Compared even where there is none, so that time does not tell which ids exist.
        let (kept, token) = found.map_or(([0; 32], None), |(kept, token)| (kept, Some(token)));
        let fits = crate::approver::same(&hash(secret), &kept);
        Ok(token.filter(|token| fits && !token.is_over(self.clock.now().wall_ms)))
    }

    /// A token by its name.
    pub fn token(&self, id: &str) -> Result<Option<Token>, Failure> {
        Ok(self.kept_token(id)?.map(|(_, token)| token))
    }

    fn kept_token(&self, id: &str) -> Result<Option<([u8; 32], Token)>, Failure> {
        self.store.look(|connection| {
            connection
                .prepare_cached(&format!("{TOKEN} WHERE id = ?1"))?
                .query_row(params![id], read)
                .optional()
        })
    }

    /// Keeps a token, or its new end, with the entry that says so and holds nothing of its secret.
    fn record_token(
        &self,
        operation: &str,
        token: &Token,
        hash: Option<[u8; 32]>,
        replaced: Option<(String, i64)>,
    ) -> Result<(), Failure> {
        let arguments = recorded(token, replaced.as_ref().map(|(old, _)| old.as_str()), None);
        let reach = token.reach_text()?;
        let mut draft = self.system_draft(operation, arguments, Link::None);
        let (token, now_ms) = (token.clone(), self.clock.now().wall_ms);
        let work: Work = Box::new(move |transaction, tip| {
            let open: i64 = transaction.query_row(
                "SELECT count(*) FROM tokens WHERE ends_ms IS NULL OR ends_ms > ?1",
                params![now_ms],
                |row| row.get(0),
            )?;
            if let Some(failure) = hash.and_then(|_| too_many(open)) {
                return Ok(Outcome::Refused(failure));
            }
            store::append(transaction, tip, &mut draft)?;
            match hash {
                Some(hash) => insert(transaction, &token, hash, &reach)?,
                None => transaction.execute(
                    "UPDATE tokens SET ends_ms = ?2 WHERE id = ?1",
                    params![token.id, token.ends_ms],
                )?,
            };
            if let Some((old, ends_ms)) = &replaced {
                transaction.execute(
                    "UPDATE tokens SET ends_ms = ?2 WHERE id = ?1 AND (ends_ms IS NULL OR ends_ms > ?2)",
                    params![old, ends_ms],
                )?;
            }
            Ok(Outcome::Recorded(draft.entry.number, tip.hash))
        });
        match self.group.submit(&self.store, self.durability, Sync::Now, work)? {
            Outcome::Recorded(..) => Ok(()),
            Outcome::Refused(failure) => Err(failure),
            Outcome::Replayed(_) => Err(Failure::new(Kind::AuditUnavailable, "it was not recorded")),
        }
    }
}

/// A new token and its secret, kept nowhere yet.
pub(crate) fn fresh(ask: &TokenAsk, now_ms: i64) -> Result<(Token, String), Failure> {
    if ask.label.chars().count() > LABEL_CHARS_MAX {
        let limit = format!("a label has {LABEL_CHARS_MAX} characters at most");
        return Err(Failure::new(Kind::TooLarge, limit));
    }
    let id: [u8; ID_BYTES] = disk::random_bytes().map_err(|error| failure::own(&error))?;
    let secret: [u8; SECRET_BYTES] = disk::random_bytes().map_err(|error| failure::own(&error))?;
    let token = Token {
        id: hex(&id),
        principal: ask.principal.to_string(),
        label: ask.label.clone(),
        created_ms: now_ms,
        ends_ms: ask.ends_ms,
        reach: Reach {
            read_only: ask.grants.access == Access::ReadOnly,
            readable: ask.grants.readable.iter().map(ToString::to_string).collect(),
            writable: ask.grants.writable.iter().map(ToString::to_string).collect(),
        },
    };
    Ok((token, hex(&secret)))
}

/// What its bearer is shown, once.
pub(crate) fn shown(id: &str, secret: &str) -> String {
    format!("{TOKEN_PREFIX}{id}_{secret}")
}

/// The name and the secret in what a bearer shows; empty where it has no such form, which fits nothing.
pub(crate) fn parts(shown: &str) -> (&str, &str) {
    shown.strip_prefix(TOKEN_PREFIX).and_then(|rest| rest.split_once('_')).unwrap_or_default()
}

/// What the journal says of a token; nothing of its secret.
pub(crate) fn recorded(token: &Token, replaces: Option<&str>, place: Option<&str>) -> String {
    let mut arguments = serde_json::json!({
        "token": token.id, "principal": token.principal, "read_only": token.reach.read_only,
        "readable": token.reach.readable, "writable": token.reach.writable, "ends_ms": token.ends_ms,
        "replaces": replaces,
    });
    if let Some(place) = place {
        arguments["workspace"] = place.into();
    }
    arguments.to_string()
}

/// Refuses one more token where there are enough.
pub(crate) fn too_many(open: i64) -> Option<Failure> {
    let full = || {
        Failure::new(Kind::TooMany, format!("there are {TOKENS_MAX} tokens already"))
            .hint("revoke some with `stead token revoke`")
    };
    (open >= TOKENS_MAX as i64).then(full)
}

/// Keeps a token.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    token: &Token,
    hash: [u8; 32],
    reach: &str,
) -> rusqlite::Result<usize> {
    transaction.execute(
        "INSERT INTO tokens VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![token.id, hash, token.principal, reach, token.label, token.created_ms, token.ends_ms],
    )
}

/// What is said when there is no such token.
pub(crate) fn unknown(id: &str) -> Failure {
    Failure::new(Kind::NotFound, format!("there is no token {id}")).hint("`stead token list` shows them")
}

/// A token and its hash, as they are kept.
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<([u8; 32], Token)> {
    let reach: String = row.get(3)?;
    let broken =
        |error| rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, Box::new(error));
    let token = Token {
        id: row.get(0)?,
        principal: row.get(2)?,
        reach: serde_json::from_str(&reach).map_err(broken)?,
        label: row.get(4)?,
        created_ms: row.get(5)?,
        ends_ms: row.get(6)?,
    };
    Ok((row.get(1)?, token))
}

/// What is kept of a secret.
pub(crate) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
