//! What changed between two declarations of a provider, and what that breaks.
//!
//! [`compare`] takes two [`Declaration`]s and lists every [`Change`]. Each follows one [`Rule`], and the rule alone
//! decides its [`Effect`]: a change is **breaking** when a call, a configuration or a program that was right
//! before can be wrong after it. Arguments and results therefore mirror each other: a new required argument
//! breaks callers, a result field that may be missing breaks readers.
//!
//! ```
//! use schema_diff::{Declaration, Effect, compare};
//!
//! let tool = |input: &str| format!(
//!     r#"{{"format_version": "1.0", "provider": {{"name": "notes", "version": "1.0.0", "source": "", "category": "tool",
//!     "protocol_version": 1}}, "tools": [{{"name": "add", "kind": "resource", "risk": "low", "input_schema": {input},
//!     "output_schema": {{}}}}]}}"#
//! );
//! let old = Declaration::from_json(&tool(r#"{"type": "object", "properties": {}}"#)).unwrap();
//! let new = Declaration::from_json(&tool(
//!     r#"{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}"#,
//! )).unwrap();
//! let changes = compare(&old, &new);
//! assert_eq!(changes[0].to_string(), "add: the required argument text is new");
//! assert_eq!(changes[0].rule.effect(), Effect::Breaking);
//! ```

mod change;
mod compare;
mod document;
mod fields;

pub use change::{Change, Effect, Rule};
pub use compare::compare;
pub use document::{Declaration, DocumentError};
