//! What one principal may take of the server at a time, however many tokens and connections it has: requests, streams, calls
//! that run, bytes that are held for it, and how often it may ask. Promises that whoever takes all of its own takes
//! nothing of another's, and that everybody's together is bounded.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    guard::Turned,
    limits::{
        BULK_BYTES_MAX, BULK_BYTES_PER_CLIENT_MAX, BYTES_HELD_MAX, BYTES_HELD_PER_CLIENT_MAX,
        CALLS_WAITING_TOTAL_MAX, CLIENTS_KEPT_MAX, REQUESTS_PER_CLIENT_MAX, STREAMS_PER_CLIENT_MAX,
    },
};
use crate::run::{Everybody, Slots};

/// Bytes are held in pieces of this size.
const PIECE_BYTES: usize = 1 << 10;

/// How often one principal may ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Calls a second, in the long run.
    pub per_second: u32,
    /// Calls that may come at once.
    pub burst: u32,
}

/// Calls that may be made now: they come back with time.
struct Bucket {
    rate: Rate,
    left: Mutex<(f64, Instant)>,
}

impl Bucket {
    fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, left: Mutex::new((f64::from(rate.burst), now)) }
    }

    /// Takes one call, or says how long until there is one.
    fn take(&self, now: Instant) -> Result<(), Duration> {
        let mut left = self.filled(now);
        if left.0 >= 1.0 {
            left.0 -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - left.0) / f64::from(self.rate.per_second.max(1))))
    }

    /// Takes calls that were made already: what was too much is waited for next time.
    fn charge(&self, calls: usize, now: Instant) {
        self.filled(now).0 -= calls as f64;
    }

    fn filled(&self, now: Instant) -> std::sync::MutexGuard<'_, (f64, Instant)> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_duration_since(left.1).as_secs_f64();
        left.0 = (left.0 + since * f64::from(self.rate.per_second)).min(f64::from(self.rate.burst));
        left.1 = now;
        left
    }
}

/// Bytes that are held, until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    own: OwnedSemaphorePermit,
    all: OwnedSemaphorePermit,
}

impl Held {
    fn merge(&mut self, more: Held) {
        self.own.merge(more.own);
        self.all.merge(more.all);
    }
}

/// What one principal may take.
pub(super) struct Allowance {
    pub(super) requests: Arc<Semaphore>,
    pub(super) streams: Arc<Semaphore>,
    pub(super) slots: Slots,
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
    bucket: Option<Bucket>,
}

impl Allowance {
    /// Whether nothing of it is taken.
    pub(super) fn is_idle(&self) -> bool {
        self.requests.available_permits() == REQUESTS_PER_CLIENT_MAX
            && self.streams.available_permits() == STREAMS_PER_CLIENT_MAX
    }

    /// Takes one request of the rate.
    pub(super) fn ask(&self) -> Result<(), Turned> {
        let Some(bucket) = &self.bucket else { return Ok(()) };
        bucket.take(Instant::now()).map_err(|wait| {
            Turned::new(StatusCode::TOO_MANY_REQUESTS, "too many calls in a short time").after(wait)
        })
    }

    /// How long until the next message of a conversation is taken.
    pub(super) async fn pace(&self) {
        while let Some(bucket) = &self.bucket
            && let Err(wait) = bucket.take(Instant::now())
        {
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes what a request made more calls than one.
    pub(super) fn charge_beyond_one(&self, calls: usize) {
        if let (Some(bucket), 2..) = (&self.bucket, calls) {
            bucket.charge(calls - 1, Instant::now());
        }
    }

    /// Holds bytes for it.
    pub(super) fn hold(&self, bytes: usize) -> Result<Held, Turned> {
        let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES)).unwrap_or(u32::MAX);
        let own = self.own.clone().try_acquire_many_owned(pieces).map_err(|_| {
            Turned::new(StatusCode::TOO_MANY_REQUESTS, "too many bytes of this client are under way")
        })?;
        let all = self.all.clone().try_acquire_many_owned(pieces).map_err(|_| {
            Turned::new(StatusCode::SERVICE_UNAVAILABLE, "too many bytes are under way; come back")
        })?;
        Ok(Held { own, all })
    }

    /// The same on top of what is held already.
    pub(super) fn hold_more(&self, held: &mut Option<Held>, bytes: usize) -> Result<(), Turned> {
        let more = self.hold(bytes)?;
        match held {
            Some(held) => held.merge(more),
            None => *held = Some(more),
        }
        Ok(())
    }
}

/// Everybody's.
pub(super) struct Allowances {
    known: Mutex<HashMap<(String, String), Arc<Allowance>>>,
    bytes: Arc<Semaphore>,
    everybody: Everybody,
    rate: Option<Rate>,
}

impl Allowances {
    pub(super) fn new(rate: Option<Rate>) -> Self {
        Self {
            known: Mutex::default(),
            bytes: Arc::new(Semaphore::new(BYTES_HELD_MAX / PIECE_BYTES)),
            everybody: Everybody::new(CALLS_WAITING_TOTAL_MAX, BULK_BYTES_MAX),
            rate,
        }
    }

    /// That of a principal in a workspace.
    pub(super) fn of(&self, workspace: &str, principal: &str) -> Arc<Allowance> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CLIENTS_KEPT_MAX {
            // Whoever nobody acts for has all of it; only what is left of a rate is forgotten.
            known.retain(|_, allowance| Arc::strong_count(allowance) > 1);
        }
        let make = || {
            Arc::new(Allowance {
                requests: Arc::new(Semaphore::new(REQUESTS_PER_CLIENT_MAX)),
                streams: Arc::new(Semaphore::new(STREAMS_PER_CLIENT_MAX)),
                slots: Slots::among(&self.everybody, BULK_BYTES_PER_CLIENT_MAX),
                own: Arc::new(Semaphore::new(BYTES_HELD_PER_CLIENT_MAX / PIECE_BYTES)),
                all: self.bytes.clone(),
                bucket: self.rate.map(|rate| Bucket::new(rate, Instant::now())),
            })
        };
        known.entry((workspace.to_owned(), principal.to_owned())).or_insert_with(make).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_lets_a_burst_in_and_then_what_comes_back() {
        let start = Instant::now();
        let bucket = Bucket::new(Rate { per_second: 2, burst: 3 }, start);
        for _ in 0..3 {
            assert_eq!(bucket.take(start), Ok(()));
        }
        assert_eq!(bucket.take(start), Err(Duration::from_millis(500)));
        assert_eq!(bucket.take(start + Duration::from_millis(500)), Ok(()));
        // A batch that was too large is waited for.
        bucket.charge(4, start + Duration::from_secs(60));
        assert_eq!(bucket.take(start + Duration::from_secs(60)), Err(Duration::from_secs(1)));
        assert_eq!(bucket.take(start + Duration::from_secs(61)), Ok(()));
    }

    #[test]
    fn one_allowance_for_every_token_of_a_principal_and_another_for_others() {
        let allowances = Allowances::new(None);
        let (one, same, other) = (allowances.of("w", "a"), allowances.of("w", "a"), allowances.of("w", "b"));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        assert!(!Arc::ptr_eq(&one, &allowances.of("v", "a")));
        let held = one.hold(BYTES_HELD_PER_CLIENT_MAX).unwrap();
        assert_eq!(same.hold(1).unwrap_err().status, StatusCode::TOO_MANY_REQUESTS);
        other.hold(BYTES_HELD_PER_CLIENT_MAX).unwrap();
        drop(held);
        same.hold(1).unwrap();
        // Everybody together is bounded as well.
        let clients = BYTES_HELD_MAX / BYTES_HELD_PER_CLIENT_MAX;
        let name = |at: usize| allowances.of("w", &at.to_string());
        let all: Vec<Held> =
            (0..clients).map(|at| name(at).hold(BYTES_HELD_PER_CLIENT_MAX).unwrap()).collect();
        assert_eq!(other.hold(1).unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
        drop(all);
    }
}
