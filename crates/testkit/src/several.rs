//! Several equal processes on one tree: they overlap in every path, share keys, and one of them dies every now and then
//! and is replaced.
//!
//! Promises a verdict at the end: every acknowledged change is in the journal, the journal tells what is on the disk, a
//! key counted once, and every process saw all entries of all others, in order, through the feed.

mod member;

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver, Sender},
    time::Duration,
};

use engine::Stored;
use journal::{Decision, Link};

use crate::{
    crash::{agree, all_entries},
    rig::{Chance, Fallible, fast_place, heard},
    workload::look_at,
};
use member::{KEYED_FILES, Orders, Word};

pub use member::run_member;

/// Processes at a time.
const MEMBERS: usize = 4;
/// Words between two deaths, at most.
const WORDS_BETWEEN_DEATHS: u64 = 120;
/// How long nobody may say anything.
const SILENCE: Duration = Duration::from_secs(120);

/// How it went.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// Processes that were started.
    pub started: u64,
    /// Of those, how many were killed.
    pub killed: u64,
    /// Acknowledged changes.
    pub acknowledged: u64,
    /// Calls that failed because of the others.
    pub refused: u64,
    /// Keys that were used by more than one process.
    pub keys_shared: u64,
    /// Entries of others that came with the feed.
    pub seen_of_others: u64,
}

/// One running process.
struct Running {
    number: usize,
    child: Child,
    /// Closing it ends the process when it has made all its calls.
    input: Option<ChildStdin>,
}

/// What one process said, in order.
type Said = BTreeMap<usize, Vec<Word>>;

/// Runs the rig. `start` makes the command that runs [`run_member`].
pub fn run(deaths: u64, steps: u64, start: &dyn Fn() -> Command) -> Fallible<Figures> {
    let seed = Chance::seed()?;
    let place = fast_place()?;
    let workspace = place.path().join("ws");
    for name in ["stable/f0", "stable/sub/f1", "stable/sub/f2"] {
        let path = workspace.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&workspace))?;
        std::fs::write(path, name)?;
    }
    let orders = Orders {
        workspace,
        state: place.path().join("state"),
        name: String::new(),
        seed,
        steps,
        first_key: 0,
    };
    let mut rig = Rig { start, orders, chance: Chance::seeded(seed), said: Said::new(), running: Vec::new() };
    let figures = rig.run(deaths);
    // Whatever happened, nobody outlives us.
    for member in &mut rig.running {
        match member.child.kill() {
            Ok(()) | Err(_) => {}
        }
        member.child.wait()?;
    }
    figures.map_err(|breach| format!("seed {seed}: {breach}").into())
}

struct Rig<'a> {
    start: &'a dyn Fn() -> Command,
    orders: Orders,
    chance: Chance,
    said: Said,
    running: Vec<Running>,
}

impl Rig<'_> {
    fn run(&mut self, deaths: u64) -> Fallible<Figures> {
        let (sender, words) = mpsc::channel();
        let mut figures = Figures::default();
        for _ in 0..MEMBERS {
            self.begin(&sender, &mut figures)?;
        }
        while figures.killed < deaths {
            for _ in 0..self.chance.below(WORDS_BETWEEN_DEATHS) {
                self.hear(&words)?;
            }
            let at = usize::try_from(self.chance.below(MEMBERS as u64))?;
            let mut victim = self.running.swap_remove(at);
            victim.child.kill()?;
            victim.child.wait()?;
            figures.killed += 1;
            self.begin(&sender, &mut figures)?;
        }
        drop(sender);
        while !self.all_ended() {
            self.hear(&words)?;
        }
        for member in &mut self.running {
            drop(member.input.take());
            if !member.child.wait()?.success() {
                return Err(format!("process {} did not end well", member.number).into());
            }
        }
        // The last words of the dead.
        while let Ok((number, word)) = words.try_recv() {
            self.note(number, word)?;
        }
        judge(&self.orders, &self.said, &mut figures)?;
        Ok(figures)
    }

    fn begin(&mut self, sender: &Sender<(usize, Word)>, figures: &mut Figures) -> Fallible<()> {
        let number = usize::try_from(figures.started)?;
        figures.started += 1;
        let orders = Orders {
            name: format!("p{number}"),
            seed: self.chance.number(),
            // Keys overlap, whoever starts when.
            first_key: self.said.values().flatten().filter(|word| key_of(word).is_some()).count() as u64 / 2,
            ..self.orders.clone()
        };
        let mut command = (self.start)();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        input.write_all(format!("{}\n", serde_json::to_string(&orders)?).as_bytes())?;
        self.running.push(Running { number, child, input: Some(input) });
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(word) = heard(&line)
                    && sender.send((number, word)).is_err()
                {
                    return;
                }
            }
        });
        Ok(())
    }

    fn hear(&mut self, words: &Receiver<(usize, Word)>) -> Fallible<()> {
        let (number, word) = words.recv_timeout(SILENCE).map_err(|_| "nobody says anything any more")?;
        self.note(number, word)
    }

    fn note(&mut self, number: usize, word: Word) -> Fallible<()> {
        if let Word::Failed(text) = &word {
            return Err(format!("process {number}: {text}").into());
        }
        self.said.entry(number).or_default().push(word);
        Ok(())
    }

    fn all_ended(&self) -> bool {
        let ended = |number: usize| {
            self.said.get(&number).and_then(|words| words.last()).is_some_and(|word| *word == Word::End)
        };
        self.running.iter().all(|member| ended(member.number))
    }
}

fn key_of(word: &Word) -> Option<&str> {
    match word {
        Word::Done { key, .. } => key.as_deref(),
        Word::Saw(_) | Word::Refused | Word::Failed(_) | Word::End => None,
    }
}

fn judge(orders: &Orders, said: &Said, figures: &mut Figures) -> Fallible<()> {
    let workspace = orders.open()?;
    if workspace.recovery().conflicts > 0 {
        return Err(format!("recovery met conflicts: {:?}", workspace.recovery()).into());
    }
    if let Some(tamper) = workspace.verify_log(None, &[])?.tamper {
        return Err(format!("the journal does not verify: {tamper:?}").into());
    }
    let entries = all_entries(&*workspace)?;
    if let Some(amended) = entries.iter().find(|stored| matches!(stored.entry.link, Link::Amends(_))) {
        return Err(format!("an entry did not come true: {:?}", amended.entry).into());
    }
    let mut places = look_at(&orders.workspace)?.places;
    // What was there before the journal began.
    places.retain(|path, _| !path.starts_with("stable"));
    agree(&entries, &places)?;
    judge_acknowledged(&entries, said, figures)?;
    judge_keys(&entries, &orders.workspace, said, figures)?;
    judge_feeds(&entries, said, figures)
}

fn judge_acknowledged(entries: &[Stored], said: &Said, figures: &mut Figures) -> Fallible<()> {
    let known: BTreeMap<u64, &Stored> = entries.iter().map(|stored| (stored.entry.number, stored)).collect();
    for word in said.values().flatten() {
        match word {
            Word::Done { operation, entry, hash, .. } => {
                figures.acknowledged += 1;
                let fits = known.get(entry).is_some_and(|stored| {
                    stored.hash.to_string() == *hash && stored.entry.operation == *operation
                });
                if !fits {
                    return Err(format!("acknowledged and not in the journal: {word:?}").into());
                }
            }
            Word::Refused => figures.refused += 1,
            Word::Saw(_) | Word::Failed(_) | Word::End => {}
        }
    }
    Ok(())
}

fn judge_keys(entries: &[Stored], top: &Path, said: &Said, figures: &mut Figures) -> Fallible<()> {
    let mut made: BTreeMap<&str, u64> = BTreeMap::new();
    for stored in entries.iter().filter(|stored| !stored.entry.changes.is_empty()) {
        if let (Some(key), Decision::Allowed) = (&stored.entry.request, stored.entry.decision)
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
    for (number, words) in said {
        for word in words {
            if let (Some(key), Word::Done { entry, .. }) = (key_of(word), word) {
                users.entry(key).or_default().push(*number);
                if made.get(key) != Some(entry) {
                    return Err(format!("the key {key} was answered with another entry: {word:?}").into());
                }
            }
        }
    }
    figures.keys_shared = users.values().filter(|numbers| numbers.len() > 1).count() as u64;
    Ok(())
}

/// What a process saw is the journal's changes from the first to the last it saw, none left out, none twice.
fn judge_feeds(entries: &[Stored], said: &Said, figures: &mut Figures) -> Fallible<()> {
    let changes: Vec<&Stored> = entries.iter().filter(|stored| !stored.entry.changes.is_empty()).collect();
    for (number, words) in said {
        let mut seen: Vec<u64> = Vec::new();
        for word in words {
            if let Word::Saw(entries) = word {
                seen.extend(entries);
            }
        }
        // An entry with many changes may be spread over two pages.
        seen.dedup();
        let expected = changes.iter().take(seen.len()).map(|stored| stored.entry.number);
        if !expected.eq(seen.iter().copied()) {
            return Err(format!("process {number} saw {seen:?}").into());
        }
        let own = format!("p{number}");
        figures.seen_of_others +=
            changes.iter().take(seen.len()).filter(|stored| stored.entry.caller.session != own).count()
                as u64;
        let ended = words.last() == Some(&Word::End);
        if ended && !changes.iter().take(seen.len()).any(|stored| stored.entry.caller.session != own) {
            return Err(format!("process {number} saw nobody else").into());
        }
    }
    Ok(())
}
