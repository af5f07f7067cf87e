//! What must hold after a case: that nothing leaked, and what the case itself says about the tree and the answer.

use std::{fs, io, os::unix::fs::PermissionsExt};

use serde_json::Value;

use super::{case::Checks, run::Fight, snapshot::kind_of, subject::Reply};

/// Nothing of the outside is in a reply, neither in its object nor in its text.
pub(crate) fn leaks(fight: &mut Fight<'_>, reply: &Reply) {
    let json = reply.json.to_string();
    for secret in fight.ground.secrets() {
        if json.contains(&secret) || reply.text.contains(&secret) {
            fight.harm(format!("the reply holds {secret:?}"));
        }
    }
}

/// What the case says must hold.
pub(crate) fn after(fight: &mut Fight<'_>, checks: &Checks, reply: &Reply) -> io::Result<()> {
    on_disk(fight, checks)?;
    for (field, wanted) in &checks.answer {
        let found = reply.json.get(field).unwrap_or(&Value::Null);
        if found != wanted {
            fight.harm(format!("the answer's {field} is {found}, not {wanted}"));
        }
    }
    let json = reply.json.to_string();
    for banned in &checks.lacks {
        let banned = fight.ground.fill(banned);
        if json.contains(&banned) || reply.text.contains(&banned) {
            fight.harm(format!("the answer holds {banned:?}: {}", reply.text));
        }
    }
    for wanted in checks.holds.iter().filter(|wanted| !json.contains(wanted.as_str())) {
        fight.harm(format!("the answer lacks {wanted:?}: {json}"));
    }
    for banned in checks.text_lacks.iter().filter(|banned| reply.text.contains(banned.as_str())) {
        fight.harm(format!("the text holds {banned:?}: {:?}", reply.text));
    }
    Ok(())
}

fn on_disk(fight: &mut Fight<'_>, checks: &Checks) -> io::Result<()> {
    let at = |fight: &Fight<'_>, name: &str| fight.ground.workspace.join(fight.ground.fill(name));
    for (name, wanted) in &checks.content {
        let place = at(fight, name);
        let regular = fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_file());
        let found = if regular { String::from_utf8(fs::read(&place)?).ok() } else { None };
        if found.as_ref() != Some(wanted) {
            fight.harm(format!("{name} holds {found:?}, not {wanted:?}"));
        }
    }
    for name in &checks.absent {
        if fs::symlink_metadata(at(fight, name)).is_ok() {
            fight.harm(format!("{name} is there"));
        }
    }
    for (name, wanted) in &checks.link {
        let found = fs::read_link(at(fight, name)).map(|target| target.display().to_string()).ok();
        if found != Some(fight.ground.fill(wanted)) {
            fight.harm(format!("{name} is no link to {wanted}"));
        }
    }
    for (name, wanted) in &checks.mode {
        let found = fs::symlink_metadata(at(fight, name))?.permissions().mode() & 0o7777;
        if found != *wanted {
            fight.harm(format!("{name} has the mode {found:o}, not {wanted:o}"));
        }
    }
    for (name, wanted) in &checks.kind {
        let found = fs::symlink_metadata(at(fight, name)).map_or("nothing", |meta| kind_of(&meta));
        if found != wanted {
            fight.harm(format!("{name} is {found}, not {wanted}"));
        }
    }
    Ok(())
}
