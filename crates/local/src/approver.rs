//! The approver secret, which a person enters to answer requests for approval. The approver secret distinguishes the
//! person from a program that runs with the same user id. Only an Argon2id hash of the approver secret is stored.
//! Attempts with a wrong secret are counted and recorded, and delay the next attempt.

use argon2::Argon2;
use rusqlite::params;
use serde::{Deserialize, Serialize};
use stead_engine::{AdministrationCall, Error, ErrorKind, NextStep};

use crate::{
    errors,
    limits::{APPROVER_RETRY_DELAY_MS_MAX, APPROVER_SECRET_BYTES_MAX, APPROVER_SECRET_CHARS_MIN},
    open::LocalWorkspace,
    store::{TransactionSyncPolicy, UnnumberedJournalEntry},
    token::random_bytes,
};

/// The number of wrong secrets in a row that cause no delay.
const FREE_ATTEMPTS: u32 = 2;

#[derive(Serialize, Deserialize)]
pub(crate) struct ApproverSecretHash {
    salt: [u8; 16],
    hash: [u8; 32],
}

#[derive(Default, Serialize, Deserialize)]
struct FailedApproverAttempts {
    #[serde(rename = "wrong")]
    failed_count: u32,
    #[serde(rename = "last_ms")]
    last_failed_ms: i64,
}

impl LocalWorkspace {
    /// Stores a new approver secret. If a secret is already set, the caller must check the old secret first.
    pub fn set_approver_secret(&self, secret: &str, call: &AdministrationCall<'_>) -> Result<(), Error> {
        if secret.chars().count() < APPROVER_SECRET_CHARS_MIN || secret.len() > APPROVER_SECRET_BYTES_MAX {
            return Err(Error::new(
                ErrorKind::BadRequest,
                format!("a secret needs at least {APPROVER_SECRET_CHARS_MIN} characters and at most {APPROVER_SECRET_BYTES_MAX} bytes"),
            )
            .with_next_step(NextStep::person_command("approvals setup", "set another secret")));
        }
        let salt: [u8; 16] = random_bytes()?;
        let stored = ApproverSecretHash { salt, hash: hash_secret(secret, &salt)? };
        let draft = self.pending_administration_entry(call.caller, call.operation, "{}".to_owned());
        let values = [("approver", text(&stored)?), ("approver_tries", text(&FailedApproverAttempts::default())?)];
        self.record_secret_change(draft, &values)
    }

    /// Checks the approver secret. A wrong approver secret is counted and recorded, and delays the next attempt.
    pub fn check_approver_secret(&self, secret: &str) -> Result<(), Error> {
        let Some(stored) = self.load_approver_secret()? else {
            return Err(Error::new(ErrorKind::PolicyDenied, "no approver secret is set")
                .with_next_step(NextStep::person_command("approvals setup", "set a secret")));
        };
        let now_ms = self.clock.now().wall_ms;
        let failed: FailedApproverAttempts = self.load_meta_value("approver_tries")?.unwrap_or_default();
        let wait_ms = failed.last_failed_ms.saturating_add(retry_delay_ms(failed.failed_count)).saturating_sub(now_ms);
        if (1..=APPROVER_RETRY_DELAY_MS_MAX).contains(&wait_ms) {
            return Err(Error::new(
                ErrorKind::RateLimited,
                format!(
                    "the approver secret was wrong {} times in a row, so the next attempt must wait",
                    failed.failed_count
                ),
            )
            .with_next_step(format!("wait {} s, then try again", wait_ms / 1000 + 1))
            .with_retry_after_ms(wait_ms));
        }
        // The attempt is counted before the secret is compared, so that killing the process does not hide the attempt.
        let counted =
            FailedApproverAttempts { failed_count: failed.failed_count.saturating_add(1), last_failed_ms: now_ms };
        let attempt = self.pending_system_entry("approver_try", "{}".to_owned());
        self.record_secret_change(attempt, &[("approver_tries", text(&counted)?)])?;
        if secret.len() > APPROVER_SECRET_BYTES_MAX
            || !constant_time_eq(&hash_secret(secret, &stored.salt)?, &stored.hash)
        {
            return Err(Error::new(ErrorKind::PolicyDenied, "wrong approver secret; nothing was approved or changed")
                .with_next_step("enter the secret that was set with `stead approvals setup`"));
        }
        let shown = self.pending_system_entry("approver_shown", "{}".to_owned());
        self.record_secret_change(shown, &[("approver_tries", text(&FailedApproverAttempts::default())?)])
    }

    pub(crate) fn load_approver_secret(&self) -> Result<Option<ApproverSecretHash>, Error> {
        self.load_meta_value("approver")
    }

    fn load_meta_value<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        let sql = "SELECT value FROM meta WHERE name = ?1";
        let found: Option<String> = self.store.query_optional(sql, params![name], |row| row.get(0))?;
        let malformed = |_| errors::damaged_database_error(&format!("its value {name} cannot be read"));
        found.map(|found| serde_json::from_str(&found).map_err(malformed)).transpose()
    }

    /// The journal entry about a new approver secret contains neither the hash of the secret nor the failed attempts.
    fn record_secret_change(
        &self,
        draft: UnnumberedJournalEntry,
        values: &[(&'static str, String)],
    ) -> Result<(), Error> {
        let values = values.to_vec();
        self.append_with_rows(draft, TransactionSyncPolicy::Now, move |transaction, _| {
            for (name, value) in &values {
                transaction.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", params![name, value])?;
            }
            Ok(())
        })
    }
}

fn retry_delay_ms(failed_count: u32) -> i64 {
    match failed_count.checked_sub(FREE_ATTEMPTS) {
        None | Some(0) => 0,
        Some(more) => 1000_i64.saturating_mul(1 << more.min(20)).min(APPROVER_RETRY_DELAY_MS_MAX),
    }
}

fn hash_secret(secret: &str, salt: &[u8]) -> Result<[u8; 32], Error> {
    let mut hash = [0; 32];
    Argon2::default()
        .hash_password_into(secret.as_bytes(), salt, &mut hash)
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot hash the approver secret: {error}")))?;
    Ok(hash)
}

pub(crate) fn constant_time_eq(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
}

fn text(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::new(ErrorKind::Io, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delay_grows_up_to_an_hour() {
        let waits: Vec<i64> = (0..6).map(retry_delay_ms).collect();
        assert_eq!(waits, [0, 0, 0, 2000, 4000, 8000]);
        assert_eq!(retry_delay_ms(u32::MAX), APPROVER_RETRY_DELAY_MS_MAX);
    }

    #[test]
    fn stored_secret_and_attempts_have_the_format_of_0_1_0() {
        let stored = text(&ApproverSecretHash { salt: [1; 16], hash: [2; 32] }).unwrap();
        let expected = format!("{{\"salt\":[{}],\"hash\":[{}]}}", ["1"; 16].join(","), ["2"; 32].join(","));
        assert_eq!(stored, expected);
        let tries = text(&FailedApproverAttempts { failed_count: 3, last_failed_ms: 4 }).unwrap();
        assert_eq!(tries, r#"{"wrong":3,"last_ms":4}"#);
    }

    #[test]
    fn hash_depends_on_secret_and_salt() {
        let hash = |secret, salt: u8| hash_secret(secret, &[salt; 16]).unwrap();
        assert!(constant_time_eq(&hash("a secret", 1), &hash("a secret", 1)));
        assert!(!constant_time_eq(&hash("a secret", 1), &hash("a secreT", 1)));
        assert!(!constant_time_eq(&hash("a secret", 1), &hash("a secret", 2)));
    }
}
