//! The rows of a workspace: small values beside its files and its journal, such as leases, approvals and sessions.
//!
//! A storage back end sees a row as an id with an owner, a subject and an opaque text. The types of the texts and the
//! rules about them are in the engine, so that a new kind of row changes no storage.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    errors::{Error, ErrorKind},
    next_step::NextStep,
    workspace::Workspace,
};

/// Rows of one kind, which have one generation: a number that rises with every commit that writes such a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowFamily {
    Lease,
    Approval,
    Session,
    Alert,
    /// The text of a file that a person accepted in a review.
    ReviewMark,
    Buffer,
    Watch,
    /// A write that takes back a write of an entry whose files could not be changed.
    Compensation,
}

impl RowFamily {
    /// The word that the storage stores; it never changes.
    pub fn as_str(self) -> &'static str {
        match self {
            RowFamily::Lease => "lease",
            RowFamily::Approval => "approval",
            RowFamily::Session => "session",
            RowFamily::Alert => "alert",
            RowFamily::ReviewMark => "review_mark",
            RowFamily::Buffer => "buffer",
            RowFamily::Watch => "watch",
            RowFamily::Compensation => "compensation",
        }
    }
}

/// The journal entry that wrote a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowStamp {
    pub entry: u64,
    pub time_ms: i64,
}

/// Bytes of a row that are not part of its value, because few readers need them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowBody {
    pub slot: String,
    pub bytes: Vec<u8>,
}

/// A row as the storage returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRow {
    pub id: String,
    pub owner: String,
    pub subject: String,
    /// The generation of the family when the row was last written, so that two states of a row never share one.
    pub revision: u64,
    /// The first and the last journal entry that wrote the row; `None` as long as no write had an entry.
    pub first: Option<RowStamp>,
    pub last: Option<RowStamp>,
    pub value: String,
    /// Empty unless the query asked for bodies.
    pub bodies: Vec<RowBody>,
}

/// The rows that a query found, and the generation of their family at that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSet {
    pub generation: u64,
    pub rows: Vec<StoredRow>,
}

/// A query for rows of one family, in the order in which they were created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowQuery {
    pub family: RowFamily,
    pub selection: RowSelection,
    pub bodies: RowBodySelection,
}

/// The rows of a family that a query selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowSelection {
    All,
    Id(String),
    Owner(String),
    OwnerAndSubject(String, String),
}

/// Whether a query also reads the bodies of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowBodySelection {
    None,
    All,
}

/// The id of a row that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowKey {
    Named(String),
    /// The prefix and the number of the entry that creates the row, such as `s12`.
    OfEntry(&'static str),
}

impl RowKey {
    /// The id of the row, if the journal entry of the write has this number.
    pub fn id(&self, entry: u64) -> String {
        match self {
            RowKey::Named(id) => id.clone(),
            RowKey::OfEntry(prefix) => format!("{prefix}{entry}"),
        }
    }
}

/// One write of a transaction to a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowWrite {
    pub family: RowFamily,
    pub key: RowKey,
    pub change: RowChange,
}

/// What a write does to its row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowChange {
    Put {
        owner: String,
        subject: String,
        value: String,
        /// The bodies to write; the other bodies of the row stay as they are.
        #[serde(skip)]
        bodies: Vec<RowBody>,
    },
    Delete,
}

impl RowWrite {
    pub(crate) fn put<T: RowValue>(key: RowKey, value: &T, bodies: Vec<RowBody>) -> Result<Self, Error> {
        let (owner, subject) = (value.owner().to_owned(), value.subject().to_owned());
        let change = RowChange::Put { owner, subject, value: encode_value(value)?, bodies };
        Ok(Self { family: T::FAMILY, key, change })
    }

    pub(crate) fn delete<T: RowValue>(id: &str) -> Self {
        Self { family: T::FAMILY, key: RowKey::Named(id.to_owned()), change: RowChange::Delete }
    }
}

/// The type of the values of one family.
pub(crate) trait RowValue: Serialize + DeserializeOwned {
    const FAMILY: RowFamily;

    /// The word by which the rows of one owner are found.
    fn owner(&self) -> &str;

    /// The word by which few rows of an owner are found.
    fn subject(&self) -> &str {
        ""
    }
}

/// A row with its decoded value.
#[derive(Debug, Clone)]
pub(crate) struct TypedRow<T> {
    pub(crate) id: String,
    pub(crate) revision: u64,
    pub(crate) first: Option<RowStamp>,
    pub(crate) last: Option<RowStamp>,
    pub(crate) value: T,
    pub(crate) bodies: Vec<RowBody>,
}

impl<T> TypedRow<T> {
    pub(crate) fn body(&self, slot: &str) -> Option<&[u8]> {
        self.bodies.iter().find(|body| body.slot == slot).map(|body| body.bytes.as_slice())
    }
}

#[derive(Debug)]
pub(crate) struct TypedRowSet<T> {
    pub(crate) generation: u64,
    pub(crate) rows: Vec<TypedRow<T>>,
}

impl dyn Workspace + '_ {
    pub(crate) fn typed_rows<T: RowValue>(
        &self,
        selection: RowSelection,
        bodies: RowBodySelection,
    ) -> Result<TypedRowSet<T>, Error> {
        let found = self.rows(&RowQuery { family: T::FAMILY, selection, bodies })?;
        let decode = |row: StoredRow| {
            let value = decode_value(T::FAMILY, &row.id, &row.value)?;
            let StoredRow { id, revision, first, last, bodies, .. } = row;
            Ok(TypedRow { id, revision, first, last, value, bodies })
        };
        Ok(TypedRowSet {
            generation: found.generation,
            rows: found.rows.into_iter().map(decode).collect::<Result<_, Error>>()?,
        })
    }

    pub(crate) fn typed_row<T: RowValue>(
        &self,
        id: &str,
        bodies: RowBodySelection,
    ) -> Result<Option<TypedRow<T>>, Error> {
        Ok(self.typed_rows(RowSelection::Id(id.to_owned()), bodies)?.rows.pop())
    }
}

fn encode_value<T: RowValue>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| {
        Error::new(ErrorKind::AuditUnavailable, format!("a {} cannot be stored: {error}", T::FAMILY.as_str()))
            .with_next_step(NextStep::repeat())
    })
}

fn decode_value<T: DeserializeOwned>(family: RowFamily, id: &str, value: &str) -> Result<T, Error> {
    serde_json::from_str(value).map_err(|error| {
        Error::new(ErrorKind::AuditUnavailable, format!("the stored {} {id} cannot be read: {error}", family.as_str()))
            .with_next_step(NextStep::ask_person("check the state directory with stead log verify"))
    })
}

/// A write that takes effect only if the files of an entry cannot be changed, as the storage keeps it until then.
#[derive(Debug, Serialize, Deserialize)]
struct CompensationRow {
    entry: String,
    family: RowFamily,
    id: String,
    change: RowChange,
}

impl RowValue for CompensationRow {
    const FAMILY: RowFamily = RowFamily::Compensation;

    fn owner(&self) -> &str {
        &self.entry
    }
}

/// The owner of the compensation rows of an entry.
pub fn compensation_owner(entry: u64) -> String {
    format!("r{entry}")
}

/// The rows that keep the compensation of an entry until its files are changed.
pub fn keep_compensation(entry: u64, writes: Vec<RowWrite>) -> Result<Vec<RowWrite>, Error> {
    let keep = |(position, write): (usize, RowWrite)| {
        let RowWrite { family, key, mut change } = write;
        let bodies = match &mut change {
            RowChange::Put { bodies, .. } => std::mem::take(bodies),
            RowChange::Delete => Vec::new(),
        };
        let row = CompensationRow { entry: compensation_owner(entry), family, id: key.id(entry), change };
        RowWrite::put(RowKey::Named(format!("{entry}.{position}")), &row, bodies)
    };
    writes.into_iter().enumerate().map(keep).collect()
}

/// The write that a stored compensation row keeps.
pub fn kept_compensation(row: StoredRow) -> Result<RowWrite, Error> {
    let CompensationRow { family, id, mut change, .. } = decode_value(RowFamily::Compensation, &row.id, &row.value)?;
    if let RowChange::Put { bodies, .. } = &mut change {
        *bodies = row.bodies;
    }
    Ok(RowWrite { family, key: RowKey::Named(id), change })
}
