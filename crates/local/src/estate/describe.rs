//! What is told about workspaces: a page of them, or everything about one.

use disk::WalkLimits;
use engine::Failure;
use serde_json::{Value, json};

use super::{
    Estate, FILES, Row, Stage, TRASH, WORKSPACES, WorkspaceName,
    name::directory_name,
    registry::{self, Lasting},
};
use crate::failure;

/// Workspaces on one page, when nothing else is said.
const PAGE: usize = 100;
/// Workspaces on one page.
const PAGE_MAX: usize = 1_000;
/// Entries that are counted before it is said that there are more.
const COUNTED_MAX: u64 = 1_000_000;

/// Which page is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// What the page before said.
    pub cursor: Option<String>,
    /// How many workspaces.
    pub limit: Option<usize>,
    /// Of those that are there, or of those in the trash.
    pub of: Paged,
}

/// Which workspaces are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Paged {
    /// Those that can be used.
    #[default]
    Ready,
    /// Those in the trash.
    Trash,
}

/// What is known of one workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// What it is told apart by, also from others that had its name.
    pub id: String,
    /// What becomes of it when it is destroyed.
    pub lasting: Lasting,
    /// What it is for.
    pub label: String,
    /// Who made it.
    pub maker: String,
    /// When it was made, in unix milliseconds.
    pub created_ms: i64,
    /// When it was last used.
    pub used_ms: i64,
    /// When it leaves the trash.
    pub ends_ms: Option<i64>,
    /// What it was made from.
    pub origin: Option<String>,
    /// Where it stands: `open`, `idle`, `trash` or `gone`.
    pub state: &'static str,
}

impl Description {
    /// As it is told to machines.
    pub fn to_json(&self) -> Value {
        let mut object = json!({
            "name": self.name, "id": self.id, "lasting": self.lasting, "label": self.label, "maker": self.maker,
            "created_ms": self.created_ms, "used_ms": self.used_ms, "state": self.state,
        });
        if let Some(ends_ms) = self.ends_ms {
            object["ends_ms"] = ends_ms.into();
        }
        if let Some(origin) = &self.origin {
            object["origin"] = serde_json::from_str(origin).unwrap_or_default();
        }
        object
    }
}

impl Estate {
    pub(super) fn described(&self, row: &Row) -> Description {
        let state = match row.stage {
            Stage::Ready if self.is_open(&row.id) => "open",
            Stage::Ready => "idle",
            Stage::Trashed => "trash",
            Stage::Making | Stage::Ending => "gone",
        };
        Description {
            name: row.name.clone(),
            id: row.id.clone(),
            lasting: row.lasting,
            label: row.label.clone(),
            maker: row.maker.clone(),
            created_ms: row.created_ms,
            used_ms: row.used_ms,
            ends_ms: row.ends_ms,
            origin: row.origin.clone(),
            state,
        }
    }

    /// One page of workspaces, in the order of their names, and where the next begins.
    pub fn list(&self, page: &Page) -> Result<(Vec<Description>, Option<String>), Failure> {
        let limit = page.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
        let stage = match page.of {
            Paged::Ready => Stage::Ready,
            Paged::Trash => Stage::Trashed,
        };
        let cursor = page.cursor.as_deref().unwrap_or_default();
        let after = cursor.split_once('.').unwrap_or((cursor, ""));
        let mut rows =
            self.own.store.look(|connection| registry::page(connection, stage, after, limit + 1))?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|row| format!("{}.{}", row.name, row.id));
        Ok((rows.iter().map(|row| self.described(row)).collect(), next))
    }

    /// Everything about one workspace, its size and the head of its journal included.
    pub fn describe(&self, name: &WorkspaceName) -> Result<Value, Failure> {
        let row = self.ready(name.as_str())?;
        let mut object = self.described(&row).to_json();
        let head = self.enter(&row.id)?.workspace().head()?;
        object["head"] = json!({ "number": head.number, "hash": head.hash.to_string() });
        let measured = self.measured(&row)?;
        object["files"] = measured.files.into();
        object["directories"] = measured.directories.into();
        object["bytes"] = measured.bytes.into();
        if measured.walk.ended != disk::Ended::Complete || measured.walk.unread_count > 0 {
            object["truncated"] = true.into();
        }
        Ok(object)
    }

    fn measured(&self, row: &Row) -> Result<disk::Measured, Failure> {
        let own = |error: disk::DiskError| failure::own(&error);
        let directory = self.workspaces.open_directory(&directory_name(&row.id)?).map_err(own)?;
        let files = directory.open_directory(&path::Name::new(FILES.as_bytes())?).map_err(own)?;
        disk::measure_tree(&files, WalkLimits { entries: COUNTED_MAX, ..WalkLimits::default() }).map_err(own)
    }

    /// Where a workspace lies, for people: whole, to be backed up or moved.
    pub fn place_of(&self, description: &Description) -> std::path::PathBuf {
        let below = if description.state == "trash" { TRASH } else { WORKSPACES };
        self.path.join(below).join(&description.id)
    }
}
