//! Rules that a dialect sets for quoted edits. Values only: the operation is the same for all dialects.

pub use stead_text::{
    edit::{EditRules, EmptyQuoteRule, LineTerminatorRule, NotFoundRecovery},
    locate::{MatchPass, OverlapRule},
};
