//! Line-delimited messages over a byte stream, for the protocols that use them. Input lines are bounded, output lines are
//! written whole. Contents are opaque, except for the request id of an oversized line.

mod outbox;
mod reader;
mod request_id_scanner;

pub(crate) use outbox::Outbox;
pub(crate) use reader::{LineReader, LineReaderEvent};
