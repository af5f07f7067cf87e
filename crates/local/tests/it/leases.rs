//! Leases that are taken and released while other callers write: a lease holds from the moment at which its holder gets
//! it, and changes of other paths never fail because of it.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use stead_engine::ErrorKind;
use testkit::engine_fixture::agent;

use crate::support::LocalFixture;

const WRITERS: usize = 16;
const LEASES: usize = 60;

#[test]
fn no_write_commits_while_another_caller_holds_a_lease() {
    let fixture = LocalFixture::new();
    fixture.write("held", "0");
    let done = AtomicBool::new(false);
    let (done, calls) = (&done, &*fixture);
    std::thread::scope(|scope| {
        for number in 0..WRITERS {
            scope.spawn(move || {
                let writer = agent(&format!("writer-{number}"));
                for round in 0.. {
                    if done.load(Ordering::Acquire) {
                        break;
                    }
                    let text = format!("{number} {round}\n");
                    let own = json!({ "path": format!("own-{number}"), "content": text });
                    calls.call_as(&writer, "append", own).unwrap();
                    match calls.call_as(&writer, "append", json!({ "path": "held", "content": text })) {
                        Ok(_) => {}
                        Err(error) => assert!(matches!(error.kind, ErrorKind::Locked | ErrorKind::Busy), "{error:?}"),
                    }
                }
            });
        }
        let holder = agent("holder");
        let mut changes_under_lease = 0;
        for _ in 0..LEASES {
            calls.call_as(&holder, "lock", json!({ "path": "held" })).unwrap();
            let looks: Vec<_> = (0..8).map(|_| calls.read_text("held")).collect();
            calls.call_as(&holder, "unlock", json!({ "path": "held" })).unwrap();
            changes_under_lease += looks.windows(2).filter(|pair| pair[0] != pair[1]).count();
        }
        // The writers end before the test can fail.
        done.store(true, Ordering::Release);
        assert_eq!(changes_under_lease, 0);
    });
}
