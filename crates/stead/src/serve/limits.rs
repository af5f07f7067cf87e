//! Limits of the server: connections, within the system's limit on open files, and call rates per principal.

use clap::Args;
use stead_disk::OpenFileLimit;
use stead_protocols::http::{
    PerAddressLimit, RateLimit,
    limits::{CONNECTIONS_MAX, UNAUTHENTICATED_PER_ADDRESS_MAX},
};

use crate::output;

/// Open files that the server needs besides connections.
const SERVER_OPEN_FILES: u64 = 480;
/// Open files of one open workspace.
const OPEN_FILES_PER_WORKSPACE: u64 = 32;

#[derive(Debug, Args)]
pub(crate) struct LimitFlags {
    /// Maximum sustained calls per second and principal (0 = unlimited)
    #[arg(long, value_name = "CALLS", default_value_t = 0)]
    rate: u32,
    /// Calls allowed in a burst above the rate (0 = twice the rate)
    #[arg(long, value_name = "CALLS", default_value_t = 0)]
    rate_burst: u32,
    /// Maximum number of connections
    #[arg(long, value_name = "COUNT", default_value_t = CONNECTIONS_MAX)]
    connections: usize,
    /// Maximum unauthenticated connections per IP address (0 = unlimited)
    #[arg(long, value_name = "COUNT", default_value_t = UNAUTHENTICATED_PER_ADDRESS_MAX)]
    strangers_per_address: usize,
}

/// Whether the peer address of a connection identifies a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerAddressMeaning {
    PerClient,
    /// All clients have the same address: loopback, or a proxy's.
    Shared,
}

impl LimitFlags {
    pub(crate) fn rate(&self) -> Option<RateLimit> {
        let burst = if self.rate_burst == 0 { self.rate.saturating_mul(2) } else { self.rate_burst };
        (self.rate > 0).then_some(RateLimit { per_second: self.rate, burst })
    }

    /// The limit on unauthenticated connections.
    pub(crate) fn per_address_limit(&self, addresses: PeerAddressMeaning) -> PerAddressLimit {
        match (addresses, self.strangers_per_address) {
            (PeerAddressMeaning::Shared, _) | (PeerAddressMeaning::PerClient, 0) => PerAddressLimit::Unlimited,
            (PeerAddressMeaning::PerClient, most) => PerAddressLimit::AtMost(most),
        }
    }

    /// The connection limit beside this many open workspaces. Prints a note if it is lower than configured.
    pub(crate) fn connections(&self, workspaces: usize) -> usize {
        let allowed = match stead_disk::raise_open_file_limit() {
            OpenFileLimit::Unbounded => return self.connections,
            OpenFileLimit::Bounded(allowed) => allowed,
        };
        let room = connection_limit(allowed, workspaces);
        if room < self.connections {
            output::print_note(&format!(
                "limiting connections to {room} instead of {}: this process may have only {allowed} open files (ulimit -Hn)",
                self.connections
            ));
        }
        room.min(self.connections)
    }
}

/// Connections that fit beside the server's own files: at least half of the limit.
fn connection_limit(allowed: u64, workspaces: usize) -> usize {
    let own = SERVER_OPEN_FILES + OPEN_FILES_PER_WORKSPACE * workspaces as u64;
    let room = allowed.saturating_sub(own).max(allowed / 2).max(1);
    usize::try_from(room).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_limit_leaves_room_for_server_files() {
        assert_eq!([20_000, 1_024, 256, 0].map(|allowed| connection_limit(allowed, 1)), [19_488, 512, 128, 1]);
        assert_eq!(connection_limit(40_000, 512), 40_000 - 480 - 512 * 32);
    }
}
