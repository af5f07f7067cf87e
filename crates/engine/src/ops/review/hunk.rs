//! The hunks between a text as it was and as it is, each with who made it and a name that stays while it does. Pure.

use std::{collections::BTreeSet, ops::Range};

use serde_json::{Value, json};
use text::{diff::hunks, lines};

use super::blame::Blame;
use crate::version::Version;

/// Hex digits of a hunk's name.
const NAME_DIGITS: usize = 12;
/// Who is named where nobody is known.
const OUTSIDE: &str = "outside";

/// Lines replaced by lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hunk {
    pub(super) name: String,
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
    pub(super) by: BTreeSet<String>,
}

impl Hunk {
    /// For machines.
    pub(super) fn object(&self) -> Value {
        let range = |lines: &Range<usize>| json!({ "from": lines.start + 1, "lines": lines.len() });
        json!({ "hunk": self.name, "before": range(&self.old), "after": range(&self.new), "by": self.by })
    }
}

/// The hunks from `before` to the text of the blame. Neighbouring lines of different authors are hunks of their own, where
/// it can be told which old line is whose.
pub(super) fn between(before: &str, blame: &Blame) -> Vec<Hunk> {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (lines::iter(before).collect(), lines::iter(blame.text()).collect());
    let mut found: Vec<Hunk> = Vec::new();
    for hunk in hunks(before, blame.text()) {
        for (old_lines, new_lines) in parts(hunk.old, hunk.new, blame) {
            let mut by: BTreeSet<String> =
                new_lines.clone().filter_map(|line| blame.author(line)).map(str::to_owned).collect();
            by.extend(
                old[old_lines.clone()].iter().filter_map(|line| blame.remover(line)).map(str::to_owned),
            );
            if by.is_empty() {
                by.insert(OUTSIDE.to_owned());
            }
            let (was, is) = (old[old_lines.clone()].concat(), new[new_lines.clone()].concat());
            let name = name(&was, &is, &found);
            found.push(Hunk { name, old: old_lines, new: new_lines, by });
        }
    }
    found
}

/// A hunk cut where the author changes.
fn parts(old: Range<usize>, new: Range<usize>, blame: &Blame) -> Vec<(Range<usize>, Range<usize>)> {
    if old.len() != new.len() {
        return vec![(old, new)];
    }
    let mut parts: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for (was, is) in old.zip(new) {
        match parts.last_mut() {
            Some((olds, news)) if blame.author(news.start) == blame.author(is) => {
                olds.end = was + 1;
                news.end = is + 1;
            }
            Some(_) | None => parts.push((was..was + 1, is..is + 1)),
        }
    }
    parts
}

/// A name by what the hunk does; the same thing done twice is told apart by its turn.
fn name(was: &str, is: &str, before: &[Hunk]) -> String {
    (0..)
        .map(|turn: usize| {
            let whole = format!("{}\0{was}\0{is}\0{turn}", was.len());
            Version::of(whole.as_bytes()).to_string()[..NAME_DIGITS].to_owned()
        })
        .find(|name| before.iter().all(|hunk| hunk.name != *name))
        .unwrap_or_default()
}

/// The text with hunks taken from the other side: the lines of `after` in the place of those of `before`.
pub(super) fn applied(before: &str, after: &str, chosen: &[&Hunk]) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (lines::iter(before).collect(), lines::iter(after).collect());
    let (mut text, mut at) = (String::new(), 0);
    for hunk in chosen {
        text.extend(old[at..hunk.old.start].iter().copied());
        text.extend(new[hunk.new.clone()].iter().copied());
        at = hunk.old.end;
    }
    text.extend(old[at..].iter().copied());
    text
}

/// The text without what somebody did in these hunks: what they took comes back, what they put goes, and lines of others
/// stay.
pub(super) fn taken_back(before: &str, blame: &Blame, chosen: &[&Hunk], who: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (lines::iter(before).collect(), lines::iter(blame.text()).collect());
    let (mut text, mut at) = (String::new(), 0);
    for hunk in chosen {
        text.extend(new[at..hunk.new.start].iter().copied());
        let alone = hunk.by.len() == 1;
        let theirs = |line: &&str| alone || blame.remover(line) == Some(who);
        text.extend(old[hunk.old.clone()].iter().copied().filter(theirs));
        let others = hunk.new.clone().filter(|line| blame.author(*line) != Some(who));
        text.extend(others.map(|line| new[line]));
        at = hunk.new.end;
    }
    text.extend(new[at..].iter().copied());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "a\nb\nc\nd\ne\nf\ng\n";

    fn blame() -> Blame {
        let mut blame = Blame::new(BEFORE);
        blame.becomes("a\nB\nc\nd\ne\nF\nnew\ng\n", "agent:one");
        blame.becomes("a\nB\nC\nd\ne\nF\nnew\ng\nh\n", "user:ann");
        blame
    }

    #[test]
    fn neighbours_of_different_authors_are_told_apart() {
        let blame = blame();
        let found = between(BEFORE, &blame);
        let shown: Vec<(usize, usize, Vec<&str>)> = found
            .iter()
            .map(|hunk| (hunk.new.start, hunk.new.len(), hunk.by.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(
            shown,
            [
                (1, 1, vec!["agent:one"]),
                (2, 1, vec!["user:ann"]),
                (5, 2, vec!["agent:one"]),
                (8, 1, vec!["user:ann"])
            ]
        );
        let all: Vec<&Hunk> = found.iter().collect();
        assert_eq!(applied(BEFORE, blame.text(), &all), blame.text());
        assert_eq!(applied(BEFORE, blame.text(), &all[..1]), "a\nB\nc\nd\ne\nf\ng\n");
        let agents: Vec<&Hunk> = found.iter().filter(|hunk| hunk.by.contains("agent:one")).collect();
        assert_eq!(taken_back(BEFORE, &blame, &agents, "agent:one"), "a\nb\nC\nd\ne\nf\ng\nh\n");
        assert_eq!(taken_back(BEFORE, &blame, &agents[1..], "agent:one"), "a\nB\nC\nd\ne\nf\ng\nh\n");
    }

    #[test]
    fn what_another_wrote_into_a_hunk_stays() {
        let mut blame = Blame::new("a\nz\n");
        blame.becomes("a\none\ntwo\nz\n", "agent:one");
        blame.becomes("a\none\nmine\ntwo\nz\n", "user:ann");
        let found = between("a\nz\n", &blame);
        let all: Vec<&Hunk> = found.iter().collect();
        assert_eq!(taken_back("a\nz\n", &blame, &all, "agent:one"), "a\nmine\nz\n");
    }

    #[test]
    fn the_same_hunk_twice_has_two_names() {
        let mut blame = Blame::new("a\nb\nc\nd\n");
        blame.becomes("a\nx\nb\nc\nx\nd\n", "agent:one");
        let found = between("a\nb\nc\nd\n", &blame);
        assert_eq!(found.len(), 2);
        assert_ne!(found[0].name, found[1].name);
    }
}
