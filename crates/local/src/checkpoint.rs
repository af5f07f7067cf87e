//! Signed checkpoints of the journal and the keys that sign them. The seed lies in the database beside the entries, so
//! that rotating it and naming its successor are one transaction, and every process signs with the key in force.

use engine::{Failure, Kind};
use journal::{Checkpoint, KeyRecord, KeyRing, Link, Signer};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    failure,
    group::{Outcome, Work},
    open::LocalWorkspace,
    options::Durability,
    store::{self, Store, Sync, sql},
};

/// Makes the first key unless there is one.
pub(crate) fn prepare_key(store: &Store) -> Result<(), Failure> {
    let known = store.look(|connection| connection.prepare_cached("SELECT 1 FROM signers")?.exists([]))?;
    if known {
        return Ok(());
    }
    let seed: [u8; 32] = disk::random_bytes().map_err(|error| failure::own(&error))?;
    let record = serde_json::to_string(&KeyRecord::first(Signer::from_seed(&seed).public()))
        .map_err(|_| unreadable())?;
    store.transact(Sync::Later, Durability::Fast, |transaction| {
        let made = transaction
            .execute("INSERT OR IGNORE INTO signers VALUES (0, ?1)", params![record])
            .map_err(|error| failure::store(&error))?;
        // Another process may have been faster: its key stands.
        if made == 1 {
            put_seed(transaction, &seed).map_err(|error| failure::store(&error))?;
        }
        Ok(())
    })
}

fn put_seed(connection: &Connection, seed: &[u8; 32]) -> rusqlite::Result<()> {
    connection
        .execute("INSERT OR REPLACE INTO meta VALUES ('seed', ?1)", params![seed.as_slice()])
        .map(|_| ())
}

fn signer(connection: &Connection) -> rusqlite::Result<Signer> {
    let bytes: Option<Vec<u8>> = connection
        .query_row("SELECT value FROM meta WHERE name = 'seed'", [], |row| row.get(0))
        .optional()?;
    let seed =
        bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()).ok_or(rusqlite::Error::InvalidQuery)?;
    Ok(Signer::from_seed(&seed))
}

impl LocalWorkspace {
    /// The verified keys of this workspace.
    pub(crate) fn ring(&self) -> Result<KeyRing, Failure> {
        let texts: Vec<String> = self.store.look(|connection| {
            connection
                .prepare_cached("SELECT record FROM signers ORDER BY from_entry")?
                .query_map([], |row| row.get(0))?
                .collect()
        })?;
        let records = texts
            .iter()
            .map(|text| serde_json::from_str(text))
            .collect::<Result<_, _>>()
            .map_err(|_| unreadable())?;
        KeyRing::new(self.store.origin.clone(), records).map_err(|problem| {
            Failure::new(Kind::CorruptHistory, format!("the signing keys do not fit together: {problem}"))
        })
    }

    /// Signs the journal as it is, unless that has been done.
    pub(crate) fn sign_checkpoint(&self) -> Result<(), Failure> {
        let time_ms = self.clock.now().wall_ms;
        let origin = &self.store.origin;
        self.store.transact(Sync::Later, self.durability, |transaction| {
            sign(transaction, origin, time_ms).map_err(|error| failure::store(&error))
        })
    }

    /// Replaces the signing key by a new one that the old one endorses, and erases the old one.
    pub fn rotate_key(&self) -> Result<(), Failure> {
        self.flush()?;
        self.sign_checkpoint()?;
        let seed: [u8; 32] = disk::random_bytes().map_err(|error| failure::own(&error))?;
        let public = Signer::from_seed(&seed).public();
        let origin = self.store.origin.clone();
        let time_ms = self.clock.now().wall_ms;
        let mut draft =
            self.system_draft("rotate_key", serde_json::json!({ "public": public }).to_string(), Link::None);
        let work: Work = Box::new(move |transaction, tip| {
            store::append(transaction, tip, &mut draft)?;
            let record = KeyRecord::next(&signer(transaction)?, &origin, public, tip.number);
            let text = serde_json::to_string(&record).map_err(|_| rusqlite::Error::InvalidQuery)?;
            transaction.execute("INSERT INTO signers VALUES (?1, ?2)", params![sql(tip.number), text])?;
            put_seed(transaction, &seed)?;
            Ok(Outcome::Recorded(draft.entry.number, tip.hash))
        });
        self.group.submit(&self.store, self.durability, Sync::Now, work)?;
        // The old seed must not survive in the write-ahead log.
        let writer = store::hold(&self.store.writer);
        writer
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .map_err(|error| failure::store(&error))?;
        drop(writer);
        self.store.transact(Sync::Later, self.durability, |transaction| {
            sign(transaction, &self.store.origin, time_ms).map_err(|error| failure::store(&error))
        })
    }
}

/// Signs the journal as it is in this transaction, unless that has been done.
pub(crate) fn sign(transaction: &Connection, origin: &journal::Origin, time_ms: i64) -> rusqlite::Result<()> {
    let tip = store::tip(transaction, origin)?;
    let signed: i64 = transaction
        .prepare_cached("SELECT coalesce(max(size), 0) FROM checkpoints")?
        .query_row([], |row| row.get(0))?;
    if tip.number == 0 || signed.unsigned_abs() >= tip.number {
        return Ok(());
    }
    let checkpoint = Checkpoint {
        origin: origin.clone(),
        size: tip.number,
        root: tip.frontier.root(),
        head: tip.hash,
        time_ms,
    };
    let note = checkpoint.sign(&signer(transaction)?);
    transaction.execute("INSERT INTO checkpoints VALUES (?1, ?2)", params![sql(tip.number), note])?;
    Ok(())
}

fn unreadable() -> Failure {
    Failure::new(Kind::CorruptHistory, "a signing key in the store cannot be read")
}
