//! The generated wire types of the Pluggable Harness tool protocol.
