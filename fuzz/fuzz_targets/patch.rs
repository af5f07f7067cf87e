//! Fuzz target: parsing any text as a patch, in each grammar, and applying it to any file neither panics nor hangs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stead_text::patch::{PatchGrammar, PatchChunkMatching, PatchChunkPlacementRules, PatchSectionKind, apply_chunks, parse_patch};

fuzz_target!(|input: (&str, &str)| {
    let (text, patch) = input;
    let wrapped = format!("*** Begin Patch\n*** Update File: f\n{patch}\n*** End Patch\n");
    for patch in [patch, &wrapped] {
        for grammar in [PatchGrammar::Tolerant, PatchGrammar::Strict, PatchGrammar::Exact] {
            let Ok(parsed) = parse_patch(patch, grammar) else { continue };
            for section in &parsed {
                if let PatchSectionKind::Update { chunks, .. } = &section.kind {
                    for rules in [PatchChunkMatching::Tolerant, PatchChunkMatching::Strict] {
                        let rules = PatchChunkPlacementRules::new("f", rules);
                        drop(apply_chunks(text, chunks, &rules));
                    }
                }
            }
        }
    }
});
