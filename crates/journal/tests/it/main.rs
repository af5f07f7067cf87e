//! The journal from outside: known answers, random records, and every way of tampering.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking, its fixtures too")]

mod canonical;
mod export;
mod merkle;
mod sample;
mod tamper;
