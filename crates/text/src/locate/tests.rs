//! Quotes and the places they are found in, pass by pass.

use super::*;

fn found<'t>(text: &'t str, quote: &str, how: Matching) -> (Pass, Vec<&'t str>) {
    let found = locate(text, quote, how);
    assert_eq!(found.limit, None);
    (found.pass, found.places.into_iter().map(|place| &text[place.bytes]).collect())
}

#[test]
fn each_pass_finds_what_it_overlooks() {
    for (text, quote, pass, places) in [
        ("abc", "b", Pass::Exact, &["b"][..]),
        ("a b a", "a", Pass::Exact, &["a", "a"]),
        ("aaa", "aa", Pass::Exact, &["aa", "aa"]),
        ("a\r\nb\r\n", "a\nb\n", Pass::Endings, &["a\r\nb\r\n"]),
        ("a\nb\n", "a\r\nb", Pass::Endings, &["a\nb"]),
        ("a\rb\r\nc\n", "a\nb\nc", Pass::Endings, &["a\rb\r\nc"]),
        ("a\r\nb", "a\r", Pass::Exact, &["a\r"]),
        ("x\r\ny\nx\ny\n", "x\ny", Pass::Endings, &["x\r\ny", "x\ny"]),
        ("x\r\nz\nx\ny\n", "x\ny", Pass::Exact, &["x\ny"]),
        ("x\r\ny\nx\ny\n", "x\r\ny", Pass::Exact, &["x\r\ny"]),
        ("a\r\nb", "\nb", Pass::Endings, &["\r\nb"]),
        ("a\nb", "a\nb\n", Pass::Endings, &["a\nb"]),
        ("a  \nb\n", "a\nb", Pass::TrailingSpace, &["a  \nb"]),
        ("foobar\nfoo\n", "foo  ", Pass::TrailingSpace, &["foo"]),
        ("x\u{a0}= \u{201c}y\u{201d}\n", "x = \"y\"", Pass::LookAlike, &["x\u{a0}= \u{201c}y\u{201d}"]),
        ("x - y", "x – y", Pass::LookAlike, &["x - y"]),
        ("  a\n    b \n", "a\n  b\n", Pass::Indentation, &["  a\n    b \n"]),
        ("  a\n    b \n", "a\n  b", Pass::Indentation, &["  a\n    b"]),
    ] {
        assert_eq!(found(text, quote, Matching::LENIENT), (pass, places.to_vec()), "{text:?} {quote:?}");
    }
}

#[test]
fn similar_is_not_the_same() {
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
        assert!(found(text, quote, Matching::LENIENT).1.is_empty(), "{text:?} {quote:?}");
    }
}

#[test]
fn whole_lines_can_be_asked_for() {
    let lines = |text, quote| found(text, quote, Matching::LINES);
    assert_eq!(lines("ab\nb\nbc\n", "b"), (Pass::Exact, vec!["b"]));
    assert_eq!(lines("ab\nb\nbc\n", "b\n"), (Pass::Exact, vec!["b\n"]));
    assert_eq!(lines("xa\na \nb\n", "a\nb"), (Pass::TrailingSpace, vec!["a \nb"]));
    assert_eq!(lines("a\r\nb\r\n", "b"), (Pass::Exact, vec!["b"]));
    assert_eq!(lines("\tb\nb2", "b"), (Pass::Indentation, vec!["\tb"]));
}

#[test]
fn an_exact_search_takes_bytes_literally() {
    assert_eq!(found("aaa", "aa", Matching::EXACT).1, ["aa"]);
    assert_eq!(found("a\r\nb", "a\r", Matching::EXACT).1, ["a\r"]);
    assert!(found("a\r\nb", "a\nb", Matching::EXACT).1.is_empty());
}

#[test]
fn places_know_their_lines() {
    let place = |text, quote| locate(text, quote, Matching::LENIENT).places[0].lines.clone();
    assert_eq!(place("a\nb\nc\n", "b\n"), 2..=2);
    assert_eq!(place("a\nb\nc\n", "b\nc"), 2..=3);
    assert_eq!(place("a\r\nb\r\nc", "a\nb"), 1..=2);
    let finder = Finder::new("a\r\nb\n");
    assert_eq!((finder.line_count(), finder.line(2), finder.line(3), finder.line(0)), (2, "b", "", ""));
    assert_eq!((finder.line_at(0), finder.line_at(2), finder.line_at(3), finder.line_at(5)), (1, 1, 2, 2));
}
