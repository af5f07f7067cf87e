//! Checks the tree and the reply after an attack case.

use std::{fs, io, os::unix::fs::PermissionsExt};

use serde_json::Value;

use super::{case::PostAttackChecks, run::AttackRun, snapshot::file_kind_name, subject::AttackSubjectReply};

pub(crate) fn check_leaks(fight: &mut AttackRun<'_>, reply: &AttackSubjectReply) {
    let json = reply.json.to_string();
    for secret in fight.fixture.forbidden_texts() {
        if json.contains(&secret) || reply.text.contains(&secret) {
            fight.add_harm(format!("the reply holds {secret:?}"));
        }
    }
}

pub(crate) fn check_after(
    fight: &mut AttackRun<'_>,
    checks: &PostAttackChecks,
    reply: &AttackSubjectReply,
) -> io::Result<()> {
    check_disk(fight, checks)?;
    for (field, wanted) in &checks.answer {
        let found = reply.json.get(field).unwrap_or(&Value::Null);
        if found != wanted {
            fight.add_harm(format!("the answer's {field} is {found}, not {wanted}"));
        }
    }
    let json = reply.json.to_string();
    for banned in &checks.lacks {
        let banned = fight.fixture.substitute_places(banned);
        if json.contains(&banned) || reply.text.contains(&banned) {
            fight.add_harm(format!("the answer holds {banned:?}: {}", reply.text));
        }
    }
    for wanted in checks.holds.iter().filter(|wanted| !json.contains(wanted.as_str())) {
        fight.add_harm(format!("the answer lacks {wanted:?}: {json}"));
    }
    for banned in checks.text_lacks.iter().filter(|banned| reply.text.contains(banned.as_str())) {
        fight.add_harm(format!("the text holds {banned:?}: {:?}", reply.text));
    }
    Ok(())
}

fn check_disk(fight: &mut AttackRun<'_>, checks: &PostAttackChecks) -> io::Result<()> {
    let at = |fight: &AttackRun<'_>, name: &str| fight.fixture.workspace.join(fight.fixture.substitute_places(name));
    for (name, wanted) in &checks.content {
        let place = at(fight, name);
        let regular = fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_file());
        let found = if regular { String::from_utf8(fs::read(&place)?).ok() } else { None };
        if found.as_ref() != Some(wanted) {
            fight.add_harm(format!("{name} holds {found:?}, not {wanted:?}"));
        }
    }
    for name in &checks.absent {
        if fs::symlink_metadata(at(fight, name)).is_ok() {
            fight.add_harm(format!("{name} is there"));
        }
    }
    for (name, wanted) in &checks.link {
        let found = fs::read_link(at(fight, name)).map(|target| target.display().to_string()).ok();
        if found != Some(fight.fixture.substitute_places(wanted)) {
            fight.add_harm(format!("{name} is no link to {wanted}"));
        }
    }
    for (name, wanted) in &checks.mode {
        let found = fs::symlink_metadata(at(fight, name))?.permissions().mode() & 0o7777;
        if found != *wanted {
            fight.add_harm(format!("{name} has the mode {found:o}, not {wanted:o}"));
        }
    }
    for (name, wanted) in &checks.kind {
        let found = fs::symlink_metadata(at(fight, name)).map_or("nothing", |meta| file_kind_name(&meta));
        if found != wanted {
            fight.add_harm(format!("{name} is {found}, not {wanted}"));
        }
    }
    Ok(())
}
