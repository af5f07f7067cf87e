//! How much the server lets in: connections, as many as the system has room for, and calls of each principal.

use clap::Args;
use disk::Handles;
use faces::http::{
    PerAddress, Rate,
    limits::{CONNECTIONS_MAX, STRANGERS_PER_ADDRESS_MAX},
};

use crate::show;

/// Files that the server itself needs open, besides connections.
const OWN_FILES: u64 = 480;
/// Files of one open workspace.
const WORKSPACE_FILES: u64 = 32;

/// What an operator bounds.
#[derive(Debug, Args)]
pub(crate) struct BoundFlags {
    /// Calls a second that each principal may make in the long run; 0 is no bound
    #[arg(long, value_name = "CALLS", default_value_t = 0)]
    rate: u32,
    /// Calls that may come at once before the rate holds; 0 is twice the rate
    #[arg(long, value_name = "CALLS", default_value_t = 0)]
    rate_burst: u32,
    /// Connections at a time
    #[arg(long, value_name = "COUNT", default_value_t = CONNECTIONS_MAX)]
    connections: usize,
    /// Connections of one address over which no token was shown yet; 0 is no bound
    #[arg(long, value_name = "COUNT", default_value_t = STRANGERS_PER_ADDRESS_MAX)]
    strangers_per_address: usize,
}

/// Whether the address of a connection says whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addresses {
    /// It does.
    Tell,
    /// Everybody has the same: only this machine can connect, or a proxy does for all.
    Same,
}

impl BoundFlags {
    /// How often each principal may call.
    pub(crate) fn rate(&self) -> Option<Rate> {
        let burst = if self.rate_burst == 0 { self.rate.saturating_mul(2) } else { self.rate_burst };
        (self.rate > 0).then_some(Rate { per_second: self.rate, burst })
    }

    /// How many strangers each address may be.
    pub(crate) fn per_address(&self, addresses: Addresses) -> PerAddress {
        match (addresses, self.strangers_per_address) {
            (Addresses::Same, _) | (Addresses::Tell, 0) => PerAddress::Unbounded,
            (Addresses::Tell, most) => PerAddress::AtMost(most),
        }
    }

    /// How many connections there is room for beside so many open workspaces; says so when it is less than was wanted.
    pub(crate) fn connections(&self, workspaces: usize) -> usize {
        let allowed = match disk::allow_many_handles() {
            Handles::Unbounded => return self.connections,
            Handles::Bounded(allowed) => allowed,
        };
        let room = room(allowed, workspaces);
        if room < self.connections {
            show::remark(&format!(
                "the system lets this process have {allowed} files open (ulimit -Hn), so {room} connections at a time and not {}",
                self.connections
            ));
        }
        room.min(self.connections)
    }
}

/// Connections that fit beside the server's own files: at least half of all.
fn room(allowed: u64, workspaces: usize) -> usize {
    let own = OWN_FILES + WORKSPACE_FILES * workspaces as u64;
    let room = allowed.saturating_sub(own).max(allowed / 2).max(1);
    usize::try_from(room).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_the_servers_own_files() {
        assert_eq!([20_000, 1_024, 256, 0].map(|allowed| room(allowed, 1)), [19_488, 512, 128, 1]);
        assert_eq!(room(40_000, 512), 40_000 - 480 - 512 * 32);
    }
}
