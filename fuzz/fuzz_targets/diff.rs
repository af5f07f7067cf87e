//! Fuzz target: a unified diff parses as a patch, and applying the patch to the old text gives the new text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stead_text::{
    patch::{PatchGrammar, PatchChunkMatching, PatchChunkPlacementRules, PatchSectionKind, apply_chunks, parse_patch},
    unified::{DiffLabels, unified_diff},
};

fuzz_target!(|sides: (&str, &str)| {
    let (old, new) = sides;
    let diff = unified_diff(old, new, DiffLabels { old: "a/f", new: "b/f" }, 3, usize::MAX);
    assert_eq!(diff.text.is_empty(), old == new);
    if old == new {
        return;
    }
    let patch = parse_patch(&diff.text, PatchGrammar::Tolerant).expect("a generated diff parses");
    assert_eq!(patch.len(), 1, "{}", diff.text);
    if let PatchSectionKind::Update { chunks, .. } = &patch[0].kind {
        // A diff whose lines occur several times may be rejected, but is never applied at the wrong place.
        if let Ok(patched) = apply_chunks(old, chunks, &PatchChunkPlacementRules::new("f", PatchChunkMatching::Tolerant)) {
            assert_eq!(patched.text, new, "{}", diff.text);
        }
    }
});
