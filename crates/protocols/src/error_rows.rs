//! The table of error kinds: how each protocol, some dialects and the command line report an error kind. The rows of
//! the error table are generated from `definitions/errors.yaml`. A dialect may report an error kind with a different
//! word for some of its tools.

use axum::http::StatusCode;
use stead_engine::ErrorKind;

use crate::{
    acp::AcpErrorCode,
    dialect::{CommaErrorKind, KruxErrorType},
    rpc::errors,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorKindProtocolCodes {
    pub(crate) http: StatusCode,
    pub(crate) rpc: i64,
    exit: CommandExit,
    pub(crate) retry: RetryAdvice,
    pub(crate) comma: CommaErrorKind,
    pub(crate) krux: KruxErrorType,
    pub(crate) acp: AcpErrorCode,
}

/// The retry advice says when a failed call may succeed if it is repeated unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryAdvice {
    Never,
    Soon,
    AfterOthers,
    AfterApproval,
    Later,
    AfterRepair,
}

/// The exit status of the program, documented in `docs/reference/exit-codes.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandExit {
    Success,
    /// The command failed because of the state of the workspace or an error of the operating system.
    Failed,
    /// The command line or an argument is invalid.
    Usage,
    /// A rule of the policy or of the engine refused the call.
    Refused,
    /// The call was rejected because of a stale base version or a conflict.
    Stale,
    /// A verification of the journal found tampering.
    Tampered,
    /// The program exits with the exit code of the agent that `stead acp` ran.
    ChildStatus(u8),
}

impl CommandExit {
    /// The exit status of a command whose call failed with the error kind `kind`.
    pub fn for_error(kind: ErrorKind) -> Self {
        error_row(kind).exit
    }

    /// The exit code that the operating system receives from the program.
    pub fn code(self) -> u8 {
        match self {
            CommandExit::Success => 0,
            CommandExit::Failed => 1,
            CommandExit::Usage => 2,
            CommandExit::Refused => 3,
            CommandExit::Stale => 4,
            CommandExit::Tampered => 5,
            CommandExit::ChildStatus(code) => code,
        }
    }
}

macro_rules! error_rows {
    ($($kind:ident: $http:ident, $rpc:ident, $exit:ident, $retry:ident, $comma:ident, $krux:ident, $acp:ident;)+) => {
        pub(crate) fn error_row(kind: ErrorKind) -> ErrorKindProtocolCodes {
            match kind {
                $(ErrorKind::$kind => ErrorKindProtocolCodes {
                    http: StatusCode::$http,
                    rpc: errors::$rpc,
                    exit: CommandExit::$exit,
                    retry: RetryAdvice::$retry,
                    comma: CommaErrorKind::$comma,
                    krux: KruxErrorType::$krux,
                    acp: AcpErrorCode::$acp,
                },)+
            }
        }
    };
}

include!("generated/error_rows.rs");

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn error_kinds_have_the_words_and_codes_of_0_1_0() {
        let mut text = String::new();
        for kind in ErrorKind::ALL {
            let ErrorKindProtocolCodes { http, rpc, exit, retry, comma, krux, acp } = error_row(*kind);
            let (word, class, exit) = (kind.code(), kind.class(), exit.code());
            let comma = serde_json::to_value(comma).unwrap();
            writeln!(text, "{word} {class:?} {} {rpc} {exit} {retry:?} {comma} {krux:?} {acp:?}", http.as_u16())
                .unwrap();
        }
        testkit::pin::check(env!("CARGO_MANIFEST_DIR"), "errors.txt", &text);
    }
}
