//! Limits per principal, over all its tokens and connections: requests, streams, running calls, memory and request
//! rate. A principal that reaches one of its limits does not affect other principals. The memory of all principals
//! together is also limited.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::errors::HttpRejection;
use crate::{
    call_executor::{ClientCallSlots, GlobalCallLimits},
    limits::{
        CACHED_CLIENTS_MAX, CALL_BYTES_MAX, CALL_BYTES_PER_CLIENT_MAX, CALLS_WAITING_TOTAL_MAX,
        REQUESTS_PER_CLIENT_MAX, RESERVED_BYTES_MAX, RESERVED_BYTES_PER_CLIENT_MAX, STREAMS_PER_CLIENT_MAX,
    },
};

/// The number of bytes that one permit of the memory semaphores represents.
const RESERVATION_UNIT_BYTES: usize = 1 << 10;

/// The limit on the request rate of one principal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// The number of calls per second that the rate limit allows permanently.
    pub per_second: u32,
    /// The number of calls that the rate limit allows at once after a pause.
    pub burst: u32,
}

struct TokenBucket {
    limit: RateLimit,
    tokens: Mutex<(f64, Instant)>,
}

impl TokenBucket {
    fn new(limit: RateLimit, now: Instant) -> Self {
        Self { limit, tokens: Mutex::new((f64::from(limit.burst), now)) }
    }

    fn take_token(&self, now: Instant) -> Result<(), Duration> {
        let mut tokens = self.refill(now);
        if tokens.0 >= 1.0 {
            tokens.0 -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - tokens.0) / f64::from(self.limit.per_second.max(1))))
    }

    /// Subtracts a number of calls from the tokens of the rate limit, which can become negative.
    fn charge_calls(&self, calls: usize, now: Instant) {
        self.refill(now).0 -= calls as f64;
    }

    fn refill(&self, now: Instant) -> std::sync::MutexGuard<'_, (f64, Instant)> {
        let mut tokens = crate::lock(&self.tokens);
        let since = now.saturating_duration_since(tokens.1).as_secs_f64();
        tokens.0 = (tokens.0 + since * f64::from(self.limit.per_second)).min(f64::from(self.limit.burst));
        tokens.1 = now;
        tokens
    }
}

/// Dropping a memory reservation releases the reserved memory.
#[derive(Debug)]
pub(super) struct MemoryReservation {
    client_permit: OwnedSemaphorePermit,
    global_permit: OwnedSemaphorePermit,
}

impl MemoryReservation {
    fn merge(&mut self, more: MemoryReservation) {
        self.client_permit.merge(more.client_permit);
        self.global_permit.merge(more.global_permit);
    }
}

pub(super) struct HttpClientLimiter {
    pub(super) requests: Arc<Semaphore>,
    pub(super) streams: Arc<Semaphore>,
    pub(super) call_slots: ClientCallSlots,
    client_bytes: Arc<Semaphore>,
    global_bytes: Arc<Semaphore>,
    rate_bucket: Option<TokenBucket>,
}

impl HttpClientLimiter {
    pub(super) fn is_idle(&self) -> bool {
        self.requests.available_permits() == REQUESTS_PER_CLIENT_MAX
            && self.streams.available_permits() == STREAMS_PER_CLIENT_MAX
    }

    pub(super) fn take_request(&self) -> Result<(), HttpRejection> {
        let Some(bucket) = &self.rate_bucket else { return Ok(()) };
        bucket.take_token(Instant::now()).map_err(|wait| {
            HttpRejection::too_many_requests(
                "this client sent too many requests in a short time; retry after the seconds in Retry-After",
            )
            .retry_after(wait)
        })
    }

    pub(super) async fn wait_for_rate(&self) {
        while let Some(bucket) = &self.rate_bucket
            && let Err(wait) = bucket.take_token(Instant::now())
        {
            tokio::time::sleep(wait).await;
        }
    }

    /// The rate limit counts the first call when it accepts a request, so only further calls are charged here.
    pub(super) fn charge_extra_calls(&self, calls: usize) {
        if let (Some(bucket), 2..) = (&self.rate_bucket, calls) {
            bucket.charge_calls(calls - 1, Instant::now());
        }
    }

    /// Reserved memory counts against the limit of the principal and against the limit of all principals together.
    pub(super) fn reserve_bytes(&self, bytes: usize) -> Result<MemoryReservation, HttpRejection> {
        let units = u32::try_from(bytes.div_ceil(RESERVATION_UNIT_BYTES)).unwrap_or(u32::MAX);
        let acquire = |semaphore: &Arc<Semaphore>, rejection: HttpRejection| {
            semaphore.clone().try_acquire_many_owned(units).map_err(|_| rejection)
        };
        let client_full = HttpRejection::too_many_requests(
            "the pending requests of this client use too much memory; retry when some of them are answered",
        );
        let client_permit = acquire(&self.client_bytes, client_full)?;
        let global_full =
            HttpRejection::unavailable("the pending requests of all clients use too much memory; retry later");
        Ok(MemoryReservation { client_permit, global_permit: acquire(&self.global_bytes, global_full)? })
    }

    pub(super) fn reserve_more_bytes(
        &self,
        reservation: &mut Option<MemoryReservation>,
        bytes: usize,
    ) -> Result<(), HttpRejection> {
        let more = self.reserve_bytes(bytes)?;
        match reservation {
            Some(reservation) => reservation.merge(more),
            None => *reservation = Some(more),
        }
        Ok(())
    }
}

pub(super) struct ClientLimitsByPrincipal {
    by_principal: Mutex<HashMap<(String, String), Arc<HttpClientLimiter>>>,
    global_bytes: Arc<Semaphore>,
    global_calls: GlobalCallLimits,
    rate_limit: Option<RateLimit>,
}

impl ClientLimitsByPrincipal {
    pub(super) fn new(rate_limit: Option<RateLimit>) -> Self {
        Self {
            by_principal: Mutex::default(),
            global_bytes: Arc::new(Semaphore::new(RESERVED_BYTES_MAX / RESERVATION_UNIT_BYTES)),
            global_calls: GlobalCallLimits::new(CALLS_WAITING_TOTAL_MAX, CALL_BYTES_MAX),
            rate_limit,
        }
    }

    pub(super) fn limits_for(&self, workspace: &str, principal: &str) -> Arc<HttpClientLimiter> {
        let mut by_principal = crate::lock(&self.by_principal);
        if by_principal.len() >= CACHED_CLIENTS_MAX {
            // If a principal has no client any more, the limits of this principal are dropped. Only the state of the
            // principal's rate limit is lost.
            by_principal.retain(|_, limits| Arc::strong_count(limits) > 1);
        }
        let new_limits = || {
            Arc::new(HttpClientLimiter {
                requests: Arc::new(Semaphore::new(REQUESTS_PER_CLIENT_MAX)),
                streams: Arc::new(Semaphore::new(STREAMS_PER_CLIENT_MAX)),
                call_slots: ClientCallSlots::for_client(&self.global_calls, CALL_BYTES_PER_CLIENT_MAX),
                client_bytes: Arc::new(Semaphore::new(RESERVED_BYTES_PER_CLIENT_MAX / RESERVATION_UNIT_BYTES)),
                global_bytes: self.global_bytes.clone(),
                rate_bucket: self.rate_limit.map(|rate| TokenBucket::new(rate, Instant::now())),
            })
        };
        by_principal.entry((workspace.to_owned(), principal.to_owned())).or_insert_with(new_limits).clone()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    #[test]
    fn rate_limit_allows_burst_then_refills() {
        let start = Instant::now();
        let bucket = TokenBucket::new(RateLimit { per_second: 2, burst: 3 }, start);
        for _ in 0..3 {
            assert_eq!(bucket.take_token(start), Ok(()));
        }
        assert_eq!(bucket.take_token(start), Err(Duration::from_millis(500)));
        assert_eq!(bucket.take_token(start + Duration::from_millis(500)), Ok(()));
        bucket.charge_calls(4, start + Duration::from_secs(60));
        assert_eq!(bucket.take_token(start + Duration::from_secs(60)), Err(Duration::from_secs(1)));
        assert_eq!(bucket.take_token(start + Duration::from_secs(61)), Ok(()));
    }

    #[test]
    fn limits_are_shared_by_tokens_of_one_principal() {
        let table = ClientLimitsByPrincipal::new(None);
        let (one, same, other) = (table.limits_for("w", "a"), table.limits_for("w", "a"), table.limits_for("w", "b"));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        assert!(!Arc::ptr_eq(&one, &table.limits_for("v", "a")));
        let reservation = one.reserve_bytes(RESERVED_BYTES_PER_CLIENT_MAX).unwrap();
        assert_eq!(same.reserve_bytes(1).unwrap_err().status, StatusCode::TOO_MANY_REQUESTS);
        other.reserve_bytes(RESERVED_BYTES_PER_CLIENT_MAX).unwrap();
        drop(reservation);
        same.reserve_bytes(1).unwrap();
        let clients = RESERVED_BYTES_MAX / RESERVED_BYTES_PER_CLIENT_MAX;
        let limits = |at: usize| table.limits_for("w", &at.to_string());
        let all: Vec<MemoryReservation> =
            (0..clients).map(|at| limits(at).reserve_bytes(RESERVED_BYTES_PER_CLIENT_MAX).unwrap()).collect();
        assert_eq!(other.reserve_bytes(1).unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
        drop(all);
    }
}
