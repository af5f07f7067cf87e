//! The right to administer, and the storage behind the operations that administer. The owner of the state directory
//! administers on the command line; every other administrator has a token for it.

use std::io;

use crate::{
    call_context::CallContext,
    call_options::SecretTransport,
    caller::{Caller, CallerApproverStatus, CallerAuthority, Principal},
    control::CallControl,
    errors::{Error, ErrorKind},
    next_step::NextStep,
    operation::{OperationPlanningResult, PathlessOperation, PlanResult},
    ops::{self, OperationDefinition},
};

/// The right that a caller needs for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredAuthority {
    /// The operation works with files. A token that administers may not call it.
    Use,
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
    pub caller: &'a Caller,
    /// The control of the call, which also holds the stream of an export or import.
    pub control: &'a CallControl<'a>,
    pub operation: &'static str,
}

impl<'a> AdministrationCall<'a> {
    /// The stream of bytes that an export writes or an import reads beside the outcome of the call.
    pub fn stream(&self) -> Result<CallStreamAdapter<'a>, Error> {
        self.control.stream().map(CallStreamAdapter).ok_or_else(|| {
            Error::new(ErrorKind::BadRequest, format!("{} transfers a stream of bytes", self.operation))
                .with_next_step("run the command of stead, or use the endpoint in GET /v1/openapi.json")
        })
    }
}

/// A stream of bytes that belongs to a call: the file of an export, or the archive of an import.
pub trait CallByteStream: Sync {
    /// Announces an export before its first byte, with the number of files that it leaves out.
    fn begin_output(&self, _left_out: u64) {}

    /// Writes all these bytes.
    fn write_bytes(&self, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Reads up to the length of the buffer, and returns 0 at the end of the stream.
    fn read_bytes(&self, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The stream of a call as a reader and a writer.
#[derive(Clone, Copy)]
pub struct CallStreamAdapter<'a>(pub &'a dyn CallByteStream);

impl io::Write for CallStreamAdapter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_bytes(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl io::Read for CallStreamAdapter<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_bytes(buffer)
    }
}

macro_rules! administration_operations {
    ($($method:ident $args:ident => $outcome:ident;)+) => {
        /// The storage that the operations of administration read and change. An operation that changes something
        /// writes its journal entry together with its rows. The operations that a storage does not implement are
        /// unknown there.
        pub trait AdministrationStore: Send + Sync {
            /// Whether an approver's secret is set.
            fn has_approver_secret(&self) -> Result<bool, Error>;

            /// The storage that runs the operations that this storage does not implement.
            fn underlying_store(&self) -> Option<&dyn AdministrationStore> {
                None
            }
            $(
                #[doc = concat!("Runs the operation with the arguments `", stringify!($args), "`.")]
                fn $method(&self, args: &ops::$args, call: &AdministrationCall<'_>) -> Result<ops::$outcome, Error> {
                    self.underlying_store().ok_or_else(|| unknown_here_error(call.operation))?.$method(args, call)
                }
            )+
        }

        $(impl PathlessOperation for ops::$args {
            type Outcome = ops::$outcome;

            fn plan(&self, _context: &CallContext<'_>) -> PlanResult<Self> {
                let args = self.clone();
                Ok(OperationPlanningResult::Administration(Box::new(move |store, call| store.$method(&args, call))))
            }
        })+
    };
}

administration_operations! {
    list_trash ListTrashArgs => ListTrashOutcome;
    purge_trash PurgeTrashArgs => PurgeTrashOutcome;
    apply_policy ApplyPolicyArgs => ApplyPolicyOutcome;
    verify_log VerifyLogArgs => VerifyLogOutcome;
    sign_log SignLogArgs => SignLogOutcome;
    rotate_log_key RotateLogKeyArgs => RotateLogKeyOutcome;
    export_log ExportLogArgs => ExportLogOutcome;
    create_token CreateTokenArgs => CreateTokenOutcome;
    rotate_token RotateTokenArgs => CreateTokenOutcome;
    list_tokens ListTokensArgs => ListTokensOutcome;
    revoke_token RevokeTokenArgs => RevokeTokenOutcome;
    list_workspaces ListWorkspacesArgs => ListWorkspacesOutcome;
    show_workspace ShowWorkspaceArgs => WorkspaceDescription;
    create_workspace CreateWorkspaceArgs => WorkspaceDescription;
    fork_workspace ForkWorkspaceArgs => WorkspaceDescription;
    destroy_workspace DestroyWorkspaceArgs => WorkspaceDescription;
    restore_workspace RestoreWorkspaceArgs => WorkspaceDescription;
    export_workspace ExportWorkspaceArgs => ExportWorkspaceOutcome;
    import_workspace ImportWorkspaceArgs => WorkspaceDescription;
    set_approver SetApproverSecretArgs => SetApproverSecretOutcome;
    show_approver ShowApproverArgs => ShowApproverOutcome;
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

/// Whether the caller lacks the right to every call of the operation.
pub(crate) fn is_always_refused(definition: &OperationDefinition, caller: &Caller) -> bool {
    match (definition.authority, caller.grants.authority) {
        (RequiredAuthority::Use, CallerAuthority::UseFiles | CallerAuthority::OwnerCommandLine) => false,
        (RequiredAuthority::Use, _) => true,
        (_, _) => !may_administer(caller),
    }
}

/// An agent never administers, whatever its token or its command line says.
fn may_administer(caller: &Caller) -> bool {
    caller.grants.authority != CallerAuthority::UseFiles && matches!(caller.principal, Principal::User(_))
}
