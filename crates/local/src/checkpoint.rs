//! Signed checkpoints of the journal and their keys. The seed is stored in the database beside the entries, so that a
//! key rotation is one transaction and every process signs with the current key.

use rusqlite::{Connection, OptionalExtension, params};
use stead_engine::{Error, ErrorKind};
use stead_journal::{Checkpoint, EntryRelation, KeyRecord, KeyRing, Signer};

use crate::{
    errors,
    group_commit::{TransactionBody, TransactionOutcome},
    open::LocalWorkspace,
    options::Durability,
    store::{self, SqliteStore, SyncRequirement, to_sql_integer},
};

/// Creates the first key if there is none.
pub(crate) fn ensure_signing_key(store: &SqliteStore) -> Result<(), Error> {
    let known = store.run_query(|connection| connection.prepare_cached("SELECT 1 FROM signers")?.exists([]))?;
    if known {
        return Ok(());
    }
    let seed: [u8; 32] = crate::random::random_bytes()?;
    let record = serde_json::to_string(&KeyRecord::first_key(Signer::from_seed(&seed).verifying_key()))
        .map_err(|_| unreadable_key_error())?;
    store.run_transaction(SyncRequirement::Later, Durability::Fast, |transaction| {
        let made = transaction
            .execute("INSERT OR IGNORE INTO signers VALUES (0, ?1)", params![record])
            .map_err(|error| errors::store_error(&error))?;
        // Another process may have stored its key first; that key counts.
        if made == 1 {
            insert_key_seed(transaction, &seed).map_err(|error| errors::store_error(&error))?;
        }
        Ok(())
    })
}

fn insert_key_seed(connection: &Connection, seed: &[u8; 32]) -> rusqlite::Result<()> {
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('seed', ?1)", params![seed.as_slice()]).map(|_| ())
}

fn load_signer(connection: &Connection) -> rusqlite::Result<Signer> {
    let bytes: Option<Vec<u8>> =
        connection.query_row("SELECT value FROM meta WHERE name = 'seed'", [], |row| row.get(0)).optional()?;
    let seed = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()).ok_or(rusqlite::Error::InvalidQuery)?;
    Ok(Signer::from_seed(&seed))
}

impl LocalWorkspace {
    pub(crate) fn load_key_ring(&self) -> Result<KeyRing, Error> {
        let texts: Vec<String> = self.store.run_query(|connection| {
            connection
                .prepare_cached("SELECT record FROM signers ORDER BY from_entry")?
                .query_map([], |row| row.get(0))?
                .collect()
        })?;
        let records = texts
            .iter()
            .map(|text| serde_json::from_str(text))
            .collect::<Result<_, _>>()
            .map_err(|_| unreadable_key_error())?;
        KeyRing::new(self.store.origin.clone(), records).map_err(|problem| {
            Error::new(ErrorKind::CorruptHistory, format!("the signing keys do not fit together: {problem}"))
        })
    }

    /// Signs the current journal, unless that checkpoint exists.
    pub(crate) fn sign_checkpoint(&self) -> Result<(), Error> {
        let time_ms = self.clock.now().wall_ms;
        let origin = &self.store.origin;
        self.store.run_transaction(SyncRequirement::Later, self.durability, |transaction| {
            insert_signed_checkpoint(transaction, origin, time_ms).map_err(|error| errors::store_error(&error))
        })
    }

    /// Replaces the signing key by a new one that the old one endorses, and erases the old one.
    pub fn rotate_key(&self) -> Result<(), Error> {
        self.flush()?;
        self.sign_checkpoint()?;
        let seed: [u8; 32] = crate::random::random_bytes()?;
        let public = Signer::from_seed(&seed).verifying_key();
        let origin = self.store.origin.clone();
        let time_ms = self.clock.now().wall_ms;
        let mut draft = self.pending_system_entry(
            "rotate_key",
            serde_json::json!({ "public": public }).to_string(),
            EntryRelation::None,
        );
        let work: TransactionBody = Box::new(move |transaction, tip| {
            store::append_entry(transaction, tip, &mut draft)?;
            let record = KeyRecord::next(&load_signer(transaction)?, &origin, public, tip.number);
            let text = serde_json::to_string(&record).map_err(|_| rusqlite::Error::InvalidQuery)?;
            transaction.execute("INSERT INTO signers VALUES (?1, ?2)", params![to_sql_integer(tip.number), text])?;
            insert_key_seed(transaction, &seed)?;
            Ok(TransactionOutcome::Recorded(draft.entry.number, tip.hash))
        });
        self.group_commit.submit(&self.store, self.durability, SyncRequirement::Now, work)?;
        // The old seed must not survive in the write-ahead log.
        let writer = store::lock_ignoring_poison(&self.store.writer);
        writer
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .map_err(|error| errors::store_error(&error))?;
        drop(writer);
        self.store.run_transaction(SyncRequirement::Later, self.durability, |transaction| {
            insert_signed_checkpoint(transaction, &self.store.origin, time_ms)
                .map_err(|error| errors::store_error(&error))
        })
    }
}

/// Signs the journal as seen by this transaction, unless that checkpoint exists.
pub(crate) fn insert_signed_checkpoint(
    transaction: &Connection,
    origin: &stead_journal::JournalOrigin,
    time_ms: i64,
) -> rusqlite::Result<()> {
    let tip = store::load_tip(transaction, origin)?;
    let signed: i64 = transaction
        .prepare_cached("SELECT coalesce(max(size), 0) FROM checkpoints")?
        .query_row([], |row| row.get(0))?;
    if tip.number == 0 || signed.unsigned_abs() >= tip.number {
        return Ok(());
    }
    let checkpoint =
        Checkpoint { origin: origin.clone(), size: tip.number, root: tip.frontier.root(), head: tip.hash, time_ms };
    let note = checkpoint.sign(&load_signer(transaction)?);
    transaction.execute("INSERT INTO checkpoints VALUES (?1, ?2)", params![to_sql_integer(tip.number), note])?;
    Ok(())
}

fn unreadable_key_error() -> Error {
    Error::new(ErrorKind::CorruptHistory, "a signing key in the store cannot be read")
}
