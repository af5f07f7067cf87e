//! An export verifies by itself, and no damaged one does.

use journal::{
    Digest, Expected, ExportError, ExportLine, ExportReport, KeyRecord, KeyRing, Origin, TamperKind, decode,
    verify_export,
};

use crate::sample::{Log, origin, ring, signer};

fn lines(log: &Log) -> Vec<String> {
    let mut lines = vec![ExportLine::header(&log.ring)];
    for row in &log.rows {
        let record = Box::new(decode(&row.canonical).unwrap());
        lines.push(ExportLine::Entry { hash: row.hash, record });
        let due = log.notes.iter().filter(|(size, _)| *size == row.number);
        lines.extend(due.map(|(_, note)| ExportLine::Checkpoint { note: note.clone() }));
    }
    let head = log.rows.last().unwrap().hash;
    lines.push(ExportLine::End { size: log.rows.len() as u64, head });
    lines.iter().map(|line| line.to_json().unwrap()).collect()
}

fn log() -> Log {
    Log::grown(25, 10)
}

fn check(lines: &[String]) -> Result<ExportReport, ExportError> {
    verify_export(lines.join("\n").as_bytes(), &Expected::default())
}

fn fault(damage: impl FnOnce(&mut Vec<String>)) -> (TamperKind, u64) {
    let mut lines = lines(&log());
    damage(&mut lines);
    let error = check(&lines).unwrap_err();
    let ExportError::Tamper(tamper) = error else { panic!("{error}") };
    (tamper.kind, tamper.number)
}

/// The line of an entry in the sample export: the header is line 0 and a checkpoint follows entry 10.
fn line_of(number: usize) -> usize {
    number + (number - 1) / 10
}

#[test]
fn an_untouched_export_verifies() {
    let report = check(&lines(&log())).unwrap();
    assert_eq!(report.origin, origin());
    assert_eq!(report.first_key, signer(1).public());
    assert_eq!(report.verified, log().verify().unwrap());
    assert_eq!((report.verified.size(), report.verified.covered), (25, 20));
}

#[test]
fn lost_moved_repeated_and_cut_lines_are_named() {
    assert_eq!(fault(|lines| drop(lines.remove(line_of(5)))), (TamperKind::Missing, 5));
    assert_eq!(fault(|lines| lines.swap(line_of(5), line_of(6))), (TamperKind::OutOfOrder, 5));
    assert_eq!(fault(|lines| lines.insert(15, lines[line_of(5)].clone())), (TamperKind::Duplicate, 5));
    assert_eq!(fault(|lines| lines.truncate(line_of(24) + 1)), (TamperKind::Truncated, 25));
    assert_eq!(fault(|lines| drop(lines.remove(line_of(25)))), (TamperKind::Truncated, 25));
    assert_eq!(fault(|lines| drop(lines.drain(line_of(15)..line_of(25) + 1))), (TamperKind::Truncated, 15));
    let early_end = |lines: &mut Vec<String>| {
        let head = log().rows[22].hash;
        *lines.last_mut().unwrap() = ExportLine::End { size: 23, head }.to_json().unwrap();
    };
    assert_eq!(fault(early_end), (TamperKind::HeadMismatch, 24));
}

#[test]
fn an_edited_entry_is_named() {
    let edit = |lines: &mut Vec<String>| {
        lines[line_of(7)] = lines[line_of(7)].replacen("agent:writer", "agent:reader", 1);
    };
    assert_eq!(fault(edit), (TamperKind::HashMismatch, 7));
}

#[test]
fn every_flipped_bit_is_found() {
    let text = lines(&Log::grown(3, 3)).join("\n").into_bytes();
    for bit in 0..text.len() * 8 {
        let mut flipped = text.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let verdict = verify_export(flipped.as_slice(), &Expected::default());
        // White space between lines is not part of the record.
        let blank = text[bit / 8] == b'\n' && flipped[bit / 8].is_ascii_whitespace();
        assert!(verdict.is_err() || blank, "bit {bit} in {}", String::from_utf8_lossy(&flipped));
    }
}

#[test]
fn lines_that_cannot_stand_where_they_do_are_refused() {
    let good = lines(&log());
    let misplaced = |lines: &[String]| matches!(check(lines), Err(ExportError::Misplaced { .. }));
    assert!(misplaced(&[]));
    assert!(misplaced(&good[1..]));
    assert!(misplaced(&[&good[..1], &good[..]].concat()));
    assert!(misplaced(&[&good[..], &good[3..4]].concat()));
    let blank = [&good[..4], &[String::new()], &good[4..]].concat();
    assert!(matches!(check(&blank), Err(ExportError::Syntax { line: 5, .. })));
    let future = good[0].replacen("\"format\":1", "\"format\":2", 1);
    assert!(matches!(check(&[future]), Err(ExportError::Format { format: 2 })));
    let no_keys = ExportLine::Header { format: 1, workspace: origin(), keys: vec![] }.to_json().unwrap();
    assert!(matches!(check(&[no_keys]), Err(ExportError::Keys(_))));
}

#[test]
fn what_the_reader_knows_is_held_against_the_export() {
    let verify = |expected| verify_export(lines(&log()).join("\n").as_bytes(), &expected);
    let right = Expected {
        origin: Some(origin()),
        first_key: Some(signer(1).public()),
        checkpoints: vec![log().notes[0].1.clone()],
        heads: vec![(24, log().rows[23].hash), (25, log().rows[24].hash)],
    };
    assert!(verify(right).is_ok());
    let other = Expected { origin: Some(Origin::new("w2").unwrap()), ..Expected::default() };
    assert!(matches!(verify(other), Err(ExportError::OtherWorkspace)));
    let other = Expected { first_key: Some(signer(2).public()), ..Expected::default() };
    assert!(matches!(verify(other), Err(ExportError::OtherFirstKey)));
    let other = Expected { heads: vec![(9, Digest([1; 32]))], ..Expected::default() };
    let Err(ExportError::Tamper(tamper)) = verify(other) else { panic!("a false head was believed") };
    assert_eq!((tamper.kind, tamper.number), (TamperKind::HeadMismatch, 9));
    let beyond = Expected { heads: vec![(26, Digest([1; 32]))], ..Expected::default() };
    let Err(ExportError::Tamper(tamper)) = verify(beyond) else { panic!("a lost entry was not missed") };
    assert_eq!((tamper.kind, tamper.number), (TamperKind::Truncated, 26));
}

#[test]
fn a_journal_rewritten_under_another_key_meets_a_kept_checkpoint() {
    let mut rewritten = log();
    rewritten.ring = KeyRing::new(origin(), vec![KeyRecord::first(signer(9).public())]).unwrap();
    rewritten.notes = vec![(20, rewritten.note(20, &signer(9)))];
    let text = lines(&rewritten).join("\n");
    assert!(verify_export(text.as_bytes(), &Expected::default()).is_ok(), "by itself it is whole");
    let kept = Expected { checkpoints: vec![log().notes[0].1.clone()], ..Expected::default() };
    let Err(ExportError::Tamper(tamper)) = verify_export(text.as_bytes(), &kept) else {
        panic!("a rewritten journal was believed")
    };
    assert_eq!(tamper.kind, TamperKind::UnknownKey);
}

#[test]
fn keys_travel_with_their_endorsements() {
    let mut log = log();
    let next = KeyRecord::next(&signer(1), &origin(), signer(2).public(), 15);
    log.ring = KeyRing::new(origin(), [ring().records(), &[next]].concat()).unwrap();
    log.notes[1].1 = log.note(20, &signer(2));
    assert_eq!(check(&lines(&log)).unwrap().verified.checkpoints, 2);
}
