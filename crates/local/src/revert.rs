//! Takes back steps that were done when a later step of the same plan could not be. Only ever touches what the plan
//! itself had put there; whatever does not look like that is left alone.

use disk::{Attributes, Directory, ErrorKind, Over, Source};
use path::Name;

use crate::{
    apply::{Hands, Trouble, trash_name},
    intent::{Id, Kept, Replaced, Step},
};

impl Hands<'_> {
    /// Takes back one step that was done.
    pub(crate) fn revert(&self, step: &Step) -> Result<(), Trouble> {
        match step {
            Step::Put { path, staged, over, .. } => {
                let (parent, name) = self.parent(&path.0)?;
                if !parent.stat(&name)?.is_some_and(|stat| staged.is(&stat)) {
                    return Ok(());
                }
                match over {
                    None => Ok(parent.remove_file(&name)?),
                    Some(replaced) => {
                        let ours = parent.open_file(&name)?;
                        self.put_back(&parent, &name, replaced, Attributes::Like(&ours), Over::Replace)
                    }
                }
            }
            Step::MakeDirectory { path, .. } => {
                let (parent, name) = self.parent(&path.0)?;
                match parent.remove_directory(&name) {
                    // Somebody else found it and uses it, or took it away.
                    Err(error) if matches!(error.kind, ErrorKind::NotEmpty | ErrorKind::NotFound) => Ok(()),
                    removed => Ok(removed?),
                }
            }
            Step::MakeLink { path, .. } => {
                let (parent, name) = self.parent(&path.0)?;
                Ok(parent.remove_file(&name)?)
            }
            Step::Move { from, to, id, over } => {
                let (parent, name) = self.parent(&to.0)?;
                let (back, old_name) = self.parent(&from.0)?;
                if !is(&parent, &name, *id)? {
                    return Ok(());
                }
                parent.rename(&name, &back, &old_name, Over::Refuse)?;
                match over {
                    None => Ok(()),
                    Some(replaced) => {
                        let new = Attributes::New { mode: replaced.mode };
                        self.put_back(&parent, &name, replaced, new, Over::Refuse)
                    }
                }
            }
            Step::Remove { path, trash, .. } => {
                let (parent, name) = self.parent(&path.0)?;
                Ok(self.trash.rename(&trash_name(trash)?, &parent, &name, Over::Refuse)?)
            }
            Step::RemoveDirectory { path } => {
                let (parent, name) = self.parent(&path.0)?;
                Ok(parent.make_directory(&name, engine::NEW_DIRECTORY_MODE)?)
            }
            Step::Restore { path, trash, .. } => {
                let (parent, name) = self.parent(&path.0)?;
                Ok(parent.rename(&name, self.trash, &trash_name(trash)?, Over::Refuse)?)
            }
        }
    }

    /// Puts replaced bytes back.
    fn put_back(
        &self,
        parent: &Directory,
        name: &Name,
        replaced: &Replaced,
        attributes: Attributes<'_>,
        over: Over,
    ) -> Result<(), Trouble> {
        let staged = match replaced.kept {
            Kept::File => {
                let old = self.state.open_blob(&replaced.version.to_string())?.ok_or(Trouble::Foreign)?;
                parent.stage(Source::File(&old), attributes)?
            }
            Kept::Row => {
                let bytes = (self.kept)(&replaced.version).ok_or(Trouble::Foreign)?;
                parent.stage(Source::Bytes(&bytes), attributes)?
            }
        };
        Ok(parent.rename(staged.name(), parent, name, over)?)
    }
}

fn is(parent: &Directory, name: &Name, id: Id) -> Result<bool, Trouble> {
    Ok(parent.stat(name)?.is_some_and(|stat| Id::from(stat.stamp.id) == id))
}
