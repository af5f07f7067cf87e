//! Recognises placeholder lines that stand for omitted code, such as "... rest of the function unchanged".
//!
//! A bare `...` is not a placeholder, because it is code in some languages.

use crate::{is_listed, lines};

const ELISION_WORDS: &str = "\
    rest existing unchanged remaining remainder omitted elided brevity previous truncated same snip untouched \
    unmodified";

const FILLER_WORDS: &str = "\
    of the code file function functions method methods class body content contents lines line implementation imports \
    is are as before above below here stays stay remains remain and for other others keep logic tests this block \
    section your all it in with no changes change everything else fields module left definitions cases items \
    original continues continue";

/// Finds the first placeholder line of `new` that `old` does not contain: its 1-based number and its text.
pub(super) fn find_elision(new: &str, old: &str) -> Option<(usize, String)> {
    lines::iter(new)
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim()))
        .find(|(_, line)| is_elision(line) && !old.contains(line))
        .map(|(number, line)| (number, line.to_owned()))
}

fn is_elision(line: &str) -> bool {
    let dots = line.contains("...") || line.contains('…');
    let bracketed = line.starts_with(['(', '[', '<', '{']) || line.starts_with("//") || line.starts_with('#');
    if !dots || line.len() > 120 {
        return false;
    }
    let mut announces = false;
    let mut count = 0;
    for word in line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        count += 1;
        if is_listed(ELISION_WORDS, &word) {
            announces = true;
        } else if !is_listed(FILLER_WORDS, &word) {
            return false;
        }
    }
    // In several languages, a name directly after the dots (`...rest`) is code.
    let spreads = line.split("...").skip(1).any(|after| after.starts_with(char::is_alphanumeric));
    if spreads && count <= 2 {
        return false;
    }
    // A line of code with these words also contains characters other than words, dots and comment marks.
    let is_prose = line.chars().all(|c| c.is_alphanumeric() || c.is_whitespace() || "./#*-<>!()[]{}…;%,'’".contains(c));
    announces
        && is_prose
        && (bracketed
            || line.starts_with(['.', '…', '/', '*', '-', ';', '%'])
            || line.ends_with("...")
            || line.ends_with('…'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_elision_lines() {
        for line in [
            "// ... existing code ...",
            "# ... rest of the function unchanged",
            "... rest of code",
            "… rest of code",
            "/* ... remaining methods ... */",
            "<!-- ... rest of file ... -->",
            "(rest of the code...)",
            "// rest of the implementation...",
            "-- ... same as before",
            "[... unchanged ...]",
        ] {
            assert!(is_elision(line), "{line}");
        }
    }

    #[test]
    fn code_and_prose_are_not_elisions() {
        for line in [
            "...",
            "def f(): ...",
            "let rest = [...];",
            "let [first, ...rest] = list;",
            "// the rest of the code",
            "f(...rest)",
            "println!(\"... existing code\")",
            "return { ...existing, x };",
            "const { a, ...rest } = b;",
            "loading...",
            "int f(const char *format, ...);",
            "{ ...rest }",
            "[...existing, x]",
        ] {
            assert!(!is_elision(line), "{line}");
        }
    }

    #[test]
    fn elisions_in_the_quote_may_stay_in_the_new_text() {
        assert_eq!(
            find_elision("a\n  // ... existing code ...\n", ""),
            Some((2, "// ... existing code ...".to_owned()))
        );
        assert_eq!(find_elision("// ... existing code ...\n", "x\n// ... existing code ...\n"), None);
    }
}
