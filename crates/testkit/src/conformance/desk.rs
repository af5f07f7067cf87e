//! Sessions and alerts: recorded, kept, counted from the journal.

use engine::{DeskAsk, Desked, Failure, Kind, Severity, TallyOf};

use super::{Bench, Cases, Maker, fails};

pub(super) const CASES: Cases = &[
    ("a session is begun once and ended once", sessions),
    ("an alert is kept and answered once", alerts),
    ("what a session did is counted from the journal", tallies),
    ("how full it is can be told", usage),
];

fn keep(bench: &Bench, ask: &DeskAsk) -> Result<Desked, Failure> {
    bench.workspace.keep(ask, &bench.record("session", None)).map(|(kept, _)| kept)
}

fn sessions(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let before = bench.head();
    let Desked::Session(begun) = keep(&bench, &DeskAsk::Begin).unwrap() else { panic!("a session") };
    assert_eq!(bench.head(), before + 1, "it is recorded");
    assert_eq!((begun.first, begun.id.as_str()), (before + 1, &*format!("s{}", before + 1)));
    assert_eq!((begun.principal.as_str(), begun.ended_ms), ("agent:one", None));
    assert_eq!(bench.workspace.session(&begun.id).unwrap(), Some(begun.clone()));
    assert_eq!(bench.workspace.session("s0").unwrap(), None);
    let end = DeskAsk::End { session: begun.id.clone() };
    let Desked::Session(ended) = keep(&bench, &end).unwrap() else { panic!("a session") };
    assert!(ended.ended_ms.is_some());
    fails(keep(&bench, &end), Kind::NothingToDo);
}

fn alerts(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let ask = DeskAsk::Alert { severity: Severity::Warning, message: "näh\n\"help\"".to_owned() };
    let Desked::Alert(sent) = keep(&bench, &ask).unwrap() else { panic!("an alert") };
    assert_eq!(
        (sent.message.as_str(), sent.severity, &sent.answer),
        ("näh\n\"help\"", Severity::Warning, &None)
    );
    let Desked::Alert(later) = keep(&bench.and("two"), &ask).unwrap() else { panic!("an alert") };
    let ids = |from: Option<&str>| -> Vec<String> {
        let from = from.map(|name| engine::Principal::Agent(name.to_owned()));
        let found = bench.workspace.alerts(from.as_ref(), 10).unwrap();
        found.into_iter().map(|alert| alert.id).collect()
    };
    assert_eq!(ids(None), [later.id.clone(), sent.id.clone()], "newest first");
    assert_eq!(ids(Some("one")).join(" "), sent.id);
    let answer = DeskAsk::Answer { alert: sent.id.clone(), text: "done".to_owned() };
    let Desked::Alert(answered) = keep(&bench.and("two"), &answer).unwrap() else { panic!("an alert") };
    assert_eq!(answered.answer.as_ref().map(|answer| answer.text.as_str()), Some("done"));
    assert_eq!(bench.workspace.alert(&sent.id).unwrap(), Some(answered));
    fails(keep(&bench, &answer), Kind::Exists);
}

fn tallies(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let count = |session: &str, from_entry: u64| {
        let principal = engine::Principal::Agent("one".to_owned());
        let of = TallyOf { principal: &principal, session, from_entry };
        bench.workspace.tally(&of).unwrap()
    };
    let session = bench.record("read", None).caller.session.clone();
    assert_eq!(count(&session, 0).calls, 0);
    for _ in 0..3 {
        bench.workspace.note(&bench.record("read", None)).unwrap();
    }
    bench.workspace.note(&bench.and("two").record("read", None)).unwrap();
    let tally = count(&session, 0);
    assert_eq!((tally.calls, tally.first.map(|(number, _)| number)), (3, Some(1)));
    assert_eq!(count(&session, 3).calls, 1);
    assert_eq!(count("another", 0).calls, 0);
}

fn usage(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let usage = bench.workspace.usage().unwrap();
    assert!(usage.free_bytes <= usage.total_bytes && usage.total_bytes > 0);
    assert_eq!((usage.trash_items, usage.trash_bytes), (0, 0));
}
