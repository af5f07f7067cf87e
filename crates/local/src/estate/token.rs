//! Tokens of an estate: each opens one workspace, or administers the estate and opens none. They are kept beside the
//! registry, so that whoever knocks is known without opening anything, and by the same work whether a token is known, over,
//! wrong, or of a workspace that is gone.

use engine::{Caller, Failure, Kind, Principal};
use rusqlite::{OptionalExtension, params};

use super::{Estate, Stage, WorkspaceName, registry};
use crate::{
    group::Outcome,
    token::{self, Token, TokenAsk},
};

/// The place of tokens that administer.
const ESTATE: &str = "estate";

/// What a token is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The workspace with this id.
    Workspace(String),
    /// The estate: workspaces and tokens are made, listed and ended with it; no file is read.
    Estate,
}

impl Scope {
    fn place(&self) -> &str {
        match self {
            Scope::Workspace(id) => id,
            Scope::Estate => ESTATE,
        }
    }

    fn read(place: String) -> Self {
        if place == ESTATE { Scope::Estate } else { Scope::Workspace(place) }
    }
}

/// A token and what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EstateToken {
    /// The token.
    pub token: Token,
    /// What it opens.
    pub scope: Scope,
}

impl Estate {
    /// Makes a token of a workspace. What is shown to its bearer is answered once and kept nowhere.
    pub fn create_token(
        &self,
        by: &Caller,
        name: &WorkspaceName,
        ask: &TokenAsk,
    ) -> Result<(EstateToken, String), Failure> {
        let id = self.ready(name.as_str())?.id;
        self.make_token(by, Scope::Workspace(id), ask)
    }

    /// Makes a token that administers the estate. Only people's own programs may: agents are given workspaces.
    pub fn create_steward_token(
        &self,
        by: &Caller,
        ask: &TokenAsk,
    ) -> Result<(EstateToken, String), Failure> {
        match ask.principal {
            Principal::User(_) => self.make_token(by, Scope::Estate, ask),
            Principal::Agent(_) | Principal::System | Principal::Outside => {
                Err(Failure::new(Kind::BadRequest, "a token of the estate is for user:NAME"))
            }
        }
    }

    fn make_token(
        &self,
        by: &Caller,
        scope: Scope,
        ask: &TokenAsk,
    ) -> Result<(EstateToken, String), Failure> {
        let (token, secret) = token::fresh(ask, self.now_ms())?;
        let mut draft = self.own.system_draft(
            "token_create",
            token::recorded(&token, None, Some(scope.place())),
            journal::Link::None,
        );
        draft.entry.caller.principal = by.principal.to_string();
        let (kept, place, now_ms) = (token.clone(), scope.place().to_owned(), self.now_ms());
        let (hash, reach) = (token::hash(&secret), token.reach_text()?);
        self.change(Box::new(move |transaction, tip| {
            if place != ESTATE
                && registry::by_id(transaction, &place)?.is_none_or(|row| row.stage != Stage::Ready)
            {
                return Ok(Outcome::Refused(Failure::new(Kind::NotFound, "the workspace is gone")));
            }
            let open: i64 = transaction
                .prepare_cached(
                    "SELECT count(*) FROM token_places JOIN tokens ON id = token
                     WHERE workspace = ?1 AND (ends_ms IS NULL OR ends_ms > ?2)",
                )?
                .query_row(params![place, now_ms], |row| row.get(0))?;
            if let Some(failure) = token::too_many(open) {
                return Ok(Outcome::Refused(failure));
            }
            crate::store::append(transaction, tip, &mut draft)?;
            token::insert(transaction, &kept, hash, &reach)?;
            transaction
                .prepare_cached("INSERT INTO token_places VALUES (?1, ?2)")?
                .execute(params![kept.id, place])?;
            Ok(Outcome::Recorded(draft.entry.number, tip.hash))
        }))?;
        let shown = token::shown(&token.id, &secret);
        Ok((EstateToken { token, scope }, shown))
    }

    /// The tokens of one scope, the newest first.
    pub fn tokens(&self, scope: &Scope) -> Result<Vec<Token>, Failure> {
        self.own.store.look(|connection| {
            connection
                .prepare_cached(&format!(
                    "{} WHERE id IN (SELECT token FROM token_places WHERE workspace = ?1)
                     ORDER BY created_ms DESC, id",
                    token::TOKEN
                ))?
                .query_map(params![scope.place()], |row| Ok(token::read(row)?.1))?
                .collect()
        })
    }

    /// The scope of a workspace, by its name.
    pub fn scope_of(&self, name: &WorkspaceName) -> Result<Scope, Failure> {
        Ok(Scope::Workspace(self.ready(name.as_str())?.id))
    }

    /// Makes a token like another one, which ends after a time in which both let in.
    pub fn rotate_token(
        &self,
        by: &Caller,
        id: &str,
        overlap_ms: i64,
    ) -> Result<(EstateToken, String), Failure> {
        let old = self.token(id)?.ok_or_else(|| token::unknown(id))?;
        if old.token.is_over(self.now_ms()) {
            return Err(Failure::new(Kind::Expired, format!("token {id} lets nobody in any more")));
        }
        let ask = TokenAsk {
            principal: Principal::parse(&old.token.principal)?,
            grants: old.token.grants()?,
            ends_ms: old.token.ends_ms,
            label: old.token.label.clone(),
        };
        let made = self.make_token(by, old.scope.clone(), &ask)?;
        self.end_token(by, old, self.now_ms().saturating_add(overlap_ms.max(0)))?;
        Ok(made)
    }

    /// Ends a token now.
    pub fn revoke_token(&self, by: &Caller, id: &str) -> Result<Token, Failure> {
        let old = self.token(id)?.ok_or_else(|| token::unknown(id))?;
        let now_ms = self.now_ms();
        if old.token.is_over(now_ms) {
            return Ok(old.token);
        }
        self.end_token(by, old, now_ms)
    }

    fn end_token(&self, by: &Caller, old: EstateToken, ends_ms: i64) -> Result<Token, Failure> {
        let ends_ms = old.token.ends_ms.map_or(ends_ms, |ends| ends.min(ends_ms));
        let mut token = old.token;
        token.ends_ms = Some(ends_ms);
        let arguments = serde_json::json!({ "token": token.id, "ends_ms": ends_ms });
        let id = token.id.clone();
        self.record(by, "token_revoke", &arguments, move |transaction| {
            transaction.execute("UPDATE tokens SET ends_ms = ?2 WHERE id = ?1", params![id, ends_ms])?;
            Ok(Ok(()))
        })?;
        Ok(token)
    }

    /// Whom this text lets in, and where. The same work is done whatever it is.
    pub fn admit(&self, shown: &str) -> Result<Option<EstateToken>, Failure> {
        let (id, secret) = token::parts(shown);
        let (kept, found) = self.kept_token(id)?;
        let fits = crate::approver::same(&token::hash(secret), &kept);
        let now_ms = self.now_ms();
        Ok(found.filter(|found| fits && !found.token.is_over(now_ms)))
    }

    /// A token by its name.
    pub fn token(&self, id: &str) -> Result<Option<EstateToken>, Failure> {
        Ok(self.kept_token(id)?.1)
    }

    /// The hash and the rest of a token. Where there is none, a row that fits nobody is read in its place, so that finding
    /// nothing takes the same steps. A token of a workspace that is not ready is read and then left aside.
    fn kept_token(&self, id: &str) -> Result<([u8; 32], Option<EstateToken>), Failure> {
        let (kept, token, place, stage) = self
            .own
            .store
            .look(|connection| {
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
                        let (kept, token) = token::read(row)?;
                        Ok((kept, token, row.get::<_, String>(7)?, row.get::<_, i64>(8)?))
                    })
                    .optional()
            })?
            .ok_or_else(|| Failure::new(Kind::AuditUnavailable, "tokens cannot be looked up"))?;
        let leads = place == ESTATE || stage == Stage::Ready.number();
        let found = (leads && !token.id.is_empty()).then(|| EstateToken { token, scope: Scope::read(place) });
        Ok((kept, found))
    }
}
