//! A directory against a model: two agents and a person make random calls, the same ones on a local workspace and on
//! one in memory, and both must answer alike and look alike. In between somebody else edits files, time passes, and the
//! local workspace is closed or abandoned and opened again. Deterministic from the seed that is printed.
//!
//! `STEAD_SEED=n` repeats one round; `STEAD_LONG=1` goes on for minutes.

mod calls;

use std::{
    collections::VecDeque,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use engine::{Call, Caller, Engine, Failure, Principal, Workspace};
use local::{Clock, LocalWorkspace, Moment};
use serde_json::{Map, Value};
use tempfile::TempDir;
use testkit::MemoryWorkspace;

use self::calls::{Asked, Dice, Known};
use crate::{
    faults::{
        rig_place,
        snapshot::{Seen, snapshot},
    },
    support::options,
};

/// Calls in one round.
const CALLS: usize = 250;
/// How long the ordinary run goes on, and the long one.
const ORDINARY: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(300);
/// Calls shown when something differs.
const SHOWN: usize = 12;

/// The model's time, for both.
struct Shared(AtomicI64);

impl Clock for Shared {
    fn now(&self) -> Moment {
        let wall_ms = self.0.load(Ordering::SeqCst);
        Moment { wall_ms, uptime_ms: wall_ms, boot: "boot".to_owned() }
    }
}

/// Both workspaces.
struct Pair {
    place: TempDir,
    clock: Arc<Shared>,
    local: Arc<LocalWorkspace>,
    real: Engine,
    memory: Arc<MemoryWorkspace>,
    model: Engine,
    callers: [Caller; 3],
    /// Abandoned without closing, as by a process that still runs.
    abandoned: Vec<Engine>,
    told: VecDeque<String>,
    seed: u64,
}

type Answered = Result<Map<String, Value>, Failure>;

impl Pair {
    fn new(seed: u64) -> Self {
        let place = rig_place();
        let memory = Arc::new(MemoryWorkspace::new());
        let clock = Arc::new(Shared(AtomicI64::new(memory.now_ms())));
        let local = open(&place, &clock);
        let caller = |principal| Caller::new(principal, "session", "test");
        Self {
            real: Engine::new(local.clone()),
            model: Engine::new(memory.clone()),
            place,
            clock,
            local,
            memory,
            callers: [
                caller(Principal::Agent("one".into())),
                caller(Principal::Agent("two".into())),
                caller(Principal::User("person".into())),
            ],
            abandoned: Vec::new(),
            told: VecDeque::new(),
            seed,
        }
    }

    fn tell(&mut self, what: String) {
        if self.told.len() == SHOWN {
            self.told.pop_front();
        }
        self.told.push_back(what);
    }

    fn context(&self) -> String {
        let told: Vec<&str> = self.told.iter().map(String::as_str).collect();
        format!("STEAD_SEED={}; the last calls:\n{}\n", self.seed, told.join("\n"))
    }

    /// Makes one call on both and compares the answers.
    fn call(&mut self, asked: &Asked, known: &mut Known) {
        let caller = &self.callers[asked.caller];
        let ask = |engine: &Engine, arguments: &Value| -> Answered {
            let Value::Object(arguments) = arguments.clone() else { panic!("arguments are an object") };
            let mut call = Call::new(caller, asked.operation, arguments);
            call.key = asked.key.as_deref();
            engine.call(&call).map(|answer| answer.json)
        };
        let model = ask(&self.model, &asked.model_arguments());
        let real = ask(&self.real, &asked.arguments);
        let shown = |answered: &Answered| match answered {
            Ok(answer) => Value::from(answer.clone()).to_string(),
            Err(failure) => format!("{failure}"),
        };
        self.tell(format!(
            "{} {} {} key {:?}\n  local: {:.300}\n  model: {:.300}",
            asked.caller,
            asked.operation,
            calls::shortened(&asked.arguments),
            asked.key,
            shown(&real),
            shown(&model)
        ));
        match (&real, &model) {
            (Ok(real), Ok(model)) => {
                let (mut one, mut other) = (Value::from(real.clone()), Value::from(model.clone()));
                calls::leave_out_what_differs(&mut one);
                calls::leave_out_what_differs(&mut other);
                assert_eq!(one, other, "{}", self.context());
                known.learn(real, model);
            }
            (Err(real), Err(model)) => {
                let kinds = (calls::comparable(real.kind), calls::comparable(model.kind));
                assert_eq!(kinds.0, kinds.1, "{}", self.context());
            }
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => panic!("only one of them did it: {}", self.context()),
        }
    }

    /// Somebody edits a file behind the back of both.
    fn edit(&mut self, path: &str, content: Option<&str>) {
        let target = self.place.path().join("ws").join(path);
        if self.memory.bytes(path).is_none() {
            return;
        }
        self.tell(format!("edit {path} {content:.40?}"));
        match content {
            Some(content) => {
                let mode = self.memory.mode(path);
                self.memory.put_file(path, content);
                if let Some(mode) = mode {
                    self.memory.set_mode(path, mode);
                }
                calls::overwrite(&target, content);
            }
            None => {
                self.memory.take(path);
                calls::remove(&target);
            }
        }
    }

    fn pass_time(&mut self, ms: i64) {
        self.tell(format!("{ms} ms pass"));
        self.memory.advance_ms(ms);
        self.clock.0.fetch_add(ms, Ordering::SeqCst);
    }

    fn reopen(&mut self, closing: Closing) {
        self.tell(format!("opened again: {closing:?}"));
        match closing {
            Closing::Closed => {
                self.local.close();
                self.abandoned.clear();
            }
            Closing::Abandoned => {
                // Its reads would be written later, behind entries of the next.
                self.local.flush().unwrap();
                self.abandoned.push(std::mem::replace(&mut self.real, Engine::new(self.memory.clone())));
            }
        }
        self.local = open(&self.place, &self.clock);
        self.real = Engine::new(self.local.clone());
        let recovery = self.local.recovery();
        assert_eq!((recovery.replayed, recovery.conflicts), (0, 0), "{}", self.context());
    }

    /// Both trees, journals, leases and trashes look alike.
    fn compare(&self) {
        let real: Vec<(String, String)> = snapshot(&self.place.path().join("ws"))
            .into_iter()
            .map(|(path, seen)| match seen {
                Seen::File(bytes, mode) => (path, format!("{mode:o} {}", engine::Version::of(&bytes))),
                Seen::Directory(mode) => (path, format!("{mode:o} directory")),
                Seen::Link(target) => (path, target),
            })
            .collect();
        let mut model: Vec<(String, String)> = self
            .memory
            .paths()
            .into_iter()
            .map(|path| {
                let mode = self.memory.mode(&path).unwrap_or(0);
                let shown = match self.memory.bytes(&path) {
                    Some(bytes) => format!("{mode:o} {}", engine::Version::of(&bytes)),
                    None => format!("{mode:o} directory"),
                };
                (path, shown)
            })
            .collect();
        model.sort();
        assert_eq!(real, model, "{}", self.context());
        let heads = (self.local.head().unwrap().number, self.memory.head().unwrap().number);
        assert_eq!(heads.0, heads.1, "{}", self.context());
        let root = [path::RelPath::root()];
        let mut leases = (self.local.leases(&root).unwrap(), self.memory.leases(&root).unwrap());
        leases.0.sort_by_key(|lease| lease.fence);
        leases.1.sort_by_key(|lease| lease.fence);
        assert_eq!(leases.0, leases.1, "{}", self.context());
        let trash = |workspace: &dyn Workspace| -> Vec<String> {
            let mut items: Vec<String> = workspace
                .trash(None)
                .unwrap()
                .iter()
                .map(|item| {
                    format!(
                        "{} {} {} {:?} {}",
                        item.entry, item.path, item.owner, item.tree, item.keep_until_ms
                    )
                })
                .collect();
            items.sort();
            items
        };
        assert_eq!(trash(&*self.local), trash(&*self.memory), "{}", self.context());
    }
}

#[derive(Debug, Clone, Copy)]
enum Closing {
    Closed,
    Abandoned,
}

fn open(place: &TempDir, clock: &Arc<Shared>) -> Arc<LocalWorkspace> {
    let mut options = options(place);
    options.clock = clock.clone();
    LocalWorkspace::open(options).unwrap()
}

fn round(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut pair = Pair::new(seed);
    let mut known = Known::default();
    for _ in 0..CALLS {
        match dice.below(40) {
            0 => {
                let content = dice.chance(3).then(|| calls::content(&mut dice));
                let path = calls::path(&mut dice);
                pair.edit(path, content.as_deref());
            }
            1 => pair.pass_time(i64::try_from(dice.below(200_000)).unwrap()),
            2 if dice.chance(2) => {
                let closing = if dice.chance(2) { Closing::Closed } else { Closing::Abandoned };
                pair.reopen(closing);
            }
            _ => {
                let asked = calls::ask(&mut dice, &known, |path| {
                    pair.memory.bytes(path).map(|bytes| engine::Version::of(&bytes).to_string())
                });
                pair.call(&asked, &mut known);
            }
        }
        if dice.chance(5) {
            pair.compare();
        }
    }
    pair.compare();
    let report = pair.local.verify_log(None, &[]).unwrap();
    assert_eq!(report.tamper, None, "{}", pair.context());
}

#[test]
fn a_directory_behaves_like_the_model() {
    if let Ok(seed) = std::env::var("STEAD_SEED") {
        return round(seed.parse().unwrap());
    }
    let long = std::env::var_os("STEAD_LONG").is_some();
    let end = Instant::now() + if long { LONG } else { ORDINARY };
    let mut seed = RandomState::new().hash_one("seed") >> 16;
    let mut rounds = 0;
    while Instant::now() < end {
        println!("STEAD_SEED={seed}");
        round(seed);
        seed += 1;
        rounds += 1;
    }
    println!("{rounds} rounds of {CALLS} calls");
}
