//! The names of the system's users, for whoever shows to whom a file belongs. Only what the usual file says: a name that
//! a directory service keeps is shown as its number.

use std::{collections::HashMap, fs::File, io::Read};

/// Where the system keeps them.
const USERS: &str = "/etc/passwd";
/// Largest such file that is read.
const USERS_BYTES_MAX: u64 = 1 << 20;

/// Names by number; none where the file cannot be read.
pub fn users() -> HashMap<u32, String> {
    let mut text = String::new();
    let read = File::open(USERS).and_then(|file| file.take(USERS_BYTES_MAX).read_to_string(&mut text));
    match read {
        Ok(_) => parse(&text),
        Err(_) => HashMap::new(),
    }
}

/// The first name of a number counts.
fn parse(text: &str) -> HashMap<u32, String> {
    let mut users = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(number)) =
            (fields.next(), fields.nth(1).and_then(|field| field.parse().ok()))
        {
            users.entry(number).or_insert_with(|| name.to_owned());
        }
    }
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_of_a_number_counts_and_nonsense_is_passed_over() {
        let users =
            parse("root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/:\nada:x:1000:1000::/srv/ada:\nbroken\na:b:c\n");
        assert_eq!(users.get(&0).map(String::as_str), Some("root"));
        assert_eq!(users.get(&1000).map(String::as_str), Some("ada"));
        assert_eq!(users.len(), 2);
    }
}
