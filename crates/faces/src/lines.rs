//! Messages as lines over a byte stream, for every face that speaks so: bounded on the way in, never torn on the way
//! out. Knows nothing of what a line says, but for the id of one that is too long to be read.

mod outbox;
mod oversize;
mod reader;

pub(crate) use outbox::Outbox;
pub(crate) use reader::{LineReader, Next};
