//! Every way of changing a journal is found, with its own name and place.

use journal::{
    Digest, Frontier, KeyRecord, KeyRing, Leaf, MAX_AWAITED, Origin, Tamper, TamperKind, Trusted, Verifier,
    decode, encode, genesis, inclusion_proof,
};

use crate::sample::{Log, origin, ring, signer};

const COUNT: u64 = 200;
const EVERY: u64 = 50;

fn log() -> Log {
    Log::grown(COUNT, EVERY)
}

fn damaged(damage: impl FnOnce(&mut Log)) -> Tamper {
    let mut log = log();
    damage(&mut log);
    log.verify().unwrap_err()
}

fn entry_fault(kind: TamperKind, number: u64) -> Tamper {
    Tamper { kind, number, checkpoint: None }
}

fn checkpoint_fault(kind: TamperKind, number: u64, size: u64) -> Tamper {
    Tamper { kind, number, checkpoint: Some(size) }
}

#[test]
fn an_untouched_journal_verifies() {
    let log = Log::grown(COUNT + 7, EVERY);
    let verified = log.verify().unwrap();
    assert_eq!(verified.size(), COUNT + 7);
    assert_eq!(verified.covered, COUNT);
    assert_eq!(verified.checkpoints, 4);
    assert_eq!(verified.trusted.head, log.rows.last().unwrap().hash);
    assert_eq!(verified.root(), log.checkpoint(COUNT + 7).root);
}

#[test]
fn an_empty_journal_verifies() {
    let mut log = Log::grown(0, EVERY);
    assert_eq!(log.verify().unwrap().size(), 0);
    log.notes.push((0, log.note(0, &signer(1))));
    assert_eq!(log.verify().unwrap().checkpoints, 1);
}

/// Exhaustive by entry, sampled by bit: each of 10,000 entries loses three different bits, spread over all places.
/// The verifier resumes just before the damage, so that the whole takes one pass.
#[test]
fn a_flipped_bit_is_found_at_its_entry() {
    let log = Log::grown(10_000, 10_000);
    let mut trusted = Trusted { head: genesis(&origin()), frontier: Frontier::new() };
    for (index, row) in log.rows.iter().enumerate() {
        for round in 0..3 {
            let mut bytes = row.canonical.clone();
            let bit = (index * 977 + round * 1_601) % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut verifier = Verifier::resume(ring(), trusted.clone());
            let tamper = verifier.push(row.number, &bytes, &row.hash).unwrap_err();
            assert_eq!(tamper.number, row.number, "bit {bit}");
            // A record whose own number was changed reads as one that was moved.
            let in_number = (1..=2).contains(&(bit / 8));
            let kind = tamper.kind;
            assert!(
                kind == TamperKind::HashMismatch || in_number && kind == TamperKind::OutOfOrder,
                "{kind}"
            );
        }
        trusted.head = row.hash;
        trusted.frontier.append(Leaf::of_entry(&row.hash));
    }
}

#[test]
fn a_flipped_bit_in_a_recorded_hash_is_found() {
    for bit in 0..256 {
        let tamper = damaged(|log| log.rows[70].hash.0[bit / 8] ^= 1 << (bit % 8));
        assert_eq!(tamper, entry_fault(TamperKind::HashMismatch, 71));
    }
}

#[test]
fn a_deleted_entry_is_missing() {
    assert_eq!(damaged(|log| drop(log.rows.remove(0))), entry_fault(TamperKind::Missing, 1));
    assert_eq!(damaged(|log| drop(log.rows.remove(70))), entry_fault(TamperKind::Missing, 71));
    assert_eq!(damaged(|log| drop(log.rows.drain(50..100))), entry_fault(TamperKind::Missing, 51));
}

#[test]
fn a_deleted_entry_with_the_rest_renumbered_is_found() {
    let renumbered = damaged(|log| {
        log.rows.remove(70);
        for (row, number) in log.rows.iter_mut().zip(1..) {
            row.number = number;
        }
    });
    assert_eq!(renumbered, entry_fault(TamperKind::OutOfOrder, 71));
}

#[test]
fn swapped_entries_are_out_of_order() {
    let swapped = damaged(|log| {
        let (left, right) = log.rows.split_at_mut(71);
        std::mem::swap(&mut left[70].canonical, &mut right[0].canonical);
        std::mem::swap(&mut left[70].hash, &mut right[0].hash);
    });
    assert_eq!(swapped, entry_fault(TamperKind::OutOfOrder, 71));
}

#[test]
fn a_repeated_entry_is_a_duplicate() {
    let beside = damaged(|log| log.rows.insert(71, log.rows[70].clone()));
    assert_eq!(beside, entry_fault(TamperKind::Duplicate, 71));
    let far = damaged(|log| log.rows.insert(120, log.rows[70].clone()));
    assert_eq!(far, entry_fault(TamperKind::Duplicate, 71));
}

#[test]
fn bytes_that_are_no_record_are_found_even_with_a_right_chain() {
    let tamper = damaged(|log| {
        log.rows[70].canonical.push(0);
        log.rechain();
    });
    assert_eq!(tamper, entry_fault(TamperKind::Malformed, 71));
}

#[test]
fn truncation_below_a_checkpoint_is_found() {
    let tamper = damaged(|log| log.rows.truncate(170));
    assert_eq!(tamper, checkpoint_fault(TamperKind::Truncated, 171, 200));
    let tamper = damaged(|log| log.rows.clear());
    assert_eq!(tamper, checkpoint_fault(TamperKind::Truncated, 1, 50));
}

#[test]
fn truncation_of_an_uncovered_tail_is_found_by_a_kept_head() {
    let mut log = Log::grown(COUNT + 10, EVERY);
    let head = log.rows.last().unwrap().hash;
    log.rows.truncate(COUNT as usize);
    assert!(log.verify().is_ok(), "within the checkpoint interval only a kept head can tell");
    let mut verifier = Verifier::new(ring());
    verifier.expect_head(COUNT + 10, head).unwrap();
    let tamper = log.verify_from(verifier).unwrap_err();
    assert_eq!(tamper, checkpoint_fault(TamperKind::Truncated, 201, 210));
}

fn forge(log: &mut Log, index: usize) {
    let mut entry = decode(&log.rows[index].canonical).unwrap();
    entry.caller.principal = "user:somebody-else".into();
    log.rows[index].canonical = encode(&entry);
    log.rechain();
}

#[test]
fn a_forged_entry_with_a_recomputed_chain_meets_the_next_checkpoint() {
    let tamper = damaged(|log| forge(log, 70));
    assert_eq!(tamper, checkpoint_fault(TamperKind::RootMismatch, 51, 100));
}

#[test]
fn a_forger_without_the_key_cannot_renew_the_checkpoint() {
    let stranger = damaged(|log| {
        forge(log, 70);
        log.notes[1].1 = log.note(100, &signer(9));
    });
    assert_eq!(stranger, checkpoint_fault(TamperKind::UnknownKey, 51, 100));
    let pasted = damaged(|log| {
        forge(log, 70);
        let text = log.checkpoint(100).to_string();
        let signature = log.notes[1].1.lines().last().unwrap().to_owned();
        log.notes[1].1 = format!("{text}\n{signature}\n");
    });
    assert_eq!(pasted, checkpoint_fault(TamperKind::BadSignature, 51, 100));
}

#[test]
fn a_forger_with_the_live_key_meets_what_was_handed_out() {
    let honest = log();
    let mut forged = log();
    forge(&mut forged, 70);
    forged.notes = vec![(200, forged.note(200, &signer(1)))];
    assert!(forged.verify().is_ok(), "the live key can rewrite what nobody else has seen");
    let mut verifier = Verifier::new(ring());
    verifier.checkpoint(&honest.notes[1].1).unwrap();
    let tamper = forged.verify_from(verifier).unwrap_err();
    assert_eq!(tamper, checkpoint_fault(TamperKind::RootMismatch, 1, 100));
    let mut verifier = Verifier::new(ring());
    verifier.expect_head(150, honest.rows[149].hash).unwrap();
    assert_eq!(forged.verify_from(verifier).unwrap_err(), entry_fault(TamperKind::HeadMismatch, 150));
}

#[test]
fn a_new_genesis_is_found() {
    let honest = log();
    let other = Origin::new("w2").unwrap();
    let mut rewritten = log();
    rewritten.ring = KeyRing::new(other, vec![KeyRecord::first(signer(1).public())]).unwrap();
    rewritten.rechain();
    rewritten.notes.clear();
    assert!(rewritten.verify().is_ok());
    // As the old workspace it breaks at once; as the new one it meets any checkpoint of the old.
    let tamper = rewritten.verify_from(Verifier::new(ring())).unwrap_err();
    assert_eq!(tamper, entry_fault(TamperKind::HashMismatch, 1));
    rewritten.notes = honest.notes;
    assert_eq!(rewritten.verify().unwrap_err().kind, TamperKind::WrongOrigin);
}

#[test]
fn an_edited_checkpoint_has_no_valid_signature() {
    for (old, new) in [("\n100\n", "\n99\n"), ("time 1790000000100", "time 1790000000101")] {
        let tamper = damaged(|log| {
            let edited = log.notes[1].1.replacen(old, new, 1);
            assert_ne!(edited, log.notes[1].1);
            log.notes[1].1 = edited;
        });
        assert_eq!(tamper.kind, TamperKind::BadSignature);
        assert_eq!(tamper.number, 51);
    }
}

#[test]
fn every_flipped_bit_of_a_checkpoint_is_found() {
    let log = log();
    let note = log.notes[1].1.as_bytes();
    for bit in 0..note.len() * 8 {
        let mut flipped = note.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // A note that is no longer UTF-8 cannot even be handed over.
        if let Ok(flipped) = String::from_utf8(flipped) {
            let mut changed = log.clone();
            changed.notes[1].1 = flipped;
            assert!(changed.verify().is_err(), "bit {bit}");
        }
    }
}

#[test]
fn a_fork_is_found_in_either_order() {
    let mut other = log();
    forge(&mut other, 70);
    let forked = other.note(100, &signer(1));
    for place in [1, 2] {
        let tamper = damaged(|log| log.notes.insert(place, (100, forked.clone())));
        assert_eq!(tamper, checkpoint_fault(TamperKind::Fork, 51, 100));
    }
    let mut verifier = Verifier::new(ring());
    verifier.checkpoint(&forked).unwrap();
    assert_eq!(log().verify_from(verifier).unwrap_err().kind, TamperKind::Fork);
}

#[test]
fn the_same_checkpoint_twice_is_no_fork() {
    let mut log = log();
    let mut later = log.checkpoint(100);
    later.time_ms += 1_000;
    log.notes.insert(2, (100, later.sign(&signer(1))));
    assert_eq!(log.verify().unwrap().checkpoints, 4);
}

#[test]
fn a_checkpoint_with_a_false_head_is_found() {
    let tamper = damaged(|log| {
        let mut lying = log.checkpoint(100);
        lying.head = Digest([0; 32]);
        log.notes[1].1 = lying.sign(&signer(1));
    });
    assert_eq!(tamper, checkpoint_fault(TamperKind::HeadMismatch, 51, 100));
}

fn rotated() -> Log {
    let mut log = log();
    let next = KeyRecord::next(&signer(1), &origin(), signer(2).public(), 100);
    log.ring = KeyRing::new(origin(), vec![KeyRecord::first(signer(1).public()), next]).unwrap();
    for size in [100, 150, 200] {
        log.notes[size as usize / 50 - 1].1 = log.note(size, &signer(2));
    }
    log
}

#[test]
fn a_rotated_key_signs_from_its_entry_on() {
    assert_eq!(rotated().verify().unwrap().checkpoints, 4);
    let mut log = rotated();
    log.notes[2].1 = log.note(150, &signer(1));
    assert_eq!(log.verify().unwrap_err(), checkpoint_fault(TamperKind::RetiredKey, 101, 150));
    let mut log = rotated();
    log.notes[0].1 = log.note(50, &signer(2));
    assert_eq!(log.verify().unwrap_err(), checkpoint_fault(TamperKind::PrematureKey, 1, 50));
}

#[test]
fn verification_goes_on_from_a_trusted_checkpoint() {
    let whole = log();
    let mut first = log();
    first.rows.truncate(100);
    first.notes.truncate(2);
    let stored = first.verify().unwrap().trusted.to_bytes();
    let resumed = || Verifier::resume(ring(), Trusted::from_bytes(&stored).unwrap());
    let verified = whole.verify_from(resumed()).unwrap();
    assert_eq!(verified.trusted, whole.verify().unwrap().trusted);
    assert_eq!(verified.checkpoints, 3, "the one it resumed from and two new ones");
    let mut forged = log();
    forge(&mut forged, 70);
    assert_eq!(forged.verify_from(resumed()).unwrap_err(), entry_fault(TamperKind::HashMismatch, 101));
}

#[test]
fn a_changed_resume_state_does_not_fit_the_checkpoint() {
    let log = log();
    let mut frontier = Frontier::new();
    log.rows[..100].iter().for_each(|row| frontier.append(Leaf::of_entry(&row.hash)));
    let head = Digest([3; 32]);
    let mut verifier = Verifier::resume(ring(), Trusted { head, frontier });
    verifier.checkpoint(&log.notes[1].1).unwrap();
    assert_eq!(verifier.finish().unwrap_err().kind, TamperKind::HeadMismatch);
    assert!(Trusted::from_bytes(&[0; 31]).is_err());
}

#[test]
fn what_comes_too_late_or_too_often_is_refused() {
    let log = log();
    let mut verifier = Verifier::new(ring());
    for row in &log.rows[..60] {
        verifier.push(row.number, &row.canonical, &row.hash).unwrap();
    }
    let late = checkpoint_fault(TamperKind::Late, 1, 50);
    assert_eq!(verifier.checkpoint(&log.notes[0].1), Err(late));
    assert_eq!(verifier.finish(), Err(late), "a fault that was overlooked is not forgotten");
    let mut verifier = Verifier::new(ring());
    for number in 0..MAX_AWAITED as u64 {
        verifier.expect_head(number, Digest([0; 32])).unwrap();
    }
    let tamper = verifier.expect_head(u64::MAX, Digest([0; 32])).unwrap_err();
    assert_eq!(tamper.kind, TamperKind::TooManyAwaited);
}

#[test]
fn one_entry_is_proven_against_a_checkpoint_alone() {
    let log = log();
    let leaves = log.rows.iter().map(|row| Ok::<_, ()>(Leaf::of_entry(&row.hash)));
    let proof = inclusion_proof(70, 100, leaves).unwrap();
    let root = log.checkpoint(100).root;
    assert!(proof.verify(&Leaf::of_entry(&log.rows[70].hash), &root).is_ok());
    assert!(proof.verify(&Leaf::of_entry(&log.rows[71].hash), &root).is_err());
}

#[test]
fn a_fault_has_a_code_for_machines() {
    let json = serde_json::to_string(&entry_fault(TamperKind::OutOfOrder, 7)).unwrap();
    assert_eq!(json, r#"{"kind":"out_of_order","number":7}"#);
    assert_eq!(entry_fault(TamperKind::Missing, 7).to_string(), "entry 7: missing");
}
