//! The filesystem provider: reads and edits that lose nothing.
