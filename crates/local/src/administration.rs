//! The administration of one workspace: its trash, tokens, policy, journal and approver's secret.

use stead_engine::{
    AdministrationCall, AdministrationStore, Error, ErrorKind,
    ops::{ListTrashArgs, ListTrashOutcome, PurgeTrashArgs, PurgeTrashOutcome},
};

use crate::open::LocalWorkspace;

impl AdministrationStore for LocalWorkspace {
    fn has_approver_secret(&self) -> Result<bool, Error> {
        Ok(self.load_approver_secret()?.is_some())
    }

    fn list_trash(&self, args: &ListTrashArgs, call: &AdministrationCall<'_>) -> Result<ListTrashOutcome, Error> {
        let owner = (!args.all).then_some(&call.caller.principal);
        Ok(ListTrashOutcome { items: self.trash_items(owner)?.into_iter().map(Into::into).collect() })
    }

    fn purge_trash(&self, args: &PurgeTrashArgs, call: &AdministrationCall<'_>) -> Result<PurgeTrashOutcome, Error> {
        let owner = (!args.all).then_some(&call.caller.principal);
        let ids = match (args.ids.is_empty(), args.mine, args.all) {
            (true, true, false) | (true, false, true) => {
                self.trash_items(owner)?.into_iter().map(|item| item.id).collect()
            }
            // All ids are checked before anything is deleted.
            (false, false, _) => {
                args.ids.iter().map(|id| self.check_purgeable(id, owner)).collect::<Result<Vec<_>, _>>()?
            }
            (true, _, _) | (false, true, _) => {
                return Err(Error::new(ErrorKind::BadRequest, "pass either ids, mine or all")
                    .with_next_step("all together with ids includes items that others removed"));
            }
        };
        Ok(PurgeTrashOutcome { deleted: self.delete_trash_items(&ids, Some(call))? })
    }
}
