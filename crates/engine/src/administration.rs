//! The right to administer, and the storage behind the operations that administer. The owner of the state directory
//! administers on the command line; every other administrator has a token for it.

use crate::{
    call_options::SecretTransport,
    caller::{Caller, CallerApproverStatus, CallerAuthority, Principal},
    control::CallControl,
    errors::{Error, ErrorKind},
    next_step::NextStep,
    operation::{Operation, OperationPlanningResult, PathAccessRequestList, PlanResult, ResolvedTargets},
    ops::{ListTrashArgs, ListTrashOutcome, OperationDefinition, PurgeTrashArgs, PurgeTrashOutcome},
};

/// The right that a caller needs for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredAuthority {
    /// The operation works with files. A token that administers may not call it.
    Use,
    /// The operation needs the right to administer.
    Administer,
    /// The operation needs the right to administer and, on the command line, the approver's secret if one is set.
    AdministerConfirmed,
    /// The operation returns the files of a workspace, so a token needs the right to export as well.
    Export,
    /// The operation returns a new secret, so it exists on the command line and over HTTP only.
    IssueSecret,
    /// The operation takes the approver's secret, so it exists on the command line only.
    SetSecret,
}

/// The call of an operation that administers, as its storage sees it.
pub struct AdministrationCall<'a> {
    /// The caller, in whose name the storage records a change.
    pub caller: &'a Caller,
    /// The control of the call, which also holds the stream of an export or import.
    pub control: &'a CallControl<'a>,
    /// The name of the called operation.
    pub operation: &'static str,
}

macro_rules! administration_operations {
    ($($method:ident $args:ident => $outcome:ident;)+) => {
        /// The storage that the operations of administration read and change. An operation that changes something
        /// writes its journal entry together with its rows. The operations that a storage does not implement are
        /// unknown there.
        pub trait AdministrationStore: Send + Sync {
            /// Whether an approver's secret is set.
            fn has_approver_secret(&self) -> Result<bool, Error>;
            $(
                #[doc = concat!("Runs the operation with the arguments [`", stringify!($args), "`].")]
                fn $method(&self, _args: &$args, call: &AdministrationCall<'_>) -> Result<$outcome, Error> {
                    Err(unknown_here_error(call.operation))
                }
            )+
        }

        $(impl Operation for $args {
            type Resolved = ();
            type Outcome = $outcome;

            fn resolve(
                &self,
                _context: &crate::call_context::CallContext<'_>,
                _paths: &mut PathAccessRequestList,
            ) -> Result<(), Error> {
                Ok(())
            }

            fn plan(
                &self,
                _context: &crate::call_context::CallContext<'_>,
                (): (),
                _targets: &ResolvedTargets,
            ) -> PlanResult<Self> {
                let args = self.clone();
                Ok(OperationPlanningResult::Administration(Box::new(move |store, call| store.$method(&args, call))))
            }
        })+
    };
}

administration_operations! {
    list_trash ListTrashArgs => ListTrashOutcome;
    purge_trash PurgeTrashArgs => PurgeTrashOutcome;
}

pub(crate) fn unknown_here_error(operation: &str) -> Error {
    Error::new(ErrorKind::UnknownOperation, format!("{operation} is not available here"))
        .with_next_step("use the server or the directory that has what it administers")
}

/// Checks that the caller has the right that an operation needs. The check precedes all other work on the call.
pub(crate) fn check_authority(
    definition: &OperationDefinition,
    caller: &Caller,
    secrets: SecretTransport,
    store: Option<&dyn AdministrationStore>,
) -> Result<(), Error> {
    let (name, authority) = (definition.name, caller.grants.authority);
    if definition.authority == RequiredAuthority::Use {
        return match authority {
            CallerAuthority::UseFiles | CallerAuthority::OwnerCommandLine => Ok(()),
            CallerAuthority::AdministrationToken | CallerAuthority::AdministrationAndExportToken => {
                Err(Error::new(ErrorKind::OutOfScope, "this token administers and cannot open files")
                    .with_next_step("use a token that was created without --administer"))
            }
        };
    }
    if is_always_refused(definition, caller) {
        return Err(Error::new(ErrorKind::NotOwner, format!("{name} needs the right to administer"))
            .with_next_step(NextStep::ask_person("run the command, or to create a token with --administer")));
    }
    let is_offered = match definition.authority {
        RequiredAuthority::IssueSecret => secrets != SecretTransport::None,
        RequiredAuthority::SetSecret => secrets == SecretTransport::CommandLine,
        RequiredAuthority::Use
        | RequiredAuthority::Administer
        | RequiredAuthority::AdministerConfirmed
        | RequiredAuthority::Export => true,
    };
    let Some(store) = store.filter(|_| is_offered) else { return Err(unknown_here_error(name)) };
    match (definition.authority, authority) {
        (RequiredAuthority::Export, CallerAuthority::AdministrationToken) => {
            Err(Error::new(ErrorKind::NotOwner, format!("{name} needs the right to export"))
                .with_next_step("use a token that was created with --administer --export"))
        }
        (
            RequiredAuthority::AdministerConfirmed | RequiredAuthority::Export | RequiredAuthority::IssueSecret,
            CallerAuthority::OwnerCommandLine,
        ) if caller.grants.approver == CallerApproverStatus::None && store.has_approver_secret()? => {
            Err(Error::new(ErrorKind::PolicyDenied, format!("{name} needs the approver's secret"))
                .with_next_step("run the command of stead at a terminal, or use a token created with --administer"))
        }
        (_, _) => Ok(()),
    }
}

pub(crate) fn is_always_refused(definition: &OperationDefinition, caller: &Caller) -> bool {
    definition.authority != RequiredAuthority::Use && !may_administer(caller)
}

/// An agent never administers, whatever its token or its command line says.
fn may_administer(caller: &Caller) -> bool {
    caller.grants.authority != CallerAuthority::UseFiles && matches!(caller.principal, Principal::User(_))
}
