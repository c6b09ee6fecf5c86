//! The contract's own three services (broker, controller, stdio), as generated from `proto/`.
//!
//! [`plugin`](crate::plugin) and [`host`](crate::host) speak them; they are public for programs that want
//! to look at the other side's conversation, such as tests.

// Included instead of declared, so that the formatter leaves the generated text alone.
include!("plugin.rs");
