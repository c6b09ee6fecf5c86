//! The JSON-RPC plugin wire, both sides.
