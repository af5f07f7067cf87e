//! Several processes change the same paths of one workspace and share idempotency keys, while some are killed and
//! replaced. After the multi-process test, the journal must contain every acknowledged change and match the disk. Each
//! idempotency key must be applied once, and every process must have seen all journal entries in order.

mod member;

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver, Sender},
    time::Duration,
};

use stead_engine::StoredJournalEntry;
use stead_journal::{JournalEntryRelation, JournaledCallOutcomeStatus};

use crate::{
    crash::{all_entries, check_journal_matches_disk},
    stress::{Fallible, SeededRng, parse_child_line, scratch_directory},
    workload::walk_workspace,
};
use member::{KEYED_FILES, MultiProcessTestMemberInstructions, MultiProcessTestMemberMessage};

pub use member::run_member;

const MEMBER_COUNT: usize = 4;
const MESSAGES_BETWEEN_KILLS: u64 = 120;
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// The counts of a multi-process test.
#[derive(Debug, Clone, Copy, Default)]
pub struct MultiProcessTestOutcomeCounts {
    /// The number of processes that the multi-process test started.
    pub started: u64,
    /// The number of processes that the multi-process test killed.
    pub killed: u64,
    /// The number of changes that the processes acknowledged.
    pub acknowledged: u64,
    /// The number of calls that failed because other processes used the same paths.
    pub refused: u64,
    /// The number of idempotency keys that more than one process used.
    pub shared_keys: u64,
    /// The number of journal entries that processes received from each other through the change feed.
    pub entries_of_others: u64,
}

struct MultiProcessTestChild {
    number: usize,
    child: Child,
    /// Closing the standard input of a test process makes the process exit after its last call.
    input: Option<ChildStdin>,
}

type MessagesByTestProcess = BTreeMap<usize, Vec<MultiProcessTestMemberMessage>>;

/// Runs the multi-process test. The function `start` builds the command of a process that runs [`run_member`].
pub fn run_processes(deaths: u64, steps: u64, start: &dyn Fn() -> Command) -> Fallible<MultiProcessTestOutcomeCounts> {
    let seed = SeededRng::seed_of_run()?;
    let place = scratch_directory()?;
    let workspace = place.path().join("ws");
    for name in ["stable/f0", "stable/sub/f1", "stable/sub/f2"] {
        let path = workspace.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&workspace))?;
        std::fs::write(path, name)?;
    }
    let orders = MultiProcessTestMemberInstructions {
        workspace,
        state: place.path().join("state"),
        name: String::new(),
        seed,
        steps,
        first_key: 0,
    };
    let mut rig = MultiProcessTest {
        member_command: start,
        orders,
        rng: SeededRng::from_seed(seed),
        messages: MessagesByTestProcess::new(),
        processes: Vec::new(),
    };
    let figures = rig.run_to_end(deaths);
    // No child may outlive this process.
    for member in &mut rig.processes {
        match member.child.kill() {
            Ok(()) | Err(_) => {}
        }
        member.child.wait()?;
    }
    figures.map_err(|breach| format!("seed {seed}: {breach}").into())
}

struct MultiProcessTest<'a> {
    member_command: &'a dyn Fn() -> Command,
    orders: MultiProcessTestMemberInstructions,
    rng: SeededRng,
    messages: MessagesByTestProcess,
    processes: Vec<MultiProcessTestChild>,
}

impl MultiProcessTest<'_> {
    fn run_to_end(&mut self, deaths: u64) -> Fallible<MultiProcessTestOutcomeCounts> {
        let (sender, words) = mpsc::channel();
        let mut figures = MultiProcessTestOutcomeCounts::default();
        for _ in 0..MEMBER_COUNT {
            self.start_member(&sender, &mut figures)?;
        }
        while figures.killed < deaths {
            for _ in 0..self.rng.below(MESSAGES_BETWEEN_KILLS) {
                self.receive_message(&words)?;
            }
            let at = usize::try_from(self.rng.below(MEMBER_COUNT as u64))?;
            let mut victim = self.processes.swap_remove(at);
            victim.child.kill()?;
            victim.child.wait()?;
            figures.killed += 1;
            self.start_member(&sender, &mut figures)?;
        }
        drop(sender);
        while !self.have_all_ended() {
            self.receive_message(&words)?;
        }
        for member in &mut self.processes {
            drop(member.input.take());
            if !member.child.wait()?.success() {
                return Err(format!("process {} did not end well", member.number).into());
            }
        }
        while let Ok((number, message)) = words.try_recv() {
            self.record_message(number, message)?;
        }
        check_results(&self.orders, &self.messages, &mut figures)?;
        Ok(figures)
    }

    fn start_member(
        &mut self,
        sender: &Sender<(usize, MultiProcessTestMemberMessage)>,
        figures: &mut MultiProcessTestOutcomeCounts,
    ) -> Fallible<()> {
        let number = usize::try_from(figures.started)?;
        figures.started += 1;
        let orders = MultiProcessTestMemberInstructions {
            name: format!("p{number}"),
            seed: self.rng.next_u64(),
            // Every process gets idempotency keys that other processes use too, whenever it starts.
            first_key: self.messages.values().flatten().filter(|message| key_of_message(message).is_some()).count()
                as u64
                / 2,
            ..self.orders.clone()
        };
        let mut command = (self.member_command)();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        input.write_all(format!("{}\n", serde_json::to_string(&orders)?).as_bytes())?;
        self.processes.push(MultiProcessTestChild { number, child, input: Some(input) });
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(message) = parse_child_line(&line)
                    && sender.send((number, message)).is_err()
                {
                    return;
                }
            }
        });
        Ok(())
    }

    fn receive_message(&mut self, words: &Receiver<(usize, MultiProcessTestMemberMessage)>) -> Fallible<()> {
        let (number, message) = words.recv_timeout(SILENCE_MAX).map_err(|_| "nobody says anything any more")?;
        self.record_message(number, message)
    }

    fn record_message(&mut self, number: usize, message: MultiProcessTestMemberMessage) -> Fallible<()> {
        if let MultiProcessTestMemberMessage::Failed(text) = &message {
            return Err(format!("process {number}: {text}").into());
        }
        self.messages.entry(number).or_default().push(message);
        Ok(())
    }

    fn have_all_ended(&self) -> bool {
        let ended = |number: usize| {
            self.messages
                .get(&number)
                .and_then(|words| words.last())
                .is_some_and(|message| *message == MultiProcessTestMemberMessage::End)
        };
        self.processes.iter().all(|member| ended(member.number))
    }
}

fn key_of_message(message: &MultiProcessTestMemberMessage) -> Option<&str> {
    match message {
        MultiProcessTestMemberMessage::Done { key, .. } => key.as_deref(),
        MultiProcessTestMemberMessage::Saw(_)
        | MultiProcessTestMemberMessage::Refused
        | MultiProcessTestMemberMessage::Failed(_)
        | MultiProcessTestMemberMessage::End => None,
    }
}

fn check_results(
    orders: &MultiProcessTestMemberInstructions,
    messages: &MessagesByTestProcess,
    figures: &mut MultiProcessTestOutcomeCounts,
) -> Fallible<()> {
    let workspace = orders.open()?;
    if workspace.recovery().conflicts > 0 {
        return Err(format!("recovery met conflicts: {:?}", workspace.recovery()).into());
    }
    if let Some(tamper) = workspace.verify_journal(None, &[])?.integrity_error {
        return Err(format!("the journal does not verify: {tamper:?}").into());
    }
    let entries = all_entries(&*workspace)?;
    if let Some(amended) =
        entries.iter().find(|stored| matches!(stored.entry.relation, JournalEntryRelation::Amends(_)))
    {
        return Err(format!("an entry did not come true: {:?}", amended.entry).into());
    }
    let mut places = walk_workspace(&orders.workspace)?.paths;
    // The files below `stable` existed before the journal began.
    places.retain(|path, _| !path.starts_with("stable"));
    check_journal_matches_disk(&entries, &places)?;
    check_acknowledged(&entries, messages, figures)?;
    check_keys(&entries, &orders.workspace, messages, figures)?;
    check_feeds(&entries, messages, figures)
}

fn check_acknowledged(
    entries: &[StoredJournalEntry],
    messages: &MessagesByTestProcess,
    figures: &mut MultiProcessTestOutcomeCounts,
) -> Fallible<()> {
    let known: BTreeMap<u64, &StoredJournalEntry> =
        entries.iter().map(|stored| (stored.entry.number, stored)).collect();
    for message in messages.values().flatten() {
        match message {
            MultiProcessTestMemberMessage::Done { operation, entry, hash, .. } => {
                figures.acknowledged += 1;
                let fits = known
                    .get(entry)
                    .is_some_and(|stored| stored.hash.to_string() == *hash && stored.entry.operation == *operation);
                if !fits {
                    return Err(format!("acknowledged and not in the journal: {message:?}").into());
                }
            }
            MultiProcessTestMemberMessage::Refused => figures.refused += 1,
            MultiProcessTestMemberMessage::Saw(_)
            | MultiProcessTestMemberMessage::Failed(_)
            | MultiProcessTestMemberMessage::End => {}
        }
    }
    Ok(())
}

fn check_keys(
    entries: &[StoredJournalEntry],
    top: &Path,
    messages: &MessagesByTestProcess,
    figures: &mut MultiProcessTestOutcomeCounts,
) -> Fallible<()> {
    let mut made: BTreeMap<&str, u64> = BTreeMap::new();
    for stored in entries.iter().filter(|stored| !stored.entry.changes.is_empty()) {
        if let (Some(key), JournaledCallOutcomeStatus::Allowed) = (&stored.entry.request_id, stored.entry.decision)
            && made.insert(key, stored.entry.number).is_some()
        {
            return Err(format!("the key {key} changed something twice").into());
        }
    }
    let mut files = Vec::new();
    for number in 0..KEYED_FILES {
        files.push(std::fs::read_to_string(top.join(format!("keyed{number}"))).unwrap_or_default());
    }
    for (key, entry) in &made {
        let line = key.replacen('k', "key ", 1);
        let times: usize = files.iter().flat_map(|text| text.lines()).filter(|found| *found == line).count();
        if times != 1 {
            return Err(format!("{line} of entry {entry} is there {times} times").into());
        }
    }
    let mut users: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, words) in messages {
        for message in words {
            if let (Some(key), MultiProcessTestMemberMessage::Done { entry, .. }) = (key_of_message(message), message) {
                users.entry(key).or_default().push(*number);
                if made.get(key) != Some(entry) {
                    return Err(format!("the key {key} was answered with another entry: {message:?}").into());
                }
            }
        }
    }
    figures.shared_keys = users.values().filter(|numbers| numbers.len() > 1).count() as u64;
    Ok(())
}

fn check_feeds(
    entries: &[StoredJournalEntry],
    messages: &MessagesByTestProcess,
    figures: &mut MultiProcessTestOutcomeCounts,
) -> Fallible<()> {
    let changes: Vec<&StoredJournalEntry> = entries.iter().filter(|stored| !stored.entry.changes.is_empty()).collect();
    for (number, words) in messages {
        let mut seen: Vec<u64> = Vec::new();
        for message in words {
            if let MultiProcessTestMemberMessage::Saw(entries) = message {
                seen.extend(entries);
            }
        }
        // An entry with many changes may span two pages of the feed.
        seen.dedup();
        let expected = changes.iter().take(seen.len()).map(|stored| stored.entry.number);
        if !expected.eq(seen.iter().copied()) {
            return Err(format!("process {number} saw {seen:?}").into());
        }
        let own = format!("p{number}");
        figures.entries_of_others +=
            changes.iter().take(seen.len()).filter(|stored| stored.entry.caller.session != own).count() as u64;
        let ended = words.last() == Some(&MultiProcessTestMemberMessage::End);
        if ended && !changes.iter().take(seen.len()).any(|stored| stored.entry.caller.session != own) {
            return Err(format!("process {number} saw nobody else").into());
        }
    }
    Ok(())
}
