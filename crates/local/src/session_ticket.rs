//! Session tickets bind a server that an agent starts to its session. A ticket is created before the session has a name,
//! given only to that server, and bound once the agent names the session. 256 random bits, stored as a hash.
//!
//! A ticket grants no rights: its bearer must already be the principal. It only decides in which session of that
//! principal the calls are recorded.

use rusqlite::{OptionalExtension, params};
use sha2::{Digest, Sha256};
use stead_engine::{Error, ErrorKind, Principal};

use crate::{errors, open::LocalWorkspace, store::SyncRequirement};

const SECRET_BYTES: usize = 32;
/// How long a ticket is stored. A connection that presented it before then stays in its session.
const TICKET_LIFETIME_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// Principal and session of a ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTicketRecord {
    /// The principal that the ticket was created for.
    pub principal: String,
    /// The bound session, or `None` before binding.
    pub session: Option<String>,
}

impl LocalWorkspace {
    /// Creates a ticket for a session without a name. The text is returned once and never stored.
    pub fn create_session_ticket(&self, principal: &Principal) -> Result<String, Error> {
        let secret: [u8; SECRET_BYTES] = crate::random::random_bytes()?;
        let ticket: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let (now_ms, principal) = (self.clock.now().wall_ms, principal.to_string());
        self.store.run_transaction(SyncRequirement::Later, self.durability, |transaction| {
            let make = || {
                transaction
                    .execute("DELETE FROM tickets WHERE created_ms < ?1", params![now_ms - TICKET_LIFETIME_MS])?;
                transaction
                    .execute("INSERT INTO tickets VALUES (?1, ?2, NULL, ?3)", params![hash(&ticket), principal, now_ms])
            };
            make().map_err(|error| errors::store_error(&error))
        })?;
        Ok(ticket)
    }

    /// Binds a ticket to its session. A bound ticket cannot be bound to another.
    pub fn bind_session_ticket(&self, ticket: &str, session: &str) -> Result<(), Error> {
        let bound = self.store.run_transaction(SyncRequirement::Later, self.durability, |transaction| {
            transaction
                .execute(
                    "UPDATE tickets SET session = ?2 WHERE hash = ?1 AND (session IS NULL OR session = ?2)",
                    params![hash(ticket), session],
                )
                .map_err(|error| errors::store_error(&error))
        })?;
        match bound {
            0 => Err(Error::new(ErrorKind::NotFound, "no such ticket, or it belongs to another session")),
            _ => Ok(()),
        }
    }

    /// Loads a ticket, or `None` if this workspace has none with this text.
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

fn hash(ticket: &str) -> [u8; 32] {
    Sha256::digest(ticket.as_bytes()).into()
}
