//! The administration of one workspace: its trash, tokens, policy, journal and approver's secret.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use stead_engine::{
    AdministrationCall, AdministrationStore, CallerApproverStatus, Error, ErrorKind, Policy, Workspace,
    ops::{
        ApplyPolicyArgs, ApplyPolicyOutcome, CreateTokenArgs, CreateTokenOutcome, ExportLogArgs, ExportLogOutcome,
        ListTokensArgs, ListTokensOutcome, ListTrashArgs, ListTrashOutcome, PurgeTrashArgs, PurgeTrashOutcome,
        RevokeTokenArgs, RevokeTokenOutcome, RotateLogKeyArgs, RotateLogKeyOutcome, RotateTokenArgs, Secret,
        SetApproverSecretArgs, SetApproverSecretOutcome, ShowApproverArgs, ShowApproverOutcome, SignLogArgs,
        SignLogOutcome, VerifiedJournalFields, VerifyLogArgs, VerifyLogOutcome,
    },
};
use stead_journal::{JournalCheckpoint, MerkleLeafHash, VerifiedJournalPrefix};

use crate::{
    journal_audit::JournalVerifyReport,
    open::LocalWorkspace,
    store::TransactionSyncPolicy,
    token::{AccessTokenRecord, CreateTokenRequest},
};

/// The verified state that `log.verify` saves; its fields are those of 0.1.0.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedJournalVerification {
    trusted: String,
    checkpoint: Option<String>,
}

impl SavedJournalVerification {
    fn parse(text: &str) -> Result<(VerifiedJournalPrefix, Option<String>), Error> {
        let invalid = || {
            Error::new(ErrorKind::BadRequest, "this is not a state that log.verify saved")
                .with_next_step("pass a file that stead log verify --save wrote")
        };
        let saved: Self = serde_json::from_str(text).map_err(|_| invalid())?;
        let bytes = STANDARD.decode(&saved.trusted).map_err(|_| invalid())?;
        Ok((VerifiedJournalPrefix::from_bytes(&bytes).map_err(|_| invalid())?, saved.checkpoint))
    }
}

impl LocalWorkspace {
    fn verify_whole_journal(&self, args: &VerifyLogArgs) -> Result<VerifiedJournalFields, Error> {
        let mut against = args.against.clone();
        let from =
            args.from.as_deref().map(SavedJournalVerification::parse).transpose()?.map(|(trusted, checkpoint)| {
                against.extend(checkpoint);
                trusted
            });
        let report = self.verify_journal(from, &against)?;
        let saves = args.save && report.integrity_error.is_none();
        Ok(VerifiedJournalFields {
            ok: report.integrity_error.is_none(),
            checked: report.entries,
            entries: report.verified_prefix.frontier.size(),
            covered: report.covered_by_checkpoint,
            checkpoints: report.checkpoint_count,
            head: report.verified_prefix.head,
            tamper: report.integrity_error,
            state: saves.then(|| self.verified_state(&report)).transpose()?,
        })
    }

    fn verified_state(&self, report: &JournalVerifyReport) -> Result<String, Error> {
        let size = report.verified_prefix.frontier.size();
        let same_size = |note: &String| JournalCheckpoint::parse(note).is_ok_and(|checkpoint| checkpoint.size == size);
        let checkpoint = self.latest_checkpoint()?.filter(same_size);
        let saved =
            SavedJournalVerification { trusted: STANDARD.encode(report.verified_prefix.to_bytes()), checkpoint };
        serde_json::to_string(&saved).map_err(|error| Error::new(ErrorKind::Io, error.to_string()))
    }

    fn verify_entry(&self, number: u64) -> Result<VerifyLogOutcome, Error> {
        let proof = self.prove_entry(number)?;
        let checkpoint = JournalCheckpoint::parse(&proof.checkpoint)
            .map_err(|error| Error::new(ErrorKind::CorruptHistory, error.to_string()))?;
        Ok(VerifyLogOutcome::Entry {
            ok: proof.proof.verify(&MerkleLeafHash::from_entry_hash(&proof.hash), &checkpoint.root).is_ok(),
            entry: number,
            hash: proof.hash,
            proof: proof.proof,
            checkpoint: proof.checkpoint,
        })
    }

    fn token_outcome(&self, (token, secret): (AccessTokenRecord, String)) -> CreateTokenOutcome {
        CreateTokenOutcome { fields: token.to_fields(self.now_ms()), token: Secret(secret) }
    }
}

/// The token of one workspace names no hosted workspace.
fn refuse_hosted_workspace(workspace: Option<&String>) -> Result<(), Error> {
    match workspace {
        None => Ok(()),
        Some(_) => Err(Error::new(ErrorKind::BadRequest, "there are no hosted workspaces here")
            .with_next_step("omit the workspace, or pass --workspaces DIR")),
    }
}

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

    fn apply_policy(&self, args: &ApplyPolicyArgs, call: &AdministrationCall<'_>) -> Result<ApplyPolicyOutcome, Error> {
        let hex = |policy: &Policy| format!("{:016x}", policy.version());
        let current = hex(&self.active_policy()?.policy);
        if args.version.as_ref().is_some_and(|expected| *expected != current) {
            return Err(Error::new(ErrorKind::Stale, format!("the policy is now at version {current}"))
                .with_next_step("read the policy again, then repeat the call with its version"));
        }
        self.write_policy(&args.text)?;
        let version = hex(&self.active_policy()?.policy);
        let arguments = serde_json::json!({ "version": version, "replaces": current }).to_string();
        let draft = self.pending_administration_entry(call.caller, call.operation, arguments);
        self.append_with_rows(draft, TransactionSyncPolicy::Now, |_, _| Ok(()))?;
        Ok(ApplyPolicyOutcome { version })
    }

    fn verify_log(&self, args: &VerifyLogArgs, _call: &AdministrationCall<'_>) -> Result<VerifyLogOutcome, Error> {
        args.check()?;
        match args.entry {
            Some(number) => self.verify_entry(number),
            None => self.verify_whole_journal(args).map(VerifyLogOutcome::Journal),
        }
    }

    fn sign_log(&self, _args: &SignLogArgs, _call: &AdministrationCall<'_>) -> Result<SignLogOutcome, Error> {
        let checkpoint = self.latest_checkpoint()?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "the journal is empty, so it has no checkpoint")
                .with_next_step("repeat the command after the first call in this workspace")
        })?;
        Ok(SignLogOutcome { checkpoint })
    }

    fn rotate_log_key(
        &self,
        _args: &RotateLogKeyArgs,
        call: &AdministrationCall<'_>,
    ) -> Result<RotateLogKeyOutcome, Error> {
        self.rotate_key(call).map(|()| RotateLogKeyOutcome {})
    }

    fn export_log(&self, _args: &ExportLogArgs, call: &AdministrationCall<'_>) -> Result<ExportLogOutcome, Error> {
        let mut out = call.stream()?;
        out.0.begin_output(0);
        Ok(ExportLogOutcome { lines: self.export_journal(&mut out)? })
    }

    fn create_token(&self, args: &CreateTokenArgs, call: &AdministrationCall<'_>) -> Result<CreateTokenOutcome, Error> {
        refuse_hosted_workspace(args.workspace.as_ref())?;
        let request = CreateTokenRequest::from_args(args, self.now_ms())?;
        Ok(self.token_outcome(self.create_token(&request, call)?))
    }

    fn rotate_token(&self, args: &RotateTokenArgs, call: &AdministrationCall<'_>) -> Result<CreateTokenOutcome, Error> {
        Ok(self.token_outcome(self.rotate_token(&args.id, args.overlap_ms()?, call)?))
    }

    fn list_tokens(&self, args: &ListTokensArgs, _call: &AdministrationCall<'_>) -> Result<ListTokensOutcome, Error> {
        refuse_hosted_workspace(args.workspace.as_ref())?;
        let now_ms = self.now_ms();
        Ok(ListTokensOutcome { tokens: self.list_tokens()?.iter().map(|token| token.to_fields(now_ms)).collect() })
    }

    fn revoke_token(&self, args: &RevokeTokenArgs, call: &AdministrationCall<'_>) -> Result<RevokeTokenOutcome, Error> {
        refuse_hosted_workspace(args.workspace.as_ref())?;
        Ok(RevokeTokenOutcome { fields: self.revoke_token(&args.id, call)?.to_fields(self.now_ms()) })
    }

    fn set_approver(
        &self,
        args: &SetApproverSecretArgs,
        call: &AdministrationCall<'_>,
    ) -> Result<SetApproverSecretOutcome, Error> {
        if call.caller.grants.approver == CallerApproverStatus::None && self.has_approver_secret()? {
            return Err(Error::new(
                ErrorKind::PolicyDenied,
                "a secret is already set, and only who knows it can change it",
            )
            .with_next_step("run stead approvals setup and enter the current secret"));
        }
        self.set_approver_secret(&args.secret.0, call).map(|()| SetApproverSecretOutcome {})
    }

    fn show_approver(
        &self,
        _args: &ShowApproverArgs,
        _call: &AdministrationCall<'_>,
    ) -> Result<ShowApproverOutcome, Error> {
        Ok(ShowApproverOutcome { secret_set: self.has_approver_secret()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_state_has_the_fields_of_0_1_0() {
        let saved = SavedJournalVerification { trusted: "t".to_owned(), checkpoint: Some("c".to_owned()) };
        assert_eq!(serde_json::to_string(&saved).unwrap(), r#"{"trusted":"t","checkpoint":"c"}"#);
    }
}
