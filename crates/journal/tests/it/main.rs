//! Tests of the public interface of the journal: known answers, random records, and tampering.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking, its fixtures too")]

mod canonical;
mod export;
mod merkle;
mod pins;
mod sample;
mod verify;
