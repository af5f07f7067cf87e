//! Compares the local workspace with a model: two agents and a user make the same random calls on a local workspace and
//! on one in memory, and results and trees must be equal.
//!
//! The variable `STEAD_SEED=n` repeats one round with the seed that it printed; `STEAD_LONG=1` runs the test for
//! minutes.

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

use serde_json::{Map, Value};
use stead_engine::{Caller, Engine, Error, Principal, Workspace};
use stead_local::{Clock, ClockReading, LocalWorkspace};
use tempfile::TempDir;
use testkit::MemoryWorkspace;
use testkit::native::{EngineJsonCalls, JsonCall};

use self::calls::{ModelBasedTestKnownIds, RandomCall, RandomCallRng};
use crate::{
    faults::{
        rig_place,
        snapshot::{TestTreeSnapshotEntry, take_snapshot},
    },
    support::test_options,
};

const CALLS_PER_ROUND: usize = 250;
const ROUNDS_DEFAULT: Duration = Duration::from_secs(10);
const ROUNDS_LONG: Duration = Duration::from_secs(300);
const RECENT_CALLS_SHOWN: usize = 12;

struct SharedTestClock(AtomicI64);

impl Clock for SharedTestClock {
    fn now(&self) -> ClockReading {
        let wall_ms = self.0.load(Ordering::SeqCst);
        ClockReading { wall_ms, uptime_ms: wall_ms, boot_id: "boot".to_owned() }
    }
}

struct ModelPair {
    directory: TempDir,
    clock: Arc<SharedTestClock>,
    local: Arc<LocalWorkspace>,
    real: Engine,
    memory: Arc<MemoryWorkspace>,
    model: Engine,
    callers: [Caller; 3],
    /// The engines of workspaces that were opened again without being closed, as if their process still ran.
    abandoned: Vec<Engine>,
    recent_calls: VecDeque<String>,
    seed: u64,
}

type ModelBasedTestCallResult = Result<Map<String, Value>, Error>;

impl ModelPair {
    fn new(seed: u64) -> Self {
        let directory = rig_place();
        let memory = Arc::new(MemoryWorkspace::new());
        let clock = Arc::new(SharedTestClock(AtomicI64::new(memory.now_ms())));
        let local = open(&directory, &clock);
        let caller = |principal| Caller::new(principal, "session", "test");
        Self {
            real: Engine::new(local.clone()),
            model: Engine::new(memory.clone()),
            directory,
            clock,
            local,
            memory,
            callers: [
                caller(Principal::Agent("one".into())),
                caller(Principal::Agent("two".into())),
                caller(Principal::User("person".into())),
            ],
            abandoned: Vec::new(),
            recent_calls: VecDeque::new(),
            seed,
        }
    }

    fn remember_call(&mut self, what: String) {
        if self.recent_calls.len() == RECENT_CALLS_SHOWN {
            self.recent_calls.pop_front();
        }
        self.recent_calls.push_back(what);
    }

    fn context(&self) -> String {
        let calls: Vec<&str> = self.recent_calls.iter().map(String::as_str).collect();
        format!("STEAD_SEED={}; the last calls:\n{}\n", self.seed, calls.join("\n"))
    }

    fn call(&mut self, random_call: &RandomCall, known: &mut ModelBasedTestKnownIds) {
        let caller = &self.callers[random_call.caller];
        let ask = |engine: &Engine, arguments: &Value| -> ModelBasedTestCallResult {
            let Value::Object(arguments) = arguments.clone() else { panic!("arguments are an object") };
            let mut call = JsonCall::new(caller, random_call.operation, arguments);
            call.idempotency_key = random_call.key.as_deref();
            engine.call(&call).map(|answer| answer.json)
        };
        let model = ask(&self.model, &random_call.model_arguments());
        let real = ask(&self.real, &random_call.arguments);
        let format_result = |answered: &ModelBasedTestCallResult| match answered {
            Ok(answer) => Value::from(answer.clone()).to_string(),
            Err(error) => format!("{error}"),
        };
        self.remember_call(format!(
            "{} {} {} key {:?}\n  local: {:.300}\n  model: {:.300}",
            random_call.caller,
            random_call.operation,
            calls::shorten_arguments(&random_call.arguments),
            random_call.key,
            format_result(&real),
            format_result(&model)
        ));
        match (&real, &model) {
            (Ok(real), Ok(model)) => {
                let (mut one, mut other) = (Value::from(real.clone()), Value::from(model.clone()));
                calls::remove_incomparable_fields(&mut one);
                calls::remove_incomparable_fields(&mut other);
                assert_eq!(one, other, "{}", self.context());
                known.learn_from_answers(real, model);
            }
            (Err(real), Err(model)) => {
                let kinds = (calls::comparable_kind(real.kind), calls::comparable_kind(model.kind));
                assert_eq!(kinds.0, kinds.1, "{}", self.context());
            }
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => panic!("only one of them did it: {}", self.context()),
        }
    }

    fn edit_externally(&mut self, path: &str, content: Option<&str>) {
        let target = self.directory.path().join("ws").join(path);
        if self.memory.bytes(path).is_none() {
            return;
        }
        self.remember_call(format!("edit {path} {content:.40?}"));
        match content {
            Some(content) => {
                let mode = self.memory.mode(path);
                self.memory.put_file(path, content);
                if let Some(mode) = mode {
                    self.memory.set_mode(path, mode);
                }
                calls::overwrite_externally(&target, content);
            }
            None => {
                self.memory.remove_silently(path);
                calls::remove_externally(&target);
            }
        }
    }

    fn pass_time(&mut self, ms: i64) {
        self.remember_call(format!("{ms} ms pass"));
        self.memory.advance_ms(ms);
        self.clock.0.fetch_add(ms, Ordering::SeqCst);
    }

    fn reopen(&mut self, closing: ModelTestShutdownMode) {
        self.remember_call(format!("opened again: {closing:?}"));
        match closing {
            ModelTestShutdownMode::Closed => {
                self.local.close();
                self.abandoned.clear();
            }
            ModelTestShutdownMode::Abandoned => {
                // The deferred reads would be written after entries of the next workspace.
                self.local.flush().unwrap();
                self.abandoned.push(std::mem::replace(&mut self.real, Engine::new(self.memory.clone())));
            }
        }
        self.local = open(&self.directory, &self.clock);
        self.real = Engine::new(self.local.clone());
        let recovery = self.local.recovery();
        assert_eq!((recovery.redone_steps, recovery.conflicts), (0, 0), "{}", self.context());
    }

    fn compare(&self) {
        let real: Vec<(String, String)> = take_snapshot(&self.directory.path().join("ws"))
            .into_iter()
            .map(|(path, seen)| match seen {
                TestTreeSnapshotEntry::File(bytes, mode) => {
                    (path, format!("{mode:o} {}", stead_engine::Version::hash_bytes(&bytes)))
                }
                TestTreeSnapshotEntry::Directory(mode) => (path, format!("{mode:o} directory")),
                TestTreeSnapshotEntry::Link(target) => (path, target),
            })
            .collect();
        let mut model: Vec<(String, String)> = self
            .memory
            .all_paths()
            .into_iter()
            .map(|path| {
                let mode = self.memory.mode(&path).unwrap_or(0);
                let format_result = match self.memory.bytes(&path) {
                    Some(bytes) => format!("{mode:o} {}", stead_engine::Version::hash_bytes(&bytes)),
                    None => format!("{mode:o} directory"),
                };
                (path, format_result)
            })
            .collect();
        model.sort();
        assert_eq!(real, model, "{}", self.context());
        let heads = (self.local.head().unwrap().number, self.memory.head().unwrap().number);
        assert_eq!(heads.0, heads.1, "{}", self.context());
        let root = [stead_path::RelPath::root()];
        let (local, memory): (&dyn Workspace, &dyn Workspace) = (&*self.local, &*self.memory);
        let mut leases = (local.leases(&root).unwrap(), memory.leases(&root).unwrap());
        leases.0.sort_by_key(|lease| lease.fencing_token);
        leases.1.sort_by_key(|lease| lease.fencing_token);
        assert_eq!(leases.0, leases.1, "{}", self.context());
        let trash = |workspace: &dyn Workspace| -> Vec<String> {
            let mut items: Vec<String> = workspace
                .trash(None)
                .unwrap()
                .iter()
                .map(|item| {
                    format!("{} {} {} {:?} {}", item.entry, item.path, item.owner, item.summary, item.retain_until_ms)
                })
                .collect();
            items.sort();
            items
        };
        assert_eq!(trash(&*self.local), trash(&*self.memory), "{}", self.context());
    }
}

#[derive(Debug, Clone, Copy)]
enum ModelTestShutdownMode {
    Closed,
    Abandoned,
}

fn open(directory: &TempDir, clock: &Arc<SharedTestClock>) -> Arc<LocalWorkspace> {
    let mut options = test_options(directory);
    options.clock = clock.clone();
    LocalWorkspace::open(options).unwrap()
}

fn run_round(seed: u64) {
    let mut random = RandomCallRng::new(seed);
    let mut pair = ModelPair::new(seed);
    let mut known = ModelBasedTestKnownIds::default();
    for _ in 0..CALLS_PER_ROUND {
        match random.random_below(40) {
            0 => {
                let content = random.one_in(3).then(|| calls::random_content(&mut random));
                let path = calls::path(&mut random);
                pair.edit_externally(path, content.as_deref());
            }
            1 => pair.pass_time(i64::try_from(random.random_below(200_000)).unwrap()),
            2 if random.one_in(2) => {
                let closing =
                    if random.one_in(2) { ModelTestShutdownMode::Closed } else { ModelTestShutdownMode::Abandoned };
                pair.reopen(closing);
            }
            _ => {
                let asked = calls::random_call(&mut random, &known, |path| {
                    pair.memory.bytes(path).map(|bytes| stead_engine::Version::hash_bytes(&bytes).to_string())
                });
                pair.call(&asked, &mut known);
            }
        }
        if random.one_in(5) {
            pair.compare();
        }
    }
    pair.compare();
    let report = pair.local.verify_journal(None, &[]).unwrap();
    assert_eq!(report.integrity_error, None, "{}", pair.context());
}

#[test]
fn local_workspace_behaves_like_the_model() {
    if let Ok(seed) = std::env::var("STEAD_SEED") {
        return run_round(seed.parse().unwrap());
    }
    let long = std::env::var_os("STEAD_LONG").is_some();
    let end = Instant::now() + if long { ROUNDS_LONG } else { ROUNDS_DEFAULT };
    let mut seed = RandomState::new().hash_one("seed") >> 16;
    let mut rounds = 0;
    while Instant::now() < end {
        println!("STEAD_SEED={seed}");
        run_round(seed);
        seed += 1;
        rounds += 1;
    }
    println!("{rounds} rounds of {CALLS_PER_ROUND} calls");
}
