//! Limits unauthenticated connections per IP address, so that a client without a token cannot use up all connections. A
//! connection counts from the moment it is accepted until a client authenticates over it, or until it closes.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex},
};

use crate::limits::UNAUTHENTICATED_PER_ADDRESS_MAX;

/// The length of the IPv6 prefix that one customer usually gets. All addresses of one IPv6 network count as one
/// address, because a customer can use all of them.
const IPV6_NETWORK_BITS: u32 = 64;

/// The limit on unauthenticated connections per address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnauthenticatedPerAddressLimit {
    #[default]
    Default,
    AtMost(usize),
    /// The server does not limit unauthenticated connections per address, for example because it is behind a proxy.
    Unlimited,
}

pub(super) struct UnauthenticatedConnectionLimiter {
    /// Unauthenticated connections are not counted if the maximum per address is `None`.
    max_per_address: Option<usize>,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

pub(super) struct UnauthenticatedSlot {
    limit: Arc<UnauthenticatedConnectionLimiter>,
    address: IpAddr,
}

/// A connection counts as unauthenticated until a request on it is authenticated.
#[derive(Clone, Default)]
pub(super) struct UnauthenticatedConnectionPermit(Arc<Mutex<Option<UnauthenticatedSlot>>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyUnauthenticated;

impl UnauthenticatedConnectionLimiter {
    pub(super) fn new(per_address: UnauthenticatedPerAddressLimit) -> Arc<Self> {
        let max = match per_address {
            UnauthenticatedPerAddressLimit::Default => Some(UNAUTHENTICATED_PER_ADDRESS_MAX),
            UnauthenticatedPerAddressLimit::AtMost(max) => Some(max),
            UnauthenticatedPerAddressLimit::Unlimited => None,
        };
        Arc::new(Self { max_per_address: max, counts: Mutex::default() })
    }

    pub(super) fn register(
        self: &Arc<Self>,
        address: IpAddr,
    ) -> Result<UnauthenticatedConnectionPermit, TooManyUnauthenticated> {
        let Some(max) = self.max_per_address else { return Ok(UnauthenticatedConnectionPermit::default()) };
        let address = address_group(address);
        let mut counts = crate::lock(&self.counts);
        let count = counts.entry(address).or_default();
        if *count >= max {
            return Err(TooManyUnauthenticated);
        }
        *count += 1;
        drop(counts);
        let slot = UnauthenticatedSlot { limit: self.clone(), address };
        Ok(UnauthenticatedConnectionPermit(Arc::new(Mutex::new(Some(slot)))))
    }
}

impl UnauthenticatedConnectionPermit {
    pub(super) fn mark_authenticated(&self) {
        drop(crate::lock(&self.0).take());
    }
}

impl Drop for UnauthenticatedSlot {
    fn drop(&mut self) {
        let mut counts = crate::lock(&self.limit.counts);
        let Some(count) = counts.get_mut(&self.address) else { return };
        *count -= 1;
        if *count == 0 {
            counts.remove(&self.address);
        }
    }
}

/// An IPv4 connection counts under its address, and an IPv6 connection under its network prefix.
fn address_group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let mask = u128::MAX << (Ipv6Addr::BITS - IPV6_NETWORK_BITS);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register_from(
        limit: &Arc<UnauthenticatedConnectionLimiter>,
        from: &str,
    ) -> Result<UnauthenticatedConnectionPermit, TooManyUnauthenticated> {
        limit.register(from.parse().unwrap())
    }

    #[test]
    fn limit_is_per_address_and_ignores_authenticated() {
        let limit = UnauthenticatedConnectionLimiter::new(UnauthenticatedPerAddressLimit::AtMost(2));
        let first = register_from(&limit, "192.0.2.1").unwrap();
        let _second = register_from(&limit, "::ffff:192.0.2.1").unwrap();
        assert_eq!(register_from(&limit, "192.0.2.1").err(), Some(TooManyUnauthenticated));
        let _other = register_from(&limit, "192.0.2.2").unwrap();
        first.mark_authenticated();
        let third = register_from(&limit, "192.0.2.1").unwrap();
        drop(first);
        assert_eq!(
            register_from(&limit, "192.0.2.1").err(),
            Some(TooManyUnauthenticated),
            "a slot is released only once"
        );
        drop(third);
        register_from(&limit, "192.0.2.1").unwrap();
    }

    #[test]
    fn ipv6_network_counts_as_one_address() {
        let limit = UnauthenticatedConnectionLimiter::new(UnauthenticatedPerAddressLimit::AtMost(1));
        let _first = register_from(&limit, "2001:db8::1").unwrap();
        assert_eq!(register_from(&limit, "2001:db8::ffff:1").err(), Some(TooManyUnauthenticated));
        let _other = register_from(&limit, "2001:db8:0:1::1").unwrap();
    }

    #[test]
    fn closed_connections_are_not_counted() {
        let limit = UnauthenticatedConnectionLimiter::new(UnauthenticatedPerAddressLimit::Default);
        drop(register_from(&limit, "192.0.2.1").unwrap());
        assert!(limit.counts.lock().unwrap().is_empty());
        let unlimited = UnauthenticatedConnectionLimiter::new(UnauthenticatedPerAddressLimit::Unlimited);
        let all: Vec<_> =
            (0..=UNAUTHENTICATED_PER_ADDRESS_MAX).map(|_| register_from(&unlimited, "192.0.2.1")).collect();
        assert!(all.iter().all(Result::is_ok));
    }
}
