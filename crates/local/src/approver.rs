//! The approver's secret: what tells a person from a program with the same user id. Kept as Argon2id in the store, never
//! in clear. Wrong tries are counted, recorded, and make the next one wait.

use argon2::Argon2;
use engine::{Failure, Kind};
use journal::Link;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use crate::{
    failure,
    group::{Outcome, Work},
    open::LocalWorkspace,
    store::{self, Sync},
};

/// Shortest secret.
const SECRET_CHARS_MIN: usize = 8;
/// Longest secret.
const SECRET_BYTES_MAX: usize = 1024;
/// Wrong tries that cost nothing.
const FREE_TRIES: u32 = 2;
/// Longest wait after a wrong try.
const WAIT_MS_MAX: i64 = 60 * 60 * 1000;

/// How the secret is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    salt: [u8; 16],
    hash: [u8; 32],
}

/// Wrong tries since the last right one.
#[derive(Default, Serialize, Deserialize)]
struct Tries {
    wrong: u32,
    last_ms: i64,
}

impl LocalWorkspace {
    /// Whether somebody has made a secret.
    pub fn has_approver(&self) -> Result<bool, Failure> {
        Ok(self.kept_secret()?.is_some())
    }

    /// Keeps a new secret. When there is one already, the caller has checked it.
    pub fn set_approver(&self, secret: &str) -> Result<(), Failure> {
        if secret.chars().count() < SECRET_CHARS_MIN || secret.len() > SECRET_BYTES_MAX {
            return Err(Failure::new(
                Kind::BadRequest,
                format!(
                    "a secret has {SECRET_CHARS_MIN} characters at least and {SECRET_BYTES_MAX} bytes at most"
                ),
            ));
        }
        let salt: [u8; 16] = disk::random_bytes().map_err(|error| failure::own(&error))?;
        let kept = Kept { salt, hash: hashed(secret, &salt)? };
        self.record_secret(
            "approver_set",
            &[("approver", text(&kept)?), ("approver_tries", text(&Tries::default())?)],
        )
    }

    /// Checks a secret. A wrong one is counted and recorded, and makes the next try wait.
    pub fn check_approver(&self, secret: &str) -> Result<(), Failure> {
        let Some(kept) = self.kept_secret()? else {
            return Err(Failure::new(Kind::PolicyDenied, "nobody has made an approver's secret yet")
                .hint("a person runs `stead approvals setup` once"));
        };
        let now_ms = self.clock.now().wall_ms;
        let tries: Tries = self.meta("approver_tries")?.unwrap_or_default();
        let wait_ms = tries.last_ms.saturating_add(wait_ms(tries.wrong)).saturating_sub(now_ms);
        if (1..=WAIT_MS_MAX).contains(&wait_ms) {
            return Err(Failure::new(Kind::RateLimited, format!("{} wrong secrets in a row", tries.wrong))
                .hint(format!("wait {} s, then try again", wait_ms / 1000 + 1))
                .fact("retry_after_ms", wait_ms));
        }
        // Counted before it is compared, so that a try that is killed half-way counts.
        let counted = Tries { wrong: tries.wrong.saturating_add(1), last_ms: now_ms };
        self.record_secret("approver_try", &[("approver_tries", text(&counted)?)])?;
        if secret.len() > SECRET_BYTES_MAX || !same(&hashed(secret, &kept.salt)?, &kept.hash) {
            return Err(Failure::new(Kind::PolicyDenied, "that is not the approver's secret"));
        }
        self.record_secret("approver_shown", &[("approver_tries", text(&Tries::default())?)])
    }

    fn kept_secret(&self) -> Result<Option<Kept>, Failure> {
        self.meta("approver")
    }

    fn meta<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Failure> {
        let found: Option<String> = self.store.look(|connection| {
            connection
                .prepare_cached("SELECT value FROM meta WHERE name = ?1")?
                .query_row(params![name], |row| row.get(0))
                .optional()
        })?;
        let broken = |_| Failure::new(Kind::AuditUnavailable, format!("the store holds a malformed {name}"));
        found.map(|found| serde_json::from_str(&found).map_err(broken)).transpose()
    }

    /// Writes what is kept of the secret, with an entry that says so and holds nothing of it.
    fn record_secret(&self, operation: &str, values: &[(&'static str, String)]) -> Result<(), Failure> {
        let mut draft = self.system_draft(operation, "{}".to_owned(), Link::None);
        let values = values.to_vec();
        let work: Work = Box::new(move |transaction, tip| {
            store::append(transaction, tip, &mut draft)?;
            for (name, value) in &values {
                transaction.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", params![name, value])?;
            }
            Ok(Outcome::Recorded(draft.entry.number, tip.hash))
        });
        self.group.submit(&self.store, self.durability, Sync::Now, work).map(|_| ())
    }
}

/// How long the next try waits.
fn wait_ms(wrong: u32) -> i64 {
    match wrong.checked_sub(FREE_TRIES) {
        None | Some(0) => 0,
        Some(more) => 1000_i64.saturating_mul(1 << more.min(20)).min(WAIT_MS_MAX),
    }
}

fn hashed(secret: &str, salt: &[u8]) -> Result<[u8; 32], Failure> {
    let mut hash = [0; 32];
    Argon2::default()
        .hash_password_into(secret.as_bytes(), salt, &mut hash)
        .map_err(|_| Failure::new(Kind::Io, "the secret cannot be hashed"))?;
    Ok(hash)
}

/// Compares without telling by its time where the first difference is.
pub(crate) fn same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

fn text(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new(Kind::Io, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_tries_wait_longer_and_longer_up_to_an_hour() {
        let waits: Vec<i64> = (0..6).map(wait_ms).collect();
        assert_eq!(waits, [0, 0, 0, 2000, 4000, 8000]);
        assert_eq!(wait_ms(u32::MAX), WAIT_MS_MAX);
    }

    #[test]
    fn a_hash_depends_on_the_secret_and_the_salt() {
        let hash = |secret, salt: u8| hashed(secret, &[salt; 16]).unwrap();
        assert!(same(&hash("a secret", 1), &hash("a secret", 1)));
        assert!(!same(&hash("a secret", 1), &hash("a secreT", 1)));
        assert!(!same(&hash("a secret", 1), &hash("a secret", 2)));
    }
}
