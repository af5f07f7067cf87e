//! Services of this machine that are not file access: the clock, random bytes, user names, the limit on open files and
//! thread priority. Only this module reads the wall clock; other crates get the time as a value.

use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit},
    time::{ClockId, clock_gettime},
};

use crate::{DiskError, DiskErrorKind};

const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";
const PASSWD_FILE: &str = "/etc/passwd";
const PASSWD_BYTES_MAX: u64 = 1 << 20;
const BACKGROUND_PRIORITY: i32 = 15;

/// A clock that reads the wall clock, the monotonic clock and the boot id of this machine.
#[derive(Debug, Clone)]
pub struct SystemClock {
    boot_id: String,
}

impl Default for SystemClock {
    /// Reads the boot id of the kernel. If the kernel has no boot id, the clock creates a random boot id.
    fn default() -> Self {
        let boot_id = std::fs::read_to_string(BOOT_ID_FILE).map(|text| text.trim().to_owned());
        let boot_id = boot_id.ok().filter(|id| !id.is_empty()).unwrap_or_else(|| {
            let bytes = random_bytes::<16>().unwrap_or_default();
            bytes.iter().map(|byte| format!("{byte:02x}")).collect()
        });
        Self { boot_id }
    }
}

impl SystemClock {
    /// The time of the wall clock in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// The time since the machine started in milliseconds, including the time in sleep. The monotonic time never
    /// decreases and is the same for every process.
    pub fn monotonic_ms(&self) -> u64 {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        seconds * 1000 + u64::try_from(time.tv_nsec / 1_000_000).unwrap_or_default()
    }

    /// The id of the current boot, which changes with every start of the machine.
    pub fn boot_id(&self) -> String {
        self.boot_id.clone()
    }
}

/// Lowers the priority of the current thread for background work, if the system permits it.
pub fn lower_thread_priority() {
    setpriority_process(None, BACKGROUND_PRIORITY).unwrap_or_default();
}

/// Raises the soft limit on open files to the hard limit and returns the limit that now applies; `None` means no limit.
/// The usual default limit on open files is too low for a server.
pub fn raise_open_file_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    if raised.is_ok() { maximum } else { current }
}

/// Returns cryptographically secure random bytes.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], DiskError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| DiskError {
        kind: DiskErrorKind::Io,
        step: "random",
        errno: error.raw_os_error(),
    })?;
    Ok(bytes)
}

/// Reads user names by user id from `/etc/passwd`; the result is empty if that file cannot be read. Users that are
/// defined only in a directory service such as LDAP are missing from the user names.
pub fn user_names() -> HashMap<u32, String> {
    let mut text = String::new();
    match File::open(PASSWD_FILE).and_then(|file| file.take(PASSWD_BYTES_MAX).read_to_string(&mut text)) {
        Ok(_) => parse_passwd(&text),
        Err(_) => HashMap::new(),
    }
}

/// If several users have the same user id, the first name is used.
fn parse_passwd(text: &str) -> HashMap<u32, String> {
    let mut users = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(uid)) = (fields.next(), fields.nth(1).and_then(|field| field.parse().ok())) {
            users.entry(uid).or_insert_with(|| name.to_owned());
        }
    }
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_name_of_a_uid_wins_and_malformed_lines_are_skipped() {
        let users =
            parse_passwd("root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/:\nada:x:1000:1000::/srv/ada:\nbroken\na:b:c\n");
        assert_eq!(users.get(&0).map(String::as_str), Some("root"));
        assert_eq!(users.get(&1000).map(String::as_str), Some("ada"));
        assert_eq!(users.len(), 2);
    }
}
