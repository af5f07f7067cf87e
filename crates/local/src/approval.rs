//! Approvals in the store: questions to people, their answers, and the one use of a yes, which happens in the very
//! transaction that records the call.

use engine::{
    ALLOWED_BY_OPERATOR, Answered, Approval, ApprovalAnswer, ApprovalAsk, ApprovalFilter, ApprovalState,
    Committed, Failure, Kind, Record, Say, limits,
};
use journal::Link;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    clock::Moment,
    failure,
    group::{Outcome, Work},
    open::LocalWorkspace,
    store::{self, Sync, sql},
};

const COLUMNS: &str = "id, principal, session, operation, tool, call, plan, shown, why, policy, created_ms, \
                       expires_ms, created_uptime_ms, boot, state, answered_by, reason, used";

impl LocalWorkspace {
    pub(crate) fn approval_by_id(&self, id: &str) -> Result<Option<Approval>, Failure> {
        let now = self.clock.now();
        self.store.look(|connection| by_id(connection, id, &now))
    }

    pub(crate) fn find_approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, Failure> {
        let now = self.clock.now();
        self.store.look(|connection| fitting(connection, filter, &now))
    }

    pub(crate) fn keep_question(&self, ask: &ApprovalAsk) -> Result<Approval, Failure> {
        let id = crate::open::random_name("ap-").map_err(|error| failure::own(&error))?;
        let now = self.clock.now();
        self.store.transact(Sync::Now, self.durability, |transaction| {
            question(transaction, ask, &id, &now).map_err(|error| failure::store(&error))?
        })
    }

    pub(crate) fn keep_answer(
        &self,
        answer: &ApprovalAnswer,
        record: &Record<'_>,
    ) -> Result<(Approval, Committed), Failure> {
        let mut draft = self.draft(record, Vec::new(), Link::None, 0);
        let (now, by, answer) = (self.clock.now(), record.caller.principal.to_string(), answer.clone());
        let given = std::sync::Arc::new(std::sync::Mutex::new(None));
        let filled = std::sync::Arc::clone(&given);
        let work: Work = Box::new(move |transaction, tip| {
            let Some(standing) = by_id(transaction, &answer.id, &now)? else {
                return Ok(Outcome::Refused(Failure::new(Kind::NotFound, "there is no such approval")));
            };
            if standing.state != ApprovalState::Pending {
                return Ok(Outcome::Refused(settled(&standing)));
            }
            draft.entry.approval = Some(answer.id.clone());
            store::append(transaction, tip, &mut draft)?;
            let state = match answer.say {
                Say::Yes => ApprovalState::Approved,
                Say::No => ApprovalState::Denied,
            };
            transaction.execute(
                "UPDATE approvals SET state = ?2, answered_by = ?3, reason = ?4 WHERE id = ?1",
                params![answer.id, number_of(state), by, answer.reason],
            )?;
            *store::hold(&filled) = by_id(transaction, &answer.id, &now)?;
            Ok(crate::commit::recorded(&draft, tip))
        });
        let outcome = self.group.submit(&self.store, self.durability, Sync::Now, work)?;
        let approval = store::hold(&given).take();
        match (outcome, approval) {
            (Outcome::Recorded(number, hash), Some(approval)) => {
                self.announce();
                Ok((approval, Committed { number, hash, trash: Vec::new(), notices: Vec::new() }))
            }
            (Outcome::Refused(failure), _) => Err(failure),
            (Outcome::Recorded(..) | Outcome::Replayed(_), _) => {
                Err(Failure::new(Kind::AuditUnavailable, "the answer was not recorded"))
            }
        }
    }

    /// What the transaction of a call must find of its approval, and the moment it is judged at.
    pub(crate) fn ticket(&self, record: &Record<'_>) -> Option<Ticket> {
        let id = record.approval.clone().filter(|id| record.reason.is_none() && id != ALLOWED_BY_OPERATOR)?;
        Some(Ticket { id, principal: record.caller.principal.to_string(), now: self.clock.now() })
    }
}

/// An approval that a call means to use.
pub(crate) struct Ticket {
    id: String,
    principal: String,
    now: Moment,
}

impl Ticket {
    /// Refuses when it cannot be used any more. Nothing is written yet.
    pub(crate) fn check(&self, connection: &Connection) -> rusqlite::Result<Option<Failure>> {
        let standing = by_id(connection, &self.id, &self.now)?;
        let usable = standing.as_ref().is_some_and(|approval| {
            approval.state == ApprovalState::Approved && approval.asked.principal == self.principal
        });
        if usable {
            return Ok(None);
        }
        let shown = standing.map_or("gone", |approval| approval.state.word());
        let text = format!("{} is {shown}; it cannot be used any more", self.id);
        Ok(Some(Failure::new(Kind::ApprovalStale, text).hint("make the same call again to ask anew")))
    }

    /// It is used up by this entry.
    pub(crate) fn consume(&self, connection: &Connection, number: u64) -> rusqlite::Result<()> {
        connection.execute(
            "UPDATE approvals SET state = ?2, used = ?3 WHERE id = ?1",
            params![self.id, number_of(ApprovalState::Used), sql(number)],
        )?;
        Ok(())
    }
}

/// What was recorded did not come true: its approval can be used by another try.
pub(crate) fn give_back(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE approvals SET state = ?2, used = NULL WHERE used = ?1",
        params![number, number_of(ApprovalState::Approved)],
    )?;
    Ok(())
}

fn settled(standing: &Approval) -> Failure {
    Failure::new(Kind::Conflict, format!("{} is {} already", standing.id, standing.state.word()))
        .hint("see `stead approvals list`; a call that is made again asks anew")
}

fn by_id(connection: &Connection, id: &str, now: &Moment) -> rusqlite::Result<Option<Approval>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM approvals WHERE id = ?1"))?
        .query_row(params![id], |row| approval(row, now))
        .optional()
}

fn fitting(
    connection: &Connection,
    filter: &ApprovalFilter,
    now: &Moment,
) -> rusqlite::Result<Vec<Approval>> {
    let text = format!(
        "SELECT {COLUMNS} FROM approvals WHERE (?1 IS NULL OR principal = ?1) AND (?2 IS NULL OR call = ?2)
         ORDER BY rowid DESC"
    );
    let call = filter.call.map(|call| call.as_bytes().to_vec());
    let mut statement = connection.prepare_cached(&text)?;
    let mut found = Vec::new();
    for row in statement.query_map(params![filter.principal, call], |row| approval(row, now))? {
        let row = row?;
        if filter.state.is_none_or(|state| row.state == state) {
            found.push(row);
        }
        if found.len() >= filter.limit {
            break;
        }
    }
    Ok(found)
}

/// Keeps a question, unless it waits already.
fn question(
    connection: &Connection,
    ask: &ApprovalAsk,
    id: &str,
    now: &Moment,
) -> rusqlite::Result<Result<Approval, Failure>> {
    let own = ApprovalFilter {
        principal: Some(ask.principal.clone()),
        call: None,
        state: Some(ApprovalState::Pending),
        limit: limits::APPROVALS_PENDING_MAX + 1,
    };
    let waiting = fitting(connection, &own, now)?;
    if let Some(same) =
        waiting.iter().find(|other| other.asked.call == ask.call && other.asked.plan == ask.plan)
    {
        return Ok(Ok(same.clone()));
    }
    if waiting.iter().filter(|other| other.asked.call != ask.call).count() >= limits::APPROVALS_PENDING_MAX {
        return Ok(Err(Failure::new(Kind::TooMany, "too many of your calls wait for a person already")
            .hint("wait until some are answered; call approvals to see them")));
    }
    connection.execute(
        "UPDATE approvals SET state = ?3 WHERE principal = ?1 AND call = ?2 AND state IN (?4, ?5)",
        params![
            ask.principal,
            ask.call.as_bytes().as_slice(),
            number_of(ApprovalState::Stale),
            number_of(ApprovalState::Pending),
            number_of(ApprovalState::Approved),
        ],
    )?;
    connection.execute(
        &format!(
            "INSERT INTO approvals ({COLUMNS})
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, NULL, NULL, NULL)"
        ),
        params![
            id,
            ask.principal,
            ask.session,
            ask.operation,
            ask.tool,
            ask.call.as_bytes().as_slice(),
            ask.plan.as_bytes().as_slice(),
            ask.shown,
            ask.why,
            format!("{:016x}", ask.policy),
            now.wall_ms,
            now.wall_ms.saturating_add(ask.lasting_ms),
            now.uptime_ms,
            now.boot,
            number_of(ApprovalState::Pending),
        ],
    )?;
    let kept = by_id(connection, id, now)?;
    Ok(kept.ok_or_else(|| Failure::new(Kind::AuditUnavailable, "the question was not kept")))
}

fn approval(row: &Row<'_>, now: &Moment) -> rusqlite::Result<Approval> {
    let malformed = || rusqlite::Error::InvalidQuery;
    let digest = |column: &str| store::digest(row.get_ref(column)?.as_blob()?).ok_or_else(malformed);
    let (created_ms, expires_ms): (i64, i64) = (row.get("created_ms")?, row.get("expires_ms")?);
    let (uptime_ms, boot): (i64, String) = (row.get("created_uptime_ms")?, row.get("boot")?);
    let kept = state_of(row.get("state")?).ok_or_else(malformed)?;
    let policy: String = row.get("policy")?;
    let by: Option<String> = row.get("answered_by")?;
    let reason: Option<String> = row.get("reason")?;
    let over = is_over(now, created_ms, expires_ms, uptime_ms, &boot);
    let state = match kept {
        ApprovalState::Pending | ApprovalState::Approved | ApprovalState::Denied if over => {
            ApprovalState::Expired
        }
        ApprovalState::Pending
        | ApprovalState::Approved
        | ApprovalState::Denied
        | ApprovalState::Used
        | ApprovalState::Stale
        | ApprovalState::Expired => kept,
    };
    let asked = ApprovalAsk {
        principal: row.get("principal")?,
        session: row.get("session")?,
        operation: row.get("operation")?,
        tool: row.get("tool")?,
        call: digest("call")?,
        plan: digest("plan")?,
        shown: row.get("shown")?,
        why: row.get("why")?,
        policy: u64::from_str_radix(&policy, 16).map_err(|_| malformed())?,
        lasting_ms: expires_ms.saturating_sub(created_ms),
    };
    Ok(Approval {
        id: row.get("id")?,
        asked,
        created_ms,
        expires_ms,
        state,
        answered: by.map(|by| Answered { by, reason }),
        used: row.get::<_, Option<i64>>("used")?.map(i64::unsigned_abs),
    })
}

/// Whether a question's time is over. Within one start of the machine the clock that never jumps decides; after another
/// start the wall clock does, and one that was set back before the question ends it.
fn is_over(now: &Moment, created_ms: i64, expires_ms: i64, uptime_ms: i64, boot: &str) -> bool {
    if now.boot == boot {
        return now.uptime_ms.saturating_sub(uptime_ms) >= expires_ms.saturating_sub(created_ms);
    }
    now.wall_ms >= expires_ms || now.wall_ms < created_ms
}

fn number_of(state: ApprovalState) -> i64 {
    match state {
        ApprovalState::Pending => 0,
        ApprovalState::Approved => 1,
        ApprovalState::Denied => 2,
        ApprovalState::Used => 3,
        ApprovalState::Stale => 4,
        ApprovalState::Expired => 5,
    }
}

fn state_of(number: i64) -> Option<ApprovalState> {
    ApprovalState::ALL.iter().copied().find(|state| number_of(*state) == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_ends_by_the_clock_that_can_be_trusted() {
        let at = |wall_ms, uptime_ms, boot: &str| Moment { wall_ms, uptime_ms, boot: boot.to_owned() };
        // Asked at wall 1000, uptime 50, to stand for 100.
        let over = |now: &Moment| is_over(now, 1000, 1100, 50, "a");
        for (now, expected) in [
            (at(1050, 100, "a"), false),
            (at(9999, 100, "a"), false), // the wall clock jumped ahead
            (at(0, 149, "a"), false),    // it was set back
            (at(0, 150, "a"), true),     // and time went on
            (at(1050, 5, "b"), false),
            (at(1100, 5, "b"), true),
            (at(999, 5, "b"), true), // set back over a restart: nobody knows, so it ends
        ] {
            assert_eq!(over(&now), expected, "{now:?}");
        }
    }
}
