//! MCP over a pair of byte streams.
