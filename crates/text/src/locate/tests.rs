//! Quotes and their matches, pass by pass.

use super::*;

fn find_texts<'t>(text: &'t str, quote: &str, how: MatchOptions) -> (MatchPass, Vec<&'t str>) {
    let found = find_quote(text, quote, how);
    assert_eq!(found.limit, None);
    (found.pass, found.matches.into_iter().map(|place| &text[place.bytes]).collect())
}

#[test]
fn each_pass_ignores_its_differences() {
    for (text, quote, pass, places) in [
        ("abc", "b", MatchPass::Exact, &["b"][..]),
        ("a b a", "a", MatchPass::Exact, &["a", "a"]),
        ("aaa", "aa", MatchPass::Exact, &["aa", "aa"]),
        ("a\r\nb\r\n", "a\nb\n", MatchPass::LineEndings, &["a\r\nb\r\n"]),
        ("a\nb\n", "a\r\nb", MatchPass::LineEndings, &["a\nb"]),
        ("a\rb\r\nc\n", "a\nb\nc", MatchPass::LineEndings, &["a\rb\r\nc"]),
        ("a\r\nb", "a\r", MatchPass::Exact, &["a\r"]),
        ("x\r\ny\nx\ny\n", "x\ny", MatchPass::LineEndings, &["x\r\ny", "x\ny"]),
        ("x\r\nz\nx\ny\n", "x\ny", MatchPass::Exact, &["x\ny"]),
        ("x\r\ny\nx\ny\n", "x\r\ny", MatchPass::Exact, &["x\r\ny"]),
        ("a\r\nb", "\nb", MatchPass::LineEndings, &["\r\nb"]),
        ("a\nb", "a\nb\n", MatchPass::LineEndings, &["a\nb"]),
        ("a  \nb\n", "a\nb", MatchPass::TrailingSpace, &["a  \nb"]),
        ("foobar\nfoo\n", "foo  ", MatchPass::TrailingSpace, &["foo"]),
        ("x\u{a0}= \u{201c}y\u{201d}\n", "x = \"y\"", MatchPass::LookAlike, &["x\u{a0}= \u{201c}y\u{201d}"]),
        ("x - y", "x – y", MatchPass::LookAlike, &["x - y"]),
        ("  a\n    b \n", "a\n  b\n", MatchPass::Indentation, &["  a\n    b \n"]),
        ("  a\n    b \n", "a\n  b", MatchPass::Indentation, &["  a\n    b"]),
    ] {
        assert_eq!(find_texts(text, quote, MatchOptions::LENIENT), (pass, places.to_vec()), "{text:?} {quote:?}");
    }
}

#[test]
fn similar_text_does_not_match() {
    for (text, quote) in [
        ("begin\nother\nend\n", "begin\nbody\nend\n"),
        ("  a\n b\n", "a\nb\n"),
        ("a  b", "a b"),
        ("a\n\nb", "a\nb"),
        ("x", ""),
        ("a b", "   \n"),
        ("a\r\nb\r\n", "a\nb\r"),
        ("a\nb\n", "b\r"),
        ("  a\r\n    b\r\n", "a\r\n  b\r"),
        ("", "x"),
    ] {
        assert!(find_texts(text, quote, MatchOptions::LENIENT).1.is_empty(), "{text:?} {quote:?}");
    }
}

#[test]
fn whole_line_boundary_rejects_partial_lines() {
    let lines = |text, quote| find_texts(text, quote, MatchOptions::WHOLE_LINES);
    assert_eq!(lines("ab\nb\nbc\n", "b"), (MatchPass::Exact, vec!["b"]));
    assert_eq!(lines("ab\nb\nbc\n", "b\n"), (MatchPass::Exact, vec!["b\n"]));
    assert_eq!(lines("xa\na \nb\n", "a\nb"), (MatchPass::TrailingSpace, vec!["a \nb"]));
    assert_eq!(lines("a\r\nb\r\n", "b"), (MatchPass::Exact, vec!["b"]));
    assert_eq!(lines("\tb\nb2", "b"), (MatchPass::Indentation, vec!["\tb"]));
}

#[test]
fn an_exact_search_takes_bytes_literally() {
    assert_eq!(find_texts("aaa", "aa", MatchOptions::EXACT).1, ["aa"]);
    assert_eq!(find_texts("a\r\nb", "a\r", MatchOptions::EXACT).1, ["a\r"]);
    assert!(find_texts("a\r\nb", "a\nb", MatchOptions::EXACT).1.is_empty());
}

#[test]
fn matches_report_their_lines() {
    let place = |text, quote| find_quote(text, quote, MatchOptions::LENIENT).matches[0].lines.clone();
    assert_eq!(place("a\nb\nc\n", "b\n"), 2..=2);
    assert_eq!(place("a\nb\nc\n", "b\nc"), 2..=3);
    assert_eq!(place("a\r\nb\r\nc", "a\nb"), 1..=2);
    let finder = SearchableText::new("a\r\nb\n");
    assert_eq!((finder.line_count(), finder.line(2), finder.line(3), finder.line(0)), (2, "b", "", ""));
    assert_eq!((finder.line_at(0), finder.line_at(2), finder.line_at(3), finder.line_at(5)), (1, 1, 2, 2));
}
