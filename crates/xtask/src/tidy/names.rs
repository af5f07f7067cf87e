//! Rules for the names of types: each exists once in the workspace, and none is a bare verb form.

use std::collections::BTreeMap;

use super::{RepositoryFile, TidyFinding, is_project_path};

/// Words ending in "-ing" that are established nouns are allowed.
const GERUNDS_ALLOWED: &[&str] = &["Encoding", "Mapping", "Setting", "Warning"];
/// Irregular past forms that are also nouns (`Read`, `Set`, `Split`) are not listed.
const IRREGULAR_PAST_FORMS: &str = "Became Been Begun Bent Bitten Blown Born Bought Bound Broken Brought Built Burnt Came Caught Chosen \
    Clung Crept Dealt Done Drawn Driven Drunk Dug Eaten Fallen Fed Felt Fled Flown Forbidden Forgotten Fought \
    Found Frozen Gave Given Gone Got Grown Heard Held Hidden Hung Hurt Kept Knew Known Laid Lain Learnt Led \
    Left Lent Lit Lost Made Meant Met Misled Overwritten Paid Put Ran Rewritten Ridden Risen Said Sank \
    Sat Seen Sent Shaken Shown Shut Slept Slid Sold Sought Spent Spoken Spun Stolen Stood Struck Stuck Sunk \
    Swept Sworn Swung Taken Taught Thought Threw Thrown Told Took Torn Understood Undone Went Withdrawn \
    Withheld Woken Won Worn Woven Written Wrote";

pub(super) fn find_duplicate_types(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let mut first_definitions = BTreeMap::new();
    let mut findings = Vec::new();
    for (file, line, name) in type_definitions(files) {
        let first = first_definitions.entry(name).or_insert((&file.path, line));
        if *first != (&file.path, line) {
            let problem = format!("type '{name}' also exists at {}:{}; rename one of them", first.0, first.1);
            findings.push(TidyFinding::new(file, line, problem));
        }
    }
    findings
}

/// Finds types named by a single participle, past form or gerund, such as `Held` or `Waiting`.
pub(super) fn find_verb_form_types(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    type_definitions(files)
        .filter(|(_, _, name)| is_bare_verb_form(name))
        .map(|(file, line, name)| {
            TidyFinding::new(file, line, format!("type '{name}' is a bare verb form; use a noun"))
        })
        .collect()
}

fn type_definitions(files: &[RepositoryFile]) -> impl Iterator<Item = (&RepositoryFile, usize, &str)> {
    files.iter().filter(|file| is_project_path(&file.path)).flat_map(|file| {
        let definitions = file.rust_source.iter().flat_map(|source| source.type_definitions());
        definitions.map(move |(line, name)| (file, line, name))
    })
}

fn is_bare_verb_form(name: &str) -> bool {
    let is_single_word = name.chars().skip(1).all(|c| c.is_ascii_lowercase());
    // `Seed` and `Speed` are nouns, as are `String` and `Ring`: there is no verb before the ending.
    let is_past = name.ends_with("ed") && !name.ends_with("eed");
    let is_gerund =
        name.strip_suffix("ing").is_some_and(|stem| stem.to_ascii_lowercase().contains(['a', 'e', 'i', 'o', 'u', 'y']))
            && !GERUNDS_ALLOWED.contains(&name);
    is_single_word && (is_past || is_gerund || IRREGULAR_PAST_FORMS.split(' ').any(|form| form == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_type_with_the_same_name_is_found() {
        let files = [
            RepositoryFile::new("crates/a/src/lib.rs", "pub struct Request;"),
            RepositoryFile::new("crates/b/tests/it/main.rs", "fn f() {}\nmod tests { enum Request {} }"),
            RepositoryFile::new("bench/src/main.rs", "struct Request;"),
            RepositoryFile::new("bench/peers/src/main.rs", "struct Request;"),
            RepositoryFile::new("fuzz/src/lib.rs", "struct Request;"),
        ];
        let findings = find_duplicate_types(&files);
        let found: Vec<(&str, usize)> = findings.iter().map(|finding| (finding.path.as_str(), finding.line)).collect();
        assert_eq!(found, [("crates/b/tests/it/main.rs", 2), ("bench/src/main.rs", 1)]);
    }

    #[test]
    fn associated_types_and_strings_are_no_duplicates() {
        let text = "impl Iterator for A { type Item = u8; } trait B { type Item; }\n\
                    impl C { fn f() { \"struct A\"; } }\n// struct A";
        let one = RepositoryFile::new("crates/a/src/lib.rs", text);
        let two = RepositoryFile::new("crates/b/src/lib.rs", "type Item = u8;");
        assert_eq!(find_duplicate_types(&[one, two]), []);
    }

    #[test]
    fn bare_verb_forms_are_found() {
        for bad in [
            "struct Begun;",
            "pub enum Asked {}",
            "trait Waiting {}",
            "type Held = u8;",
            "struct Reading {}",
            "struct Slept;",
            "enum Put {}",
        ] {
            let file = RepositoryFile::new("crates/a/src/lib.rs", bad);
            assert_eq!(find_verb_form_types(&[file]).len(), 1, "{bad}");
        }
        for good in
            ["struct HeldLease;", "enum Encoding {}", "struct Seed;", "struct Ring;", "struct Lease; fn held() {}"]
        {
            let file = RepositoryFile::new("crates/a/src/lib.rs", good);
            assert_eq!(find_verb_form_types(&[file]), [], "{good}");
        }
    }
}
