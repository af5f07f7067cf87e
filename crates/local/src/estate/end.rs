//! Ending a workspace, and taking it back: what the registry says comes first, then the directory follows. An ephemeral one
//! is removed; a kept one is moved to the trash until its time there is over.

use disk::{Directory, ErrorKind, Mode, Over};
use engine::{Caller, Failure, Kind, Principal};
use serde_json::json;

use super::{
    Description, Estate, Row, Settled, Stage, WorkspaceName,
    name::directory_name,
    registry::{self, Lasting},
};
use crate::failure;

impl Estate {
    /// Destroys a workspace. From the moment this is recorded nobody is let in any more; its tokens are over for good.
    pub fn destroy(&self, by: &Caller, name: &WorkspaceName) -> Result<Description, Failure> {
        let id = self.ready(name.as_str())?.id;
        let _alone = self.hold(&id, Mode::Exclusive)?;
        let row = self.still(&id, Stage::Ready, name.as_str())?;
        let now_ms = self.now_ms();
        let after = match row.lasting {
            Lasting::Ephemeral => Row { stage: Stage::Ending, settled: Settled::No, ..row },
            Lasting::Kept => Row {
                stage: Stage::Trashed,
                settled: Settled::No,
                ends_ms: Some(now_ms.saturating_add(self.options.trash_ms)),
                ..row
            },
        };
        let arguments =
            json!({ "workspace": after.name, "id": id, "lasting": after.lasting, "ends_ms": after.ends_ms });
        let put = after.clone();
        self.record(by, "workspace_destroy", &arguments, move |transaction| {
            match registry::by_id(transaction, &put.id)? {
                Some(row) if row.stage == Stage::Ready => {}
                Some(_) | None => return Ok(Err(registry::unknown(&put.name))),
            }
            registry::put(transaction, &put)?;
            registry::end_tokens(transaction, &put.id, now_ms)?;
            Ok(Ok(()))
        })?;
        self.leave(&id);
        // It is destroyed whether its directory goes now or when the estate is next tidied.
        self.settle(&after).unwrap_or_default();
        Ok(self.described(&after))
    }

    /// Takes a workspace back from the trash, by its name or id; under another name if that is wanted.
    pub fn restore(
        &self,
        by: &Caller,
        name: &str,
        rename: Option<&WorkspaceName>,
    ) -> Result<Description, Failure> {
        let missing = || {
            Failure::new(Kind::NotFound, format!("there is no workspace {name} in the trash"))
                .hint("`stead workspace list --trash` shows which there are")
        };
        let found = self.own.store.look(|connection| registry::trashed(connection, name))?;
        let id = found.ok_or_else(missing)?.id;
        let _alone = self.hold(&id, Mode::Exclusive)?;
        let row = self.row(&id)?.filter(|row| row.stage == Stage::Trashed).ok_or_else(missing)?;
        let name = rename.map_or(row.name.clone(), |name| name.as_str().to_owned());
        let after = Row { stage: Stage::Ready, settled: Settled::No, ends_ms: None, name, ..row };
        let arguments = json!({ "workspace": after.name, "id": id });
        let put = after.clone();
        self.record(by, "workspace_restore", &arguments, move |transaction| {
            match registry::by_id(transaction, &put.id)? {
                Some(row) if row.stage == Stage::Trashed => {}
                Some(_) | None => return Ok(Err(registry::unknown(&put.name))),
            }
            if registry::live(transaction, &put.name)?.is_some() {
                let taken = format!("there is another workspace {} by now", put.name);
                return Ok(Err(Failure::new(Kind::Exists, taken).hint("restore it under another name")));
            }
            registry::put(transaction, &put)?;
            Ok(Ok(()))
        })?;
        // Whoever opens it next finishes this, if it is not done now.
        self.settle(&after).unwrap_or_default();
        Ok(self.described(&after))
    }

    /// Lets a workspace go whose time in the trash is over.
    pub(super) fn expire(&self, id: &str) -> Result<(), Failure> {
        let Some(_alone) = self.try_hold(id, Mode::Exclusive)? else { return Ok(()) };
        let now_ms = self.now_ms();
        let over =
            |row: &Row| row.stage == Stage::Trashed && row.ends_ms.is_some_and(|ends_ms| ends_ms <= now_ms);
        let Some(row) = self.row(id)?.filter(over) else { return Ok(()) };
        let by = Caller::new(Principal::System, "estate", "server");
        let after = Row { stage: Stage::Ending, settled: Settled::No, ..row };
        let put = after.clone();
        self.record(
            &by,
            "workspace_expire",
            &json!({ "workspace": after.name, "id": id }),
            move |transaction| {
                registry::put(transaction, &put)?;
                Ok(Ok(()))
            },
        )?;
        self.settle(&after)
    }

    /// Settles a workspace if nobody is at work on it.
    pub(super) fn settle_if_left(&self, id: &str) -> Result<(), Failure> {
        let Some(_alone) = self.try_hold(id, Mode::Exclusive)? else { return Ok(()) };
        match self.row(id)?.filter(|row| row.settled == Settled::No) {
            Some(row) => self.settle(&row),
            None => Ok(()),
        }
    }

    /// Makes the disk as the row says. Whoever calls holds the workspace alone. Can be broken off and called again.
    pub(super) fn settle(&self, row: &Row) -> Result<(), Failure> {
        match row.stage {
            Stage::Making | Stage::Ending => return self.clear(&row.id),
            Stage::Ready => self.bring(&self.trash, &self.workspaces, &row.id)?,
            Stage::Trashed => self.bring(&self.workspaces, &self.trash, &row.id)?,
        }
        let settled = Row { settled: Settled::Yes, ..row.clone() };
        self.note(move |transaction| {
            registry::put(transaction, &settled)?;
            Ok(Ok(()))
        })
    }

    /// Moves the directory of a workspace, unless it is there already.
    fn bring(&self, from: &Directory, to: &Directory, id: &str) -> Result<(), Failure> {
        let name = directory_name(id)?;
        match from.rename(&name, to, &name, Over::Refuse) {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(failure::own(&error)),
        }
        to.sync().and_then(|()| from.sync()).map_err(|error| failure::own(&error))
    }

    /// Takes everything of a workspace away: its directory, its row, its tokens. It vanishes in one step before it is
    /// taken apart.
    pub(super) fn clear(&self, id: &str) -> Result<(), Failure> {
        self.bring(&self.workspaces, &self.trash, id)?;
        let name = directory_name(id)?;
        match self.trash.remove_tree(&name) {
            Ok(_) => {}
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(failure::own(&error)),
        }
        self.trash.sync().map_err(|error| failure::own(&error))?;
        let id = id.to_owned();
        self.note(move |transaction| {
            registry::drop_row(transaction, &id)?;
            Ok(Ok(()))
        })
    }

    /// The row of a workspace that is still as it was when it was looked up.
    fn still(&self, id: &str, stage: Stage, name: &str) -> Result<Row, Failure> {
        let row = self.row(id)?.filter(|row| row.stage == stage && row.name == name);
        row.ok_or_else(|| registry::unknown(name))
    }
}
