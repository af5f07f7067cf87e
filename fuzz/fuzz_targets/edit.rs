//! Edits change nothing outside their spans and can be taken back.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use text::edit::{Edit, Rescue, Rules, Wanted, anchored, apply, edit, inverse};

#[derive(Arbitrary, Debug)]
struct Case {
    text: String,
    base: Option<String>,
    edits: Vec<(Quote, String, u8)>,
    rules: u8,
}

/// A quote that is often one that is there.
#[derive(Arbitrary, Debug)]
enum Quote {
    Any(String),
    Of { from: u16, length: u8 },
}

impl Quote {
    fn text(&self, text: &str) -> String {
        match self {
            Quote::Any(any) => any.clone(),
            Quote::Of { from, length } => {
                text.chars().skip(usize::from(*from)).take(usize::from(*length)).collect()
            }
        }
    }
}

fn wanted(choice: u8) -> Wanted {
    match choice % 4 {
        0 => Wanted::One,
        1 => Wanted::All,
        2 => Wanted::Count(usize::from(choice / 4)),
        _ => Wanted::Near(usize::from(choice / 4)),
    }
}

fuzz_target!(|case: Case| {
    let rules = match case.rules % 4 {
        0 => Rules::NATIVE,
        1 => Rules::LITERAL,
        2 => Rules::PLAIN,
        _ => Rules { rescue: Rescue::Resemblance, ..Rules::PLAIN },
    };
    let owned: Vec<(String, &str, u8)> =
        case.edits.iter().map(|(old, new, choice)| (old.text(&case.text), new.as_str(), *choice)).collect();
    let edits: Vec<Edit<'_>> =
        owned.iter().map(|(old, new, choice)| Edit { old, new, wanted: wanted(*choice) }).collect();
    let outcome = match &case.base {
        Some(base) => anchored(base, &case.text, &edits, rules),
        None => edit(&case.text, &edits, rules),
    };
    if let Ok(edited) = outcome {
        assert_eq!(apply(&case.text, &edited.splices), edited.text);
        let back = inverse(&case.text, &edited.splices);
        assert_eq!(apply(&edited.text, &back), case.text);
    }
});
