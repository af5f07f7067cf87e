//! No text is a patch that panics or hangs, in any grammar, on any file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use text::patch::{self, Action, Grammar, Rules};

fuzz_target!(|given: (&str, &str)| {
    let (text, written) = given;
    let wrapped = format!("*** Begin Patch\n*** Update File: f\n{written}\n*** End Patch\n");
    for written in [written, &wrapped] {
        for grammar in [Grammar::TOLERANT, Grammar::STRICT, Grammar::EXACT] {
            let Ok(parsed) = patch::parse(written, grammar) else { continue };
            for section in &parsed.sections {
                if let Action::Update { chunks, .. } = &section.action {
                    for rules in [Rules::tolerant("f"), Rules::strict("f")] {
                        drop(patch::apply(text, chunks, &rules));
                    }
                }
            }
        }
    }
});
