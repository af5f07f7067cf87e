//! Signed checkpoints of the journal, and the keys that sign them. The seed of the signing key is stored in the same
//! database as the journal, so that a key rotation is one transaction and every process signs with the current key.

use rusqlite::{Connection, params};
use stead_engine::{AdministrationCall, Error, ErrorKind, NextStep};
use stead_journal::{JournalCheckpoint, JournalKeyRecord, JournalKeyTrustChain, JournalWorkspaceId, Signer};

use crate::{
    errors,
    open::LocalWorkspace,
    options::Durability,
    store::{self, SqliteStore, TransactionSyncPolicy, execute_cached, query_number, query_optional, to_sql_integer},
    token::random_bytes,
};

pub(crate) fn ensure_signing_key(store: &SqliteStore) -> Result<(), Error> {
    if store.has_row("SELECT 1 FROM signers", [])? {
        return Ok(());
    }
    let seed: [u8; 32] = random_bytes()?;
    let record = serde_json::to_string(&JournalKeyRecord::first_key(Signer::from_seed(&seed).verifying_key()))
        .map_err(|_| unreadable_key_error())?;
    store.run_transaction(TransactionSyncPolicy::Later, Durability::Fast, |transaction| {
        let inserted = transaction.execute("INSERT OR IGNORE INTO signers VALUES (0, ?1)", params![record])?;
        // If another process has stored a key first, that key is used.
        if inserted == 1 { insert_key_seed(transaction, &seed) } else { Ok(()) }
    })
}

fn insert_key_seed(connection: &Connection, seed: &[u8; 32]) -> rusqlite::Result<()> {
    execute_cached(connection, "INSERT OR REPLACE INTO meta VALUES ('seed', ?1)", params![seed.as_slice()])
}

fn load_signer(connection: &Connection) -> rusqlite::Result<Signer> {
    let bytes: Option<Vec<u8>> =
        query_optional(connection, "SELECT value FROM meta WHERE name = 'seed'", [], |row| row.get(0))?;
    let seed = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()).ok_or(rusqlite::Error::InvalidQuery)?;
    Ok(Signer::from_seed(&seed))
}

impl LocalWorkspace {
    pub(crate) fn load_key_ring(&self) -> Result<JournalKeyTrustChain, Error> {
        let sql = "SELECT record FROM signers ORDER BY from_entry";
        let texts: Vec<String> = self.store.query_rows(sql, [], |row| row.get(0))?;
        let records = texts
            .iter()
            .map(|text| serde_json::from_str(text))
            .collect::<Result<_, _>>()
            .map_err(|_| unreadable_key_error())?;
        JournalKeyTrustChain::new(self.store.origin.clone(), records).map_err(|problem| {
            Error::new(
                ErrorKind::CorruptHistory,
                format!("the signing keys in the state directory are damaged: {problem}"),
            )
            .with_next_step(NextStep::ask_person("restore the state directory from a backup"))
        })
    }

    pub(crate) fn sign_checkpoint(&self) -> Result<(), Error> {
        self.sign_checkpoint_at(self.clock.now().wall_ms)
    }

    fn sign_checkpoint_at(&self, time_ms: i64) -> Result<(), Error> {
        self.write_rows(|connection| insert_signed_checkpoint(connection, &self.store.origin, time_ms))
    }

    /// Replaces the signing key; the old key endorses the new key and is then erased.
    pub fn rotate_key(&self, call: &AdministrationCall<'_>) -> Result<(), Error> {
        self.flush()?;
        self.sign_checkpoint()?;
        let seed: [u8; 32] = random_bytes()?;
        let public = Signer::from_seed(&seed).verifying_key();
        let origin = self.store.origin.clone();
        let time_ms = self.clock.now().wall_ms;
        let arguments = serde_json::json!({ "public": public }).to_string();
        let draft = self.pending_administration_entry(call.caller, call.operation, arguments);
        self.append_with_rows(draft, TransactionSyncPolicy::Now, move |transaction, number| {
            let record = JournalKeyRecord::next(&load_signer(transaction)?, &origin, public, number);
            let text = serde_json::to_string(&record).map_err(|_| rusqlite::Error::InvalidQuery)?;
            transaction.execute("INSERT INTO signers VALUES (?1, ?2)", params![to_sql_integer(number), text])?;
            insert_key_seed(transaction, &seed)
        })?;
        // The old seed must not survive in the write-ahead log.
        let writer = store::lock_ignoring_poison(&self.store.writer);
        writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(errors::store_error)?;
        drop(writer);
        self.sign_checkpoint_at(time_ms)
    }
}

/// No checkpoint is signed if the last checkpoint already covers the whole journal.
pub(crate) fn insert_signed_checkpoint(
    transaction: &Connection,
    origin: &JournalWorkspaceId,
    time_ms: i64,
) -> rusqlite::Result<()> {
    let tip = store::load_tip(transaction, origin)?;
    let signed = query_number(transaction, "SELECT coalesce(max(size), 0) FROM checkpoints", [])?;
    if tip.number == 0 || signed.is_some_and(|signed| signed >= tip.number) {
        return Ok(());
    }
    let (origin, root) = (origin.clone(), tip.frontier.root());
    let checkpoint = JournalCheckpoint { origin, size: tip.number, root, head: tip.hash, time_ms };
    let note = checkpoint.sign(&load_signer(transaction)?);
    execute_cached(transaction, "INSERT INTO checkpoints VALUES (?1, ?2)", params![to_sql_integer(tip.number), note])
}

fn unreadable_key_error() -> Error {
    Error::new(ErrorKind::CorruptHistory, "a signing key in the state directory is damaged and cannot be read")
        .with_next_step(NextStep::ask_person("restore the state directory from a backup"))
}
