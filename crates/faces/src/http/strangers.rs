//! Connections that have not shown who they are, counted by the address they come from: one address cannot take every
//! connection before it has shown a token.
//!
//! A connection counts from the moment it is taken in until somebody was admitted over it, or it ends. Owns the counting;
//! never ends a connection and never looks at a token.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
};

use super::limits::STRANGERS_PER_ADDRESS_MAX;

/// The part of an IPv6 address that one customer of a network usually has; the rest is theirs to choose.
const NETWORK_BITS: u32 = 64;

/// How many connections of one address may have shown no token yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PerAddress {
    /// As many as is usual.
    #[default]
    Usual,
    /// As many as this.
    AtMost(usize),
    /// As many as there are connections: addresses say nothing, because only this machine can connect, or a proxy does for
    /// everybody.
    Unbounded,
}

/// The strangers of a server.
pub(super) struct Strangers {
    /// Nothing where they are not counted.
    most: Option<usize>,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// One that is counted, until this is dropped.
pub(super) struct Stranger {
    among: Arc<Strangers>,
    from: IpAddr,
}

/// What a connection has while it is a stranger's, and its requests can let go of.
#[derive(Clone, Default)]
pub(super) struct Unproven(Arc<Mutex<Option<Stranger>>>);

/// As many strangers have come from an address as may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crowd;

impl Strangers {
    pub(super) fn new(per_address: PerAddress) -> Arc<Self> {
        let most = match per_address {
            PerAddress::Usual => Some(STRANGERS_PER_ADDRESS_MAX),
            PerAddress::AtMost(most) => Some(most),
            PerAddress::Unbounded => None,
        };
        Arc::new(Self { most, counts: Mutex::default() })
    }

    /// Takes in one from this address.
    pub(super) fn meet(self: &Arc<Self>, from: IpAddr) -> Result<Unproven, Crowd> {
        let Some(most) = self.most else { return Ok(Unproven::default()) };
        let from = origin(from);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(from).or_default();
        if *count >= most {
            return Err(Crowd);
        }
        *count += 1;
        drop(counts);
        Ok(Unproven(Arc::new(Mutex::new(Some(Stranger { among: self.clone(), from })))))
    }
}

impl Unproven {
    /// Somebody was admitted over the connection.
    pub(super) fn proven(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut counts = self.among.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = counts.get_mut(&self.from) else { return };
        *count -= 1;
        if *count == 0 {
            counts.remove(&self.from);
        }
    }
}

/// What counts as one address.
fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let own = u128::MAX << (Ipv6Addr::BITS - NETWORK_BITS);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & own))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(strangers: &Arc<Strangers>, from: &str) -> Result<Unproven, Crowd> {
        strangers.meet(from.parse().unwrap())
    }

    #[test]
    fn each_address_has_its_own_number_and_who_is_known_is_not_counted() {
        let strangers = Strangers::new(PerAddress::AtMost(2));
        let first = meet(&strangers, "192.0.2.1").unwrap();
        let _second = meet(&strangers, "::ffff:192.0.2.1").unwrap();
        assert_eq!(meet(&strangers, "192.0.2.1").err(), Some(Crowd));
        let _other = meet(&strangers, "192.0.2.2").unwrap();
        first.proven();
        let third = meet(&strangers, "192.0.2.1").unwrap();
        drop(first);
        assert_eq!(meet(&strangers, "192.0.2.1").err(), Some(Crowd), "nobody is let go twice");
        drop(third);
        meet(&strangers, "192.0.2.1").unwrap();
    }

    #[test]
    fn a_network_of_many_addresses_is_one() {
        let strangers = Strangers::new(PerAddress::AtMost(1));
        let _first = meet(&strangers, "2001:db8::1").unwrap();
        assert_eq!(meet(&strangers, "2001:db8::ffff:1").err(), Some(Crowd));
        let _other = meet(&strangers, "2001:db8:0:1::1").unwrap();
    }

    #[test]
    fn nothing_is_kept_of_who_is_gone() {
        let strangers = Strangers::new(PerAddress::Usual);
        drop(meet(&strangers, "192.0.2.1").unwrap());
        assert!(strangers.counts.lock().unwrap().is_empty());
        let everybody = Strangers::new(PerAddress::Unbounded);
        let all: Vec<_> = (0..=STRANGERS_PER_ADDRESS_MAX).map(|_| meet(&everybody, "192.0.2.1")).collect();
        assert!(all.iter().all(Result::is_ok));
    }
}
