//! Reading the journal back.

use engine::{EntryFilter, Failure, Kind, Order, Stored, Which};
use path::RelPath;
use rusqlite::{OptionalExtension, ToSql, params};

use crate::{
    open::LocalWorkspace,
    store::{self, sql},
};

/// Most entries one query answers.
const QUERY_MAX: usize = 10_000;

type Row = (Vec<u8>, Vec<u8>);

impl LocalWorkspace {
    pub(crate) fn entry_by_number(&self, number: u64) -> Result<Option<Stored>, Failure> {
        let row: Option<Row> = self.store.look(|connection| {
            connection
                .prepare_cached("SELECT bytes, hash FROM entries WHERE number = ?1")?
                .query_row(params![sql(number)], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })?;
        row.map(stored).transpose()
    }

    pub(crate) fn find_entries(&self, filter: &EntryFilter) -> Result<Vec<Stored>, Failure> {
        let mut query = Query::default();
        match filter.what {
            Which::All => {}
            Which::Changes => query.text.push_str(" AND changed = 1"),
        }
        query.number("number >", filter.after);
        query.number("number <", filter.before);
        query.time("time_ms >=", filter.since_ms);
        query.time("time_ms <=", filter.until_ms);
        query.word("principal =", filter.principal.as_deref());
        query.word("operation =", filter.operation.as_deref());
        if let Some(path) = &filter.path {
            query.path(path);
        }
        let order = match filter.order {
            Order::NewestFirst => "DESC",
            Order::OldestFirst => "ASC",
        };
        let limit = filter.limit.min(QUERY_MAX);
        let text = format!(
            "SELECT bytes, hash FROM entries WHERE 1 = 1{} ORDER BY number {order} LIMIT {limit}",
            query.text
        );
        let rows: Vec<Row> = self.store.look(|connection| {
            connection
                .prepare_cached(&text)?
                .query_map(
                    &*query.values.iter().map(|value| &**value as &dyn ToSql).collect::<Vec<_>>(),
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )?
                .collect()
        })?;
        rows.into_iter().map(stored).collect()
    }

    /// Whether a call after this one changed one of these places, something above or something below. What others did
    /// to them does not count, because they wait for nobody, nor does making a directory above.
    pub(crate) fn changed_after(&self, number: u64, places: &[RelPath]) -> Result<bool, Failure> {
        let outside = engine::Principal::Outside.to_string();
        self.store.look(|connection| {
            let mut exact = connection.prepare_cached(
                "SELECT 1 FROM touched JOIN entries USING (number)
                 WHERE path = ?1 AND number > ?2 AND changed = 1 AND principal <> ?3",
            )?;
            let mut after = connection.prepare_cached(
                "SELECT bytes FROM touched JOIN entries USING (number)
                 WHERE path = ?1 AND number > ?2 AND changed = 1 AND principal <> ?3",
            )?;
            let mut below = connection.prepare_cached(
                "SELECT 1 FROM touched JOIN entries USING (number)
                 WHERE path >= ?1 AND path < ?2 AND number > ?3 AND changed = 1 AND principal <> ?4",
            )?;
            for place in places {
                let wire = place.to_string();
                if below.exists(params![format!("{wire}/"), format!("{wire}0"), sql(number), outside])? {
                    return Ok(true);
                }
                if exact.exists(params![wire, sql(number), outside])? {
                    return Ok(true);
                }
                for above in place.ancestors().map(|above| above.to_string()) {
                    let mut rows = after.query(params![above, sql(number), outside])?;
                    while let Some(row) = rows.next()? {
                        if !only_makes(row.get_ref(0)?.as_blob()?, &above) {
                            return Ok(true);
                        }
                    }
                }
            }
            Ok(false)
        })
    }

    /// Whether a call after this one took one of these directories away, or one above. Whoever did waited for the call that
    /// made it; whoever merely made it as well did not.
    pub(crate) fn unmade_after(&self, number: u64, directories: &[RelPath]) -> Result<bool, Failure> {
        let outside = engine::Principal::Outside.to_string();
        self.store.look(|connection| {
            let mut after = connection.prepare_cached(
                "SELECT bytes FROM touched JOIN entries USING (number)
                 WHERE path = ?1 AND number > ?2 AND changed = 1 AND principal <> ?3",
            )?;
            for directory in directories {
                for path in std::iter::once(directory.to_string())
                    .chain(directory.ancestors().map(|above| above.to_string()))
                {
                    let mut rows = after.query(params![path, sql(number), outside])?;
                    while let Some(row) = rows.next()? {
                        if !only_makes(row.get_ref(0)?.as_blob()?, &path) {
                            return Ok(true);
                        }
                    }
                }
            }
            Ok(false)
        })
    }

    /// Whether something at this place or below was changed and has not been settled on the device yet.
    pub(crate) fn is_unsettled(&self, place: &RelPath) -> Result<bool, Failure> {
        let wire = place.to_string();
        self.store.look(|connection| {
            connection
                .prepare_cached(
                    "SELECT 1 FROM touched WHERE (path = ?1 OR (path >= ?2 AND path < ?3))
                     AND number IN (SELECT number FROM pending)",
                )?
                .exists(params![wire, format!("{wire}/"), format!("{wire}0")])
        })
    }

    pub(crate) fn entry_of_key(&self, principal: &str, key: &str) -> Result<Option<u64>, Failure> {
        self.store.look(|connection| {
            connection
                .prepare_cached("SELECT number FROM keys WHERE principal = ?1 AND key = ?2")?
                .query_row(params![principal, key], |row| row.get::<_, i64>(0))
                .optional()
                .map(|found| found.map(i64::unsigned_abs))
        })
    }
}

/// The last entry that changed something; zero when none did.
pub(crate) fn last_change(connection: &rusqlite::Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT coalesce(max(number), 0) FROM entries WHERE changed = 1")?
        .query_row([], |row| row.get::<_, i64>(0))
        .map(i64::unsigned_abs)
}

/// Whether all that an entry did at this very place was making a directory.
pub(crate) fn only_makes(entry: &[u8], path: &str) -> bool {
    journal::decode(entry).is_ok_and(|entry| {
        let there = |change: &&journal::Change| change.path == path || change.to.as_deref() == Some(path);
        entry.changes.iter().filter(there).all(|change| change.kind == journal::ChangeKind::MakeDir)
    })
}

/// A condition under construction, with its values.
#[derive(Default)]
struct Query {
    text: String,
    values: Vec<Box<dyn ToSql>>,
}

impl Query {
    fn push(&mut self, condition: &str, value: impl ToSql + 'static) {
        self.values.push(Box::new(value));
        self.text.push_str(&format!(" AND {condition} ?{}", self.values.len()));
    }

    fn number(&mut self, condition: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.push(condition, sql(value));
        }
    }

    fn time(&mut self, condition: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.push(condition, value);
        }
    }

    fn word(&mut self, condition: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.push(condition, value.to_owned());
        }
    }

    /// The path itself and everything below it: from `p/` up to the character after the slash.
    fn path(&mut self, path: &RelPath) {
        if path.is_root() {
            return;
        }
        let wire = path.to_string();
        self.values.push(Box::new(wire.clone()));
        let own = self.values.len();
        self.values.push(Box::new(format!("{wire}/")));
        self.values.push(Box::new(format!("{wire}0")));
        self.text.push_str(&format!(
            " AND number IN (SELECT number FROM touched WHERE path = ?{own} OR (path >= ?{} AND path < ?{}))",
            own + 1,
            own + 2
        ));
    }
}

fn stored(row: Row) -> Result<Stored, Failure> {
    let malformed = || {
        Failure::new(Kind::CorruptHistory, "an entry in the journal cannot be read")
            .hint("run stead log verify")
    };
    let entry = journal::decode(&row.0).map_err(|_| malformed())?;
    Ok(Stored { entry, hash: store::digest(&row.1).ok_or_else(malformed)? })
}
