//! The tables of the SQLite database, which uses a write-ahead log and is opened by several processes at once.

/// Format of the database; a newer one is refused.
pub(crate) const FORMAT: i64 = 3;
/// Oldest format that is upgraded by creating the missing tables.
pub(crate) const FORMAT_OLDEST: i64 = 1;

/// Creates every missing table.
pub(crate) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY, bytes BLOB NOT NULL, hash BLOB NOT NULL,
    time_ms INTEGER NOT NULL, principal TEXT NOT NULL, operation TEXT NOT NULL, changed INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS touched (
    path TEXT NOT NULL, number INTEGER NOT NULL, version BLOB, PRIMARY KEY (path, number)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS left_versions ON touched (path, version, number) WHERE version IS NOT NULL;
CREATE INDEX IF NOT EXISTS changed_entries ON entries (number) WHERE changed = 1;
CREATE TABLE IF NOT EXISTS pending (
    number INTEGER NOT NULL, step INTEGER NOT NULL, process TEXT NOT NULL, boot TEXT NOT NULL,
    intent TEXT NOT NULL, PRIMARY KEY (number, step)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS pending_processes ON pending (process);
CREATE TABLE IF NOT EXISTS kept (
    version BLOB PRIMARY KEY, size INTEGER NOT NULL, bytes BLOB, number INTEGER NOT NULL, agent INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS trash (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, path TEXT NOT NULL, top INTEGER NOT NULL, files INTEGER NOT NULL,
    directories INTEGER NOT NULL, size INTEGER NOT NULL, removed_ms INTEGER NOT NULL, keep_until_ms INTEGER NOT NULL,
    number INTEGER NOT NULL, state INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS trash_of_owners ON trash (owner, state, size);
CREATE TABLE IF NOT EXISTS holding (
    one INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, files INTEGER NOT NULL, number INTEGER NOT NULL,
    counted_ms INTEGER NOT NULL, took_ms INTEGER NOT NULL, doubted INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS held (
    number INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, files INTEGER NOT NULL, more_bytes INTEGER NOT NULL,
    more_files INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS keys (
    principal TEXT NOT NULL, key TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (principal, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS undone (
    number INTEGER NOT NULL, by INTEGER NOT NULL, redone INTEGER, PRIMARY KEY (number, by)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS leases (
    path TEXT PRIMARY KEY, holder TEXT NOT NULL, fence INTEGER NOT NULL, ends_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lease_times (
    path TEXT PRIMARY KEY, lasting_ms INTEGER NOT NULL, taken_uptime_ms INTEGER NOT NULL, boot TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS approvals (
    id TEXT PRIMARY KEY, principal TEXT NOT NULL, session TEXT NOT NULL, operation TEXT NOT NULL, tool TEXT,
    call BLOB NOT NULL, plan BLOB NOT NULL, shown TEXT NOT NULL, why TEXT NOT NULL, policy TEXT NOT NULL,
    created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, created_uptime_ms INTEGER NOT NULL, boot TEXT NOT NULL,
    state INTEGER NOT NULL, answered_by TEXT, reason TEXT, used INTEGER);
CREATE INDEX IF NOT EXISTS approvals_of_calls ON approvals (principal, call);
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, principal TEXT NOT NULL, face TEXT NOT NULL, created_ms INTEGER NOT NULL, ended_ms INTEGER,
    first INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS alerts (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL, sender TEXT NOT NULL, session TEXT NOT NULL, severity TEXT NOT NULL,
    message TEXT NOT NULL, time_ms INTEGER NOT NULL, answered_by TEXT, answer TEXT, answered_ms INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS watches (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, session TEXT NOT NULL, path TEXT NOT NULL, deep INTEGER NOT NULL,
    happenings TEXT NOT NULL, glob TEXT, started INTEGER, stage INTEGER NOT NULL, created_ms INTEGER NOT NULL,
    heard_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reviewed (
    principal TEXT NOT NULL, session TEXT NOT NULL, path TEXT NOT NULL, number INTEGER NOT NULL, text BLOB,
    PRIMARY KEY (principal, session, path));
CREATE TABLE IF NOT EXISTS buffers (
    id TEXT PRIMARY KEY, path TEXT NOT NULL, owner TEXT NOT NULL, session TEXT NOT NULL, process TEXT NOT NULL,
    revision INTEGER NOT NULL, version BLOB NOT NULL, base BLOB, endings INTEGER NOT NULL,
    held_revision INTEGER NOT NULL, changed_ms INTEGER NOT NULL, text BLOB NOT NULL, held BLOB NOT NULL,
    moved_by INTEGER, before_path TEXT, before_version BLOB, before_base BLOB, before_text BLOB);
CREATE TABLE IF NOT EXISTS bound_watches (id TEXT PRIMARY KEY, process TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, hash BLOB NOT NULL, principal TEXT NOT NULL, reach TEXT NOT NULL, label TEXT NOT NULL,
    created_ms INTEGER NOT NULL, ends_ms INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tickets (
    hash BLOB PRIMARY KEY, principal TEXT NOT NULL, session TEXT, created_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checkpoints (size INTEGER PRIMARY KEY, note TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS signers (from_entry INTEGER PRIMARY KEY, record TEXT NOT NULL);
";

/// Settings that SQLite stores in the database file.
pub(crate) const FILE_PRAGMAS: &str = "PRAGMA journal_mode = WAL;";

/// Settings of every connection. The busy timeout limits the wait for another process's transaction.
pub(crate) const CONNECTION_PRAGMAS: &str = "
PRAGMA wal_autocheckpoint = 2000;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -8000;
PRAGMA secure_delete = FAST;
";

pub(crate) const BUSY_TIMEOUT_MS: u64 = 10_000;
