//! The Model Context Protocol, both sides, over the providers of a session.
