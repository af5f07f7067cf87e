//! Tests of the verification of journal exports: an unchanged export passes, and a damaged export fails.

use stead_journal::{
    Digest, ExportVerificationReport, JournalExportFileError, JournalExportLine, JournalIntegrityErrorKind,
    JournalKeyRecord, JournalKeyTrustChain, JournalTrustAnchors, JournalWorkspaceId, decode_entry, verify_export,
};

use crate::sample::{SampleJournal, origin, ring, signer};

fn lines(log: &SampleJournal) -> Vec<String> {
    let mut lines = vec![JournalExportLine::header(&log.ring)];
    for row in &log.entries {
        let record = Box::new(decode_entry(&row.canonical).unwrap());
        lines.push(JournalExportLine::Entry { hash: row.hash, record });
        let due = log.checkpoints.iter().filter(|(size, _)| *size == row.number);
        lines.extend(due.map(|(_, note)| JournalExportLine::Checkpoint { note: note.clone() }));
    }
    let head = log.entries.last().unwrap().hash;
    lines.push(JournalExportLine::End { size: log.entries.len() as u64, head });
    lines.iter().map(|line| line.to_json().unwrap()).collect()
}

fn sample_journal() -> SampleJournal {
    SampleJournal::with_entries(25, 10)
}

fn verify_lines(lines: &[String]) -> Result<ExportVerificationReport, JournalExportFileError> {
    verify_export(lines.join("\n").as_bytes(), &JournalTrustAnchors::default())
}

fn integrity_error_after(damage: impl FnOnce(&mut Vec<String>)) -> (JournalIntegrityErrorKind, u64) {
    let mut lines = lines(&sample_journal());
    damage(&mut lines);
    let error = verify_lines(&lines).unwrap_err();
    let JournalExportFileError::Integrity(error) = error else { panic!("{error}") };
    (error.kind, error.number)
}

/// The sample export has a header line and a checkpoint after every ten entries.
fn line_of_entry(number: usize) -> usize {
    number + (number - 1) / 10
}

#[test]
fn an_untouched_export_verifies() {
    let report = verify_lines(&lines(&sample_journal())).unwrap();
    assert_eq!(report.origin, origin());
    assert_eq!(report.first_key, signer(1).verifying_key());
    assert_eq!(report.verification, sample_journal().verify().unwrap());
    assert_eq!((report.verification.size(), report.verification.covered_by_checkpoint), (25, 20));
}

#[test]
fn missing_moved_repeated_and_truncated_lines_are_reported() {
    assert_eq!(
        integrity_error_after(|lines| drop(lines.remove(line_of_entry(5)))),
        (JournalIntegrityErrorKind::Missing, 5)
    );
    assert_eq!(
        integrity_error_after(|lines| lines.swap(line_of_entry(5), line_of_entry(6))),
        (JournalIntegrityErrorKind::OutOfOrder, 5)
    );
    assert_eq!(
        integrity_error_after(|lines| lines.insert(15, lines[line_of_entry(5)].clone())),
        (JournalIntegrityErrorKind::Duplicate, 5)
    );
    assert_eq!(
        integrity_error_after(|lines| lines.truncate(line_of_entry(24) + 1)),
        (JournalIntegrityErrorKind::Truncated, 25)
    );
    assert_eq!(
        integrity_error_after(|lines| drop(lines.remove(line_of_entry(25)))),
        (JournalIntegrityErrorKind::Truncated, 25)
    );
    assert_eq!(
        integrity_error_after(|lines| drop(lines.drain(line_of_entry(15)..line_of_entry(25) + 1))),
        (JournalIntegrityErrorKind::Truncated, 15)
    );
    let early_end = |lines: &mut Vec<String>| {
        let head = sample_journal().entries[22].hash;
        *lines.last_mut().unwrap() = JournalExportLine::End { size: 23, head }.to_json().unwrap();
    };
    assert_eq!(integrity_error_after(early_end), (JournalIntegrityErrorKind::HeadMismatch, 24));
}

#[test]
fn edited_entries_are_reported() {
    let edit = |lines: &mut Vec<String>| {
        lines[line_of_entry(7)] = lines[line_of_entry(7)].replacen("agent:writer", "agent:reader", 1);
    };
    assert_eq!(integrity_error_after(edit), (JournalIntegrityErrorKind::HashMismatch, 7));
}

#[test]
fn every_flipped_bit_is_detected() {
    let text = lines(&SampleJournal::with_entries(3, 3)).join("\n").into_bytes();
    for bit in 0..text.len() * 8 {
        let mut flipped = text.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let verdict = verify_export(flipped.as_slice(), &JournalTrustAnchors::default());
        // White space between lines is not part of the record.
        let blank = text[bit / 8] == b'\n' && flipped[bit / 8].is_ascii_whitespace();
        assert!(verdict.is_err() || blank, "bit {bit} in {}", String::from_utf8_lossy(&flipped));
    }
}

#[test]
fn misplaced_lines_are_rejected() {
    let good = lines(&sample_journal());
    let misplaced = |lines: &[String]| matches!(verify_lines(lines), Err(JournalExportFileError::MisplacedLine(_)));
    assert!(misplaced(&[]));
    assert!(misplaced(&good[1..]));
    assert!(misplaced(&[&good[..1], &good[..]].concat()));
    assert!(misplaced(&[&good[..], &good[3..4]].concat()));
    let blank = [&good[..4], &[String::new()], &good[4..]].concat();
    assert!(matches!(verify_lines(&blank), Err(JournalExportFileError::Syntax { line: 5, .. })));
    let future = good[0].replacen("\"format\":1", "\"format\":2", 1);
    assert!(matches!(verify_lines(&[future]), Err(JournalExportFileError::UnsupportedFormat(2))));
    let no_keys = JournalExportLine::Header { format: 1, workspace: origin(), keys: vec![] }.to_json().unwrap();
    assert!(matches!(verify_lines(&[no_keys]), Err(JournalExportFileError::InvalidKeys(_))));
}

#[test]
fn trust_anchors_are_checked_against_the_export() {
    let verify = |expected| verify_export(lines(&sample_journal()).join("\n").as_bytes(), &expected);
    let right = JournalTrustAnchors {
        origin: Some(origin()),
        first_key: Some(signer(1).verifying_key()),
        checkpoints: vec![sample_journal().checkpoints[0].1.clone()],
        heads: vec![(24, sample_journal().entries[23].hash), (25, sample_journal().entries[24].hash)],
    };
    assert!(verify(right).is_ok());
    let other =
        JournalTrustAnchors { origin: Some(JournalWorkspaceId::new("w2").unwrap()), ..JournalTrustAnchors::default() };
    assert!(matches!(verify(other), Err(JournalExportFileError::OtherWorkspace)));
    let other = JournalTrustAnchors { first_key: Some(signer(2).verifying_key()), ..JournalTrustAnchors::default() };
    assert!(matches!(verify(other), Err(JournalExportFileError::OtherFirstKey)));
    let other = JournalTrustAnchors { heads: vec![(9, Digest([1; 32]))], ..JournalTrustAnchors::default() };
    let Err(JournalExportFileError::Integrity(error)) = verify(other) else { panic!("a false head was believed") };
    assert_eq!((error.kind, error.number), (JournalIntegrityErrorKind::HeadMismatch, 9));
    let beyond = JournalTrustAnchors { heads: vec![(26, Digest([1; 32]))], ..JournalTrustAnchors::default() };
    let Err(JournalExportFileError::Integrity(error)) = verify(beyond) else { panic!("a lost entry was not missed") };
    assert_eq!((error.kind, error.number), (JournalIntegrityErrorKind::Truncated, 26));
}

#[test]
fn rewritten_journal_conflicts_with_a_known_checkpoint() {
    let mut rewritten = sample_journal();
    rewritten.ring =
        JournalKeyTrustChain::new(origin(), vec![JournalKeyRecord::first_key(signer(9).verifying_key())]).unwrap();
    rewritten.checkpoints = vec![(20, rewritten.signed_checkpoint(20, &signer(9)))];
    let text = lines(&rewritten).join("\n");
    assert!(verify_export(text.as_bytes(), &JournalTrustAnchors::default()).is_ok(), "by itself it is whole");
    let anchors = JournalTrustAnchors {
        checkpoints: vec![sample_journal().checkpoints[0].1.clone()],
        ..JournalTrustAnchors::default()
    };
    let Err(JournalExportFileError::Integrity(error)) = verify_export(text.as_bytes(), &anchors) else {
        panic!("a rewritten journal was believed")
    };
    assert_eq!(error.kind, JournalIntegrityErrorKind::UnknownKey);
}

#[test]
fn export_contains_keys_and_endorsements() {
    let mut log = sample_journal();
    let next = JournalKeyRecord::next(&signer(1), &origin(), signer(2).verifying_key(), 15);
    log.ring = JournalKeyTrustChain::new(origin(), [ring().records(), &[next]].concat()).unwrap();
    log.checkpoints[1].1 = log.signed_checkpoint(20, &signer(2));
    assert_eq!(verify_lines(&lines(&log)).unwrap().verification.checkpoint_count, 2);
}
