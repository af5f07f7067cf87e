//! Tests of the right to administer: who has it, and when the approver's secret is needed as well.

use std::sync::Arc;

use serde_json::{Value, json};
use stead_engine::{
    AdministrationStore, Caller, CallerApproverStatus, CallerAuthority, Engine, Error, ErrorKind, OPERATIONS,
    Principal, RequiredAuthority, SecretTransport,
};
use testkit::engine_fixture::EngineFixture;
use testkit::native::{EngineJsonCalls, JsonCall};

/// A storage without any operation, so that every call that passes the check is unknown.
struct EmptyAdministrationStore {
    has_secret: bool,
}

impl AdministrationStore for EmptyAdministrationStore {
    fn has_approver_secret(&self) -> Result<bool, Error> {
        Ok(self.has_secret)
    }
}

fn caller(authority: CallerAuthority) -> Caller {
    let mut caller = Caller::new(Principal::User("ann".to_owned()), "s", "cli");
    caller.grants.authority = authority;
    caller
}

fn arguments_of(operation: &str) -> Value {
    match operation {
        "trash.purge" => json!({ "all": true }),
        "policy.apply" => json!({ "text": "" }),
        "token.create" => json!({ "principal": "agent:a" }),
        "token.rotate" | "token.revoke" => json!({ "id": "x" }),
        "workspace.fork" => json!({ "from": "x", "name": "y" }),
        "workspace.restore" => json!({ "workspace": "x" }),
        "workspace.list" => json!({}),
        name if name.starts_with("workspace.") => json!({ "name": "x" }),
        _ => json!({}),
    }
}

/// Calls an operation, and returns `None` if the right of the caller suffices.
fn refusal(has_secret: bool, secrets: SecretTransport, caller: &Caller, operation: &str) -> Option<ErrorKind> {
    let store = Arc::new(EmptyAdministrationStore { has_secret });
    let engine = EngineFixture::new().engine.with_administration(store);
    let arguments = arguments_of(operation).as_object().cloned().unwrap();
    let mut call = JsonCall::new(caller, operation, arguments);
    call.options.secrets = secrets;
    // `log.show` reads the journal itself, so it succeeds without a storage of administration.
    let kind = engine.call(&call).err()?.kind;
    (kind != ErrorKind::UnknownOperation).then_some(kind)
}

fn administration() -> impl Iterator<Item = (&'static str, RequiredAuthority)> {
    OPERATIONS.iter().map(|row| (row.name, row.authority)).filter(|(_, right)| *right != RequiredAuthority::Use)
}

#[test]
fn callers_without_the_right_cannot_administer() {
    let agent = |authority| Caller { principal: Principal::Agent("a".to_owned()), ..caller(authority) };
    for (operation, _) in administration() {
        for other in [
            caller(CallerAuthority::UseFiles),
            agent(CallerAuthority::OwnerCommandLine),
            agent(CallerAuthority::AdministrationToken),
            agent(CallerAuthority::AdministrationAndExportToken),
        ] {
            let refused = refusal(false, SecretTransport::CommandLine, &other, operation);
            assert_eq!(refused, Some(ErrorKind::NotOwner), "{operation} {other:?}");
        }
    }
}

#[test]
fn secret_is_needed_where_one_is_set() {
    let mut verified = caller(CallerAuthority::OwnerCommandLine);
    verified.grants.approver = CallerApproverStatus::SecretVerified;
    for (operation, right) in administration() {
        let owner = caller(CallerAuthority::OwnerCommandLine);
        let needs_secret = match right {
            RequiredAuthority::AdministerConfirmed | RequiredAuthority::Export | RequiredAuthority::IssueSecret => true,
            RequiredAuthority::Use | RequiredAuthority::Administer | RequiredAuthority::SetSecret => false,
        };
        let refused =
            |has_secret, caller: &Caller| refusal(has_secret, SecretTransport::CommandLine, caller, operation);
        assert_eq!(refused(false, &owner), None, "{operation}");
        assert_eq!(refused(true, &owner), needs_secret.then_some(ErrorKind::PolicyDenied), "{operation}");
        assert_eq!(refused(true, &verified), None, "{operation}");
    }
}

#[test]
fn administration_token_needs_no_secret_and_opens_no_file() {
    let (token, exporter) =
        (caller(CallerAuthority::AdministrationToken), caller(CallerAuthority::AdministrationAndExportToken));
    for (operation, right) in administration() {
        let needs_export = right == RequiredAuthority::Export;
        let refused = |caller: &Caller| refusal(true, SecretTransport::NewSecrets, caller, operation);
        assert_eq!(refused(&token), needs_export.then_some(ErrorKind::NotOwner), "{operation}");
        assert_eq!(refused(&exporter), None, "{operation}");
    }
    let fixture = EngineFixture::with_files(&[("a", "one\n")]);
    for (operation, arguments) in [("read", json!({ "path": "a" })), ("history", json!({})), ("usage", json!({}))] {
        let error = fixture.call_as(&exporter, operation, arguments).unwrap_err();
        assert_eq!(error.kind, ErrorKind::OutOfScope, "{operation}");
    }
}

#[test]
fn tools_that_administer_are_not_offered_without_the_right() {
    let engine: Engine = EngineFixture::new().engine;
    for (operation, _) in administration() {
        assert!(engine.is_tool_always_blocked(&caller(CallerAuthority::UseFiles), operation, None), "{operation}");
        assert!(!engine.is_tool_always_blocked(&caller(CallerAuthority::AdministrationToken), operation, None));
    }
}
