//! Tickets: how a server that an agent starts for a session comes to belong to it. Made before the session has a name,
//! given to the server alone, and bound to the session once the agent has named it. 256 random bits, kept only as their
//! hash.
//!
//! A ticket gives no rights: whoever shows one has those of its principal, which it must be already. It says only which
//! session of that principal's calls are recorded in, and only the one it was made for.

use engine::{Failure, Kind, Principal};
use rusqlite::{OptionalExtension, params};
use sha2::{Digest, Sha256};

use crate::{failure, open::LocalWorkspace, store::Sync};

/// Bytes that nobody can guess.
const SECRET_BYTES: usize = 32;
/// How long a ticket is kept. Whoever has shown it by then keeps its seat.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// What a ticket stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTicket {
    /// Whose it is.
    pub principal: String,
    /// The session it was bound to; nothing before that.
    pub session: Option<String>,
}

impl LocalWorkspace {
    /// Makes a ticket for a session that has no name yet. What it is, is answered once and kept nowhere.
    pub fn create_session_ticket(&self, principal: &Principal) -> Result<String, Failure> {
        let secret: [u8; SECRET_BYTES] = disk::random_bytes().map_err(|error| failure::own(&error))?;
        let shown: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let (now_ms, principal) = (self.clock.now().wall_ms, principal.to_string());
        self.store.transact(Sync::Later, self.durability, |transaction| {
            let make = || {
                transaction
                    .execute("DELETE FROM tickets WHERE created_ms < ?1", params![now_ms - KEPT_MS])?;
                transaction.execute(
                    "INSERT INTO tickets VALUES (?1, ?2, NULL, ?3)",
                    params![hash(&shown), principal, now_ms],
                )
            };
            make().map_err(|error| failure::store(&error))
        })?;
        Ok(shown)
    }

    /// Binds a ticket to the session that it was made for. Once bound, it stays so.
    pub fn bind_session_ticket(&self, shown: &str, session: &str) -> Result<(), Failure> {
        let bound = self.store.transact(Sync::Later, self.durability, |transaction| {
            transaction
                .execute(
                    "UPDATE tickets SET session = ?2 WHERE hash = ?1 AND (session IS NULL OR session = ?2)",
                    params![hash(shown), session],
                )
                .map_err(|error| failure::store(&error))
        })?;
        match bound {
            0 => {
                Err(Failure::new(Kind::NotFound, "there is no such ticket, or it belongs to another session"))
            }
            _ => Ok(()),
        }
    }

    /// What a ticket stands for; nothing when there is no such ticket in this workspace.
    pub fn session_ticket(&self, shown: &str) -> Result<Option<SessionTicket>, Failure> {
        self.store.look(|connection| {
            connection
                .prepare_cached("SELECT principal, session FROM tickets WHERE hash = ?1")?
                .query_row(params![hash(shown)], |row| {
                    Ok(SessionTicket { principal: row.get(0)?, session: row.get(1)? })
                })
                .optional()
        })
    }
}

fn hash(shown: &str) -> [u8; 32] {
    Sha256::digest(shown.as_bytes()).into()
}
