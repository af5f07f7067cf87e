//! Names of the system's users, for displaying file owners. Reads only `/etc/passwd`: users of a directory service are
//! shown by number.

use std::{collections::HashMap, fs::File, io::Read};

const PASSWD_FILE: &str = "/etc/passwd";
/// The largest file that is read.
const PASSWD_BYTES_MAX: u64 = 1 << 20;

/// User names by number; empty if the file cannot be read.
pub fn user_names() -> HashMap<u32, String> {
    let mut text = String::new();
    let read = File::open(PASSWD_FILE).and_then(|file| file.take(PASSWD_BYTES_MAX).read_to_string(&mut text));
    match read {
        Ok(_) => parse_passwd(&text),
        Err(_) => HashMap::new(),
    }
}

/// The first name of a number counts.
fn parse_passwd(text: &str) -> HashMap<u32, String> {
    let mut users = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(number)) = (fields.next(), fields.nth(1).and_then(|field| field.parse().ok())) {
            users.entry(number).or_insert_with(|| name.to_owned());
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
