//! Searching, without the SDK and the wire.
