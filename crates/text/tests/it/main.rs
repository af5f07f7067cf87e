//! The integration tests of the text crate, with tables of cases and randomly generated texts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod edit_properties;
mod edits;
mod patch;
mod properties;

use stead_text::edit::{TextSplice, apply_splices};

/// Computes the splices that turn the result of applying `splices` to `text` back into `text`.
fn inverse_splices(text: &str, splices: &[TextSplice]) -> Vec<TextSplice> {
    let (mut removed, mut inserted) = (0, 0);
    splices
        .iter()
        .map(|splice| {
            let start = splice.bytes.start - removed + inserted;
            removed += splice.bytes.len();
            inserted += splice.text.len();
            TextSplice { bytes: start..start + splice.text.len(), text: text[splice.bytes.clone()].to_owned() }
        })
        .collect()
}

#[test]
fn inverse_splices_restore_the_text() {
    let text = "abcdef";
    let splice = |bytes, text: &str| TextSplice { bytes, text: text.to_owned() };
    let splices = [splice(0..1, "XX"), splice(2..4, ""), splice(6..6, "end")];
    let result = apply_splices(text, &splices);
    assert_eq!(result, "XXbefend");
    assert_eq!(apply_splices(&result, &inverse_splices(text, &splices)), text);
}
