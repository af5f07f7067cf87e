//! Conformance tests of access tokens and session tickets.

use stead_engine::{CallerAccessMode, Error, ErrorKind, Grants, JournalEntryQuery, Principal};
use stead_local::{AccessTokenRecord, CreateTokenRequest, SessionTicketRecord, TOKEN_PREFIX};

use super::{
    ConformanceWorkspaceFactory, TestClockChange, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest,
    assert_fails, journal, rel_path,
};

/// The access tokens and session tickets of a workspace.
pub trait ConformanceTokenStore {
    /// Creates an access token, and returns its record and its secret text.
    fn create_token(&self, request: &CreateTokenRequest) -> Result<(AccessTokenRecord, String), Error>;

    /// Replaces an access token, which expires after `overlap_ms` milliseconds, by a new one.
    fn rotate_token(&self, id: &str, overlap_ms: i64) -> Result<(AccessTokenRecord, String), Error>;

    /// Revokes an access token immediately.
    fn revoke_token(&self, id: &str) -> Result<AccessTokenRecord, Error>;

    /// All access tokens, newest first.
    fn list_tokens(&self) -> Result<Vec<AccessTokenRecord>, Error>;

    /// The access token with this id.
    fn load_token(&self, id: &str) -> Result<Option<AccessTokenRecord>, Error>;

    /// The valid access token with this text.
    fn authenticate_token(&self, text: &str) -> Result<Option<AccessTokenRecord>, Error>;

    /// Creates a session ticket and returns its secret text.
    fn create_session_ticket(&self, principal: &Principal) -> Result<String, Error>;

    /// Binds a session ticket to a session.
    fn bind_session_ticket(&self, ticket: &str, session: &str) -> Result<(), Error>;

    /// The session ticket with this text.
    fn load_session_ticket(&self, ticket: &str) -> Result<Option<SessionTicketRecord>, Error>;
}

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("a token has the principal and the grants of its request", token_has_its_grants),
    ("only the whole text of a token authenticates", only_whole_token_authenticates),
    ("a token expires in time", token_expires),
    ("a revoked token stays revoked", revoked_token_stays_revoked),
    ("a rotated token is valid until its overlap ends", rotated_token_overlaps),
    ("tokens are recorded without their secret", tokens_are_recorded_without_secret),
    ("tokens and tickets survive a restart", tokens_survive_reopening),
    ("a ticket is bound to one session", ticket_is_bound_once),
];

fn token_request(label: &str) -> CreateTokenRequest {
    let grants = Grants { writable: vec![rel_path("d")], ..Grants::default() };
    CreateTokenRequest { principal: agent(), grants, expires_ms: None, label: label.to_owned() }
}

fn agent() -> Principal {
    Principal::Agent("one".to_owned())
}

fn is_valid(tokens: &dyn ConformanceTokenStore, text: &str) -> bool {
    tokens.authenticate_token(text).unwrap().is_some()
}

fn token_has_its_grants(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let tokens = factory.access_tokens();
    let (first, text) = tokens.create_token(&token_request("first")).unwrap();
    assert_eq!((first.principal.as_str(), first.label.as_str()), ("agent:one", "first"));
    assert_eq!((first.created_ms, first.expires_ms), (fixture.workspace.now_ms(), None));
    assert_eq!(first.grants().unwrap().writable, [rel_path("d")]);
    assert_eq!(tokens.load_token(&first.id).unwrap().as_ref(), Some(&first));
    assert_eq!(tokens.authenticate_token(&text).unwrap().as_ref(), Some(&first));
    factory.change_clock(TestClockChange::Advance(1));
    let grants = Grants { access: CallerAccessMode::ReadOnly, ..Grants::default() };
    let (second, _) = tokens.create_token(&CreateTokenRequest { grants, ..token_request("second") }).unwrap();
    assert_eq!(second.grants().unwrap().access, CallerAccessMode::ReadOnly);
    assert_eq!(first.grants().unwrap().access, CallerAccessMode::ReadWrite);
    assert_eq!(tokens.list_tokens().unwrap(), [second, first], "newest first");
    assert_eq!(tokens.load_token("none").unwrap(), None);
    let too_long = token_request(&"x".repeat(101));
    assert_fails(tokens.create_token(&too_long), ErrorKind::TooLarge);
}

fn only_whole_token_authenticates(factory: &dyn ConformanceWorkspaceFactory) {
    let _fixture = WorkspaceUnderConformanceTest::new(factory);
    let tokens = factory.access_tokens();
    let (first, text) = tokens.create_token(&token_request("first")).unwrap();
    let (second, _) = tokens.create_token(&token_request("second")).unwrap();
    assert!(is_valid(&*tokens, &text) && text.starts_with(TOKEN_PREFIX));
    let of_second = text.replace(&first.id, &second.id);
    for wrong in ["", "stead", TOKEN_PREFIX, &text[..text.len() - 1], &format!("{text}0"), &first.id, &of_second] {
        assert!(!is_valid(&*tokens, wrong), "{wrong}");
    }
}

fn token_expires(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let tokens = factory.access_tokens();
    let expires_ms = Some(fixture.workspace.now_ms() + 1_000);
    let (token, text) = tokens.create_token(&CreateTokenRequest { expires_ms, ..token_request("t") }).unwrap();
    factory.change_clock(TestClockChange::Advance(999));
    assert!(is_valid(&*tokens, &text));
    factory.change_clock(TestClockChange::Advance(1));
    assert!(!is_valid(&*tokens, &text));
    assert_fails(tokens.rotate_token(&token.id, 1_000), ErrorKind::Expired);
    assert_eq!(tokens.list_tokens().unwrap(), [token], "an expired token is still listed");
}

fn revoked_token_stays_revoked(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let tokens = factory.access_tokens();
    let (token, text) = tokens.create_token(&token_request("t")).unwrap();
    let revoked = tokens.revoke_token(&token.id).unwrap();
    assert_eq!(revoked.expires_ms, Some(fixture.workspace.now_ms()));
    assert!(!is_valid(&*tokens, &text));
    let head = fixture.head_number();
    factory.change_clock(TestClockChange::Advance(1));
    assert_eq!(tokens.revoke_token(&token.id).unwrap(), revoked);
    assert_eq!(fixture.head_number(), head + 1, "a second revocation is recorded and changes nothing");
    assert_fails(tokens.rotate_token(&token.id, 1_000), ErrorKind::Expired);
    assert_fails(tokens.revoke_token("none"), ErrorKind::NotFound);
    assert_fails(tokens.rotate_token("none", 0), ErrorKind::NotFound);
}

fn rotated_token_overlaps(factory: &dyn ConformanceWorkspaceFactory) {
    let _fixture = WorkspaceUnderConformanceTest::new(factory);
    let tokens = factory.access_tokens();
    let (old, old_text) = tokens.create_token(&token_request("t")).unwrap();
    let (new, new_text) = tokens.rotate_token(&old.id, 1_000).unwrap();
    assert_eq!((&new.principal, &new.label, new.expires_ms), (&old.principal, &old.label, None));
    assert_eq!(new.grants().unwrap().writable, old.grants().unwrap().writable);
    factory.change_clock(TestClockChange::Advance(999));
    assert!(is_valid(&*tokens, &old_text) && is_valid(&*tokens, &new_text));
    factory.change_clock(TestClockChange::Advance(1));
    assert!(!is_valid(&*tokens, &old_text) && is_valid(&*tokens, &new_text));
    let (_, newest_text) = tokens.rotate_token(&new.id, -5).unwrap();
    assert!(!is_valid(&*tokens, &new_text) && is_valid(&*tokens, &newest_text));
}

fn tokens_are_recorded_without_secret(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let tokens = factory.access_tokens();
    let (token, first) = tokens.create_token(&token_request("t")).unwrap();
    let (_, second) = tokens.rotate_token(&token.id, 0).unwrap();
    let (other, third) = tokens.create_token(&token_request("t")).unwrap();
    tokens.revoke_token(&other.id).unwrap();
    let query = JournalEntryQuery { principal: Some(Principal::System.to_string()), ..journal::unfiltered() };
    fixture.head_number();
    let entries = fixture.workspace.entries(&query).unwrap();
    let operations: Vec<&str> = entries.iter().map(|stored| stored.entry.operation.as_str()).collect();
    assert_eq!(operations, ["token.create", "token.rotate", "token.create", "token.revoke"]);
    for text in [first, second, third] {
        let (_, secret) = text.rsplit_once('_').unwrap();
        assert!(entries.iter().all(|stored| !stored.entry.arguments.contains(secret)));
    }
    journal::check_chain(&fixture);
}

fn tokens_survive_reopening(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let tokens = factory.access_tokens();
    let (token, text) = tokens.create_token(&token_request("t")).unwrap();
    let ticket = tokens.create_session_ticket(&agent()).unwrap();
    tokens.bind_session_ticket(&ticket, "s1").unwrap();
    drop(tokens);
    let _fixture = fixture.reopen(factory);
    let tokens = factory.access_tokens();
    assert_eq!(tokens.authenticate_token(&text).unwrap(), Some(token));
    let bound = SessionTicketRecord { principal: "agent:one".to_owned(), session: Some("s1".to_owned()) };
    assert_eq!(tokens.load_session_ticket(&ticket).unwrap(), Some(bound));
}

fn ticket_is_bound_once(factory: &dyn ConformanceWorkspaceFactory) {
    let _fixture = WorkspaceUnderConformanceTest::new(factory);
    let tokens = factory.access_tokens();
    let [first, second] = [(); 2].map(|()| tokens.create_session_ticket(&agent()).unwrap());
    assert_ne!(first, second);
    let session = |ticket: &str| tokens.load_session_ticket(ticket).unwrap().unwrap().session;
    assert_eq!(session(&first), None);
    tokens.bind_session_ticket(&first, "s1").unwrap();
    tokens.bind_session_ticket(&first, "s1").unwrap();
    assert_fails(tokens.bind_session_ticket(&first, "s2"), ErrorKind::NotFound);
    assert_fails(tokens.bind_session_ticket("none", "s1"), ErrorKind::NotFound);
    assert_eq!((session(&first), session(&second)), (Some("s1".to_owned()), None));
    assert_eq!(tokens.load_session_ticket("none").unwrap(), None);
}
