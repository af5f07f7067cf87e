//! Tests that verification detects every kind of tampering with a journal and reports its kind and position.

use stead_journal::{
    AWAITED_MAX, Digest, JournalIntegrityError, JournalIntegrityErrorKind, JournalKeyRecord, JournalKeyTrustChain,
    JournalVerifier, JournalWorkspaceId, MerkleFrontier, MerkleLeafHash, VerifiedJournalPrefix, decode_entry,
    encode_entry, genesis_hash, inclusion_proof,
};

use crate::sample::{SampleJournal, origin, ring, signer};

const ENTRY_COUNT: u64 = 200;
const CHECKPOINT_EVERY: u64 = 50;

fn sample_journal() -> SampleJournal {
    SampleJournal::with_entries(ENTRY_COUNT, CHECKPOINT_EVERY)
}

fn verify_damaged(damage: impl FnOnce(&mut SampleJournal)) -> JournalIntegrityError {
    let mut log = sample_journal();
    damage(&mut log);
    log.verify().unwrap_err()
}

fn entry_error(kind: JournalIntegrityErrorKind, number: u64) -> JournalIntegrityError {
    JournalIntegrityError { kind, number, checkpoint: None }
}

fn checkpoint_error(kind: JournalIntegrityErrorKind, number: u64, size: u64) -> JournalIntegrityError {
    JournalIntegrityError { kind, number, checkpoint: Some(size) }
}

#[test]
fn an_untouched_journal_verifies() {
    let log = SampleJournal::with_entries(ENTRY_COUNT + 7, CHECKPOINT_EVERY);
    let verified = log.verify().unwrap();
    assert_eq!(verified.size(), ENTRY_COUNT + 7);
    assert_eq!(verified.covered_by_checkpoint, ENTRY_COUNT);
    assert_eq!(verified.checkpoint_count, 4);
    assert_eq!(verified.prefix.head, log.entries.last().unwrap().hash);
    assert_eq!(verified.root(), log.checkpoint(ENTRY_COUNT + 7).root);
}

#[test]
fn an_empty_journal_verifies() {
    let mut log = SampleJournal::with_entries(0, CHECKPOINT_EVERY);
    assert_eq!(log.verify().unwrap().size(), 0);
    log.checkpoints.push((0, log.signed_checkpoint(0, &signer(1))));
    assert_eq!(log.verify().unwrap().checkpoint_count, 1);
}

/// The test resumes verification just before each damaged entry, because verifying the whole journal would be slow.
#[test]
fn flipped_bits_are_detected_at_their_entry() {
    let log = SampleJournal::with_entries(10_000, 10_000);
    let mut trusted = VerifiedJournalPrefix { head: genesis_hash(&origin()), frontier: MerkleFrontier::new() };
    for (index, row) in log.entries.iter().enumerate() {
        for round in 0..3 {
            let mut bytes = row.canonical.clone();
            let bit = (index * 977 + round * 1_601) % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut verifier = JournalVerifier::resume(ring(), trusted.clone());
            let tamper = verifier.push_entry(row.number, &bytes, &row.hash).unwrap_err();
            assert_eq!(tamper.number, row.number, "bit {bit}");
            // A record whose number changed looks like a record that was moved.
            let in_number = (1..=2).contains(&(bit / 8));
            let kind = tamper.kind;
            assert!(
                kind == JournalIntegrityErrorKind::HashMismatch
                    || in_number && kind == JournalIntegrityErrorKind::OutOfOrder,
                "{kind}"
            );
        }
        trusted.head = row.hash;
        trusted.frontier.append(MerkleLeafHash::from_entry_hash(&row.hash));
    }
}

#[test]
fn flipped_bits_in_hashes_are_detected() {
    for bit in 0..256 {
        let tamper = verify_damaged(|log| log.entries[70].hash.0[bit / 8] ^= 1 << (bit % 8));
        assert_eq!(tamper, entry_error(JournalIntegrityErrorKind::HashMismatch, 71));
    }
}

#[test]
fn deleted_entries_are_reported_missing() {
    assert_eq!(verify_damaged(|log| drop(log.entries.remove(0))), entry_error(JournalIntegrityErrorKind::Missing, 1));
    assert_eq!(verify_damaged(|log| drop(log.entries.remove(70))), entry_error(JournalIntegrityErrorKind::Missing, 71));
    assert_eq!(
        verify_damaged(|log| drop(log.entries.drain(50..100))),
        entry_error(JournalIntegrityErrorKind::Missing, 51)
    );
}

#[test]
fn deletion_with_renumbering_is_detected() {
    let renumbered = verify_damaged(|log| {
        log.entries.remove(70);
        for (row, number) in log.entries.iter_mut().zip(1..) {
            row.number = number;
        }
    });
    assert_eq!(renumbered, entry_error(JournalIntegrityErrorKind::OutOfOrder, 71));
}

#[test]
fn swapped_entries_are_out_of_order() {
    let swapped = verify_damaged(|log| {
        let (left, right) = log.entries.split_at_mut(71);
        std::mem::swap(&mut left[70].canonical, &mut right[0].canonical);
        std::mem::swap(&mut left[70].hash, &mut right[0].hash);
    });
    assert_eq!(swapped, entry_error(JournalIntegrityErrorKind::OutOfOrder, 71));
}

#[test]
fn a_repeated_entry_is_a_duplicate() {
    let beside = verify_damaged(|log| log.entries.insert(71, log.entries[70].clone()));
    assert_eq!(beside, entry_error(JournalIntegrityErrorKind::Duplicate, 71));
    let far = verify_damaged(|log| log.entries.insert(120, log.entries[70].clone()));
    assert_eq!(far, entry_error(JournalIntegrityErrorKind::Duplicate, 71));
}

#[test]
fn malformed_entries_are_detected_even_in_a_valid_chain() {
    let tamper = verify_damaged(|log| {
        log.entries[70].canonical.push(0);
        log.recompute_hashes();
    });
    assert_eq!(tamper, entry_error(JournalIntegrityErrorKind::Malformed, 71));
}

#[test]
fn truncation_below_a_checkpoint_is_detected() {
    let tamper = verify_damaged(|log| log.entries.truncate(170));
    assert_eq!(tamper, checkpoint_error(JournalIntegrityErrorKind::Truncated, 171, 200));
    let tamper = verify_damaged(|log| log.entries.clear());
    assert_eq!(tamper, checkpoint_error(JournalIntegrityErrorKind::Truncated, 1, 50));
}

#[test]
fn truncation_after_the_last_checkpoint_is_detected_by_a_known_head() {
    let mut log = SampleJournal::with_entries(ENTRY_COUNT + 10, CHECKPOINT_EVERY);
    let head = log.entries.last().unwrap().hash;
    log.entries.truncate(ENTRY_COUNT as usize);
    assert!(log.verify().is_ok(), "within the checkpoint interval only a known head detects it");
    let mut verifier = JournalVerifier::new(ring());
    verifier.expect_head(ENTRY_COUNT + 10, head).unwrap();
    let tamper = log.verify_from(verifier).unwrap_err();
    assert_eq!(tamper, checkpoint_error(JournalIntegrityErrorKind::Truncated, 201, 210));
}

fn forge_entry(log: &mut SampleJournal, index: usize) {
    let mut entry = decode_entry(&log.entries[index].canonical).unwrap();
    entry.caller.principal = "user:somebody-else".into();
    log.entries[index].canonical = encode_entry(&entry);
    log.recompute_hashes();
}

#[test]
fn forged_entries_contradict_the_next_checkpoint() {
    let tamper = verify_damaged(|log| forge_entry(log, 70));
    assert_eq!(tamper, checkpoint_error(JournalIntegrityErrorKind::RootMismatch, 51, 100));
}

#[test]
fn checkpoints_cannot_be_forged_without_the_key() {
    let stranger = verify_damaged(|log| {
        forge_entry(log, 70);
        log.checkpoints[1].1 = log.signed_checkpoint(100, &signer(9));
    });
    assert_eq!(stranger, checkpoint_error(JournalIntegrityErrorKind::UnknownKey, 51, 100));
    let pasted = verify_damaged(|log| {
        forge_entry(log, 70);
        let text = log.checkpoint(100).to_string();
        let signature = log.checkpoints[1].1.lines().last().unwrap().to_owned();
        log.checkpoints[1].1 = format!("{text}\n{signature}\n");
    });
    assert_eq!(pasted, checkpoint_error(JournalIntegrityErrorKind::BadSignature, 51, 100));
}

#[test]
fn forgery_with_the_active_key_contradicts_published_checkpoints() {
    let honest = sample_journal();
    let mut forged = sample_journal();
    forge_entry(&mut forged, 70);
    forged.checkpoints = vec![(200, forged.signed_checkpoint(200, &signer(1)))];
    assert!(forged.verify().is_ok(), "the live key can rewrite what nobody else has seen");
    let mut verifier = JournalVerifier::new(ring());
    verifier.push_checkpoint(&honest.checkpoints[1].1).unwrap();
    let tamper = forged.verify_from(verifier).unwrap_err();
    assert_eq!(tamper, checkpoint_error(JournalIntegrityErrorKind::RootMismatch, 1, 100));
    let mut verifier = JournalVerifier::new(ring());
    verifier.expect_head(150, honest.entries[149].hash).unwrap();
    assert_eq!(forged.verify_from(verifier).unwrap_err(), entry_error(JournalIntegrityErrorKind::HeadMismatch, 150));
}

#[test]
fn a_replaced_genesis_is_detected() {
    let honest = sample_journal();
    let other = JournalWorkspaceId::new("w2").unwrap();
    let mut rewritten = sample_journal();
    rewritten.ring =
        JournalKeyTrustChain::new(other, vec![JournalKeyRecord::first_key(signer(1).verifying_key())]).unwrap();
    rewritten.recompute_hashes();
    rewritten.checkpoints.clear();
    assert!(rewritten.verify().is_ok());
    // With the old workspace, verification fails at once; with the new one, at any checkpoint of the old workspace.
    let tamper = rewritten.verify_from(JournalVerifier::new(ring())).unwrap_err();
    assert_eq!(tamper, entry_error(JournalIntegrityErrorKind::HashMismatch, 1));
    rewritten.checkpoints = honest.checkpoints;
    assert_eq!(rewritten.verify().unwrap_err().kind, JournalIntegrityErrorKind::WrongOrigin);
}

#[test]
fn an_edited_checkpoint_has_no_valid_signature() {
    for (old, new) in [("\n100\n", "\n99\n"), ("time 1790000000100", "time 1790000000101")] {
        let tamper = verify_damaged(|log| {
            let edited = log.checkpoints[1].1.replacen(old, new, 1);
            assert_ne!(edited, log.checkpoints[1].1);
            log.checkpoints[1].1 = edited;
        });
        assert_eq!(tamper.kind, JournalIntegrityErrorKind::BadSignature);
        assert_eq!(tamper.number, 51);
    }
}

#[test]
fn every_flipped_bit_of_a_checkpoint_is_detected() {
    let log = sample_journal();
    let note = log.checkpoints[1].1.as_bytes();
    for bit in 0..note.len() * 8 {
        let mut flipped = note.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // A note that is not UTF-8 cannot be passed to the verifier.
        if let Ok(flipped) = String::from_utf8(flipped) {
            let mut changed = log.clone();
            changed.checkpoints[1].1 = flipped;
            assert!(changed.verify().is_err(), "bit {bit}");
        }
    }
}

#[test]
fn forks_are_detected_in_either_order() {
    let mut other = sample_journal();
    forge_entry(&mut other, 70);
    let forked = other.signed_checkpoint(100, &signer(1));
    for index in [1, 2] {
        let tamper = verify_damaged(|log| log.checkpoints.insert(index, (100, forked.clone())));
        assert_eq!(tamper, checkpoint_error(JournalIntegrityErrorKind::Fork, 51, 100));
    }
    let mut verifier = JournalVerifier::new(ring());
    verifier.push_checkpoint(&forked).unwrap();
    assert_eq!(sample_journal().verify_from(verifier).unwrap_err().kind, JournalIntegrityErrorKind::Fork);
}

#[test]
fn repeated_checkpoints_are_not_a_fork() {
    let mut log = sample_journal();
    let mut later = log.checkpoint(100);
    later.time_ms += 1_000;
    log.checkpoints.insert(2, (100, later.sign(&signer(1))));
    assert_eq!(log.verify().unwrap().checkpoint_count, 4);
}

#[test]
fn checkpoints_with_a_wrong_head_are_detected() {
    let tamper = verify_damaged(|log| {
        let mut lying = log.checkpoint(100);
        lying.head = Digest([0; 32]);
        log.checkpoints[1].1 = lying.sign(&signer(1));
    });
    assert_eq!(tamper, checkpoint_error(JournalIntegrityErrorKind::HeadMismatch, 51, 100));
}

fn journal_with_rotated_key() -> SampleJournal {
    let mut log = sample_journal();
    let next = JournalKeyRecord::next(&signer(1), &origin(), signer(2).verifying_key(), 100);
    log.ring = JournalKeyTrustChain::new(origin(), vec![JournalKeyRecord::first_key(signer(1).verifying_key()), next])
        .unwrap();
    for size in [100, 150, 200] {
        log.checkpoints[size as usize / 50 - 1].1 = log.signed_checkpoint(size, &signer(2));
    }
    log
}

#[test]
fn rotated_keys_sign_from_their_first_entry() {
    assert_eq!(journal_with_rotated_key().verify().unwrap().checkpoint_count, 4);
    let mut log = journal_with_rotated_key();
    log.checkpoints[2].1 = log.signed_checkpoint(150, &signer(1));
    assert_eq!(log.verify().unwrap_err(), checkpoint_error(JournalIntegrityErrorKind::RetiredKey, 101, 150));
    let mut log = journal_with_rotated_key();
    log.checkpoints[0].1 = log.signed_checkpoint(50, &signer(2));
    assert_eq!(log.verify().unwrap_err(), checkpoint_error(JournalIntegrityErrorKind::PrematureKey, 1, 50));
}

#[test]
fn verification_resumes_from_a_verified_prefix() {
    let whole = sample_journal();
    let mut first = sample_journal();
    first.entries.truncate(100);
    first.checkpoints.truncate(2);
    let stored = first.verify().unwrap().prefix.to_bytes();
    let resumed = || JournalVerifier::resume(ring(), VerifiedJournalPrefix::from_bytes(&stored).unwrap());
    let verified = whole.verify_from(resumed()).unwrap();
    assert_eq!(verified.prefix, whole.verify().unwrap().prefix);
    assert_eq!(verified.checkpoint_count, 3, "the one it resumed from and two new ones");
    let mut forged = sample_journal();
    forge_entry(&mut forged, 70);
    assert_eq!(forged.verify_from(resumed()).unwrap_err(), entry_error(JournalIntegrityErrorKind::HashMismatch, 101));
}

#[test]
fn a_changed_resume_state_contradicts_the_checkpoint() {
    let log = sample_journal();
    let mut frontier = MerkleFrontier::new();
    log.entries[..100].iter().for_each(|row| frontier.append(MerkleLeafHash::from_entry_hash(&row.hash)));
    let head = Digest([3; 32]);
    let mut verifier = JournalVerifier::resume(ring(), VerifiedJournalPrefix { head, frontier });
    verifier.push_checkpoint(&log.checkpoints[1].1).unwrap();
    assert_eq!(verifier.finish().unwrap_err().kind, JournalIntegrityErrorKind::HeadMismatch);
    assert!(VerifiedJournalPrefix::from_bytes(&[0; 31]).is_err());
}

#[test]
fn late_and_excessive_expectations_are_rejected() {
    let log = sample_journal();
    let mut verifier = JournalVerifier::new(ring());
    for row in &log.entries[..60] {
        verifier.push_entry(row.number, &row.canonical, &row.hash).unwrap();
    }
    let late = checkpoint_error(JournalIntegrityErrorKind::Late, 1, 50);
    assert_eq!(verifier.push_checkpoint(&log.checkpoints[0].1), Err(late));
    assert_eq!(verifier.finish(), Err(late), "a fault that was overlooked is not forgotten");
    let mut verifier = JournalVerifier::new(ring());
    for number in 0..AWAITED_MAX as u64 {
        verifier.expect_head(number, Digest([0; 32])).unwrap();
    }
    let tamper = verifier.expect_head(u64::MAX, Digest([0; 32])).unwrap_err();
    assert_eq!(tamper.kind, JournalIntegrityErrorKind::TooManyAwaited);
}

#[test]
fn inclusion_proof_needs_only_the_checkpoint() {
    let log = sample_journal();
    let leaves = log.entries.iter().map(|row| Ok::<_, ()>(MerkleLeafHash::from_entry_hash(&row.hash)));
    let proof = inclusion_proof(70, 100, leaves).unwrap();
    let root = log.checkpoint(100).root;
    assert!(proof.verify(&MerkleLeafHash::from_entry_hash(&log.entries[70].hash), &root).is_ok());
    assert!(proof.verify(&MerkleLeafHash::from_entry_hash(&log.entries[71].hash), &root).is_err());
}

#[test]
fn integrity_errors_have_machine_readable_codes() {
    let json = serde_json::to_string(&entry_error(JournalIntegrityErrorKind::OutOfOrder, 7)).unwrap();
    assert_eq!(json, r#"{"kind":"out_of_order","number":7}"#);
    assert_eq!(entry_error(JournalIntegrityErrorKind::Missing, 7).to_string(), "entry 7: missing");
}
