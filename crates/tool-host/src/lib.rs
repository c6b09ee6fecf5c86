//! Launches and drives tool providers the way the kernel does: sessions, approval, concurrency, answers.
//!
//! [`Provider::launch`] starts a provider from any program that keeps the plugin contract and asks it what it
//! offers; [`Host::call`] makes a call: it asks the [`Approver`] before a resource runs, lets the [`Answerer`]
//! answer interactive calls, keeps the concurrency rules, and reads the call to its one [`Outcome`]. What a
//! provider does wrong ends in a described error, never in a hang or in a result that breaks its schema.
//!
//! Nothing here prints or reads a terminal; that is for the program around it.

pub mod assign;
pub mod call;
pub mod catalogue;
pub mod config;
pub mod event;
mod host;
mod invoke;
mod json;
mod kernel;
pub mod names;
pub mod notice;
pub mod people;
pub mod policy;
mod provider;
pub mod schedule;
pub mod schema;
pub mod source;
mod status;
mod tree_json;
mod tree_text;
mod utf8;

pub use call::{Call, Canceller, Invocation, Reporter};
pub use event::{CallError, Category, Event, Object, Outcome};
pub use goplugin::host::Exit;
pub use host::Host;
pub use json::from_struct as struct_to_json;
pub use notice::{Notice, Notices};
pub use people::{Answerer, Approver};
pub use policy::Policy;
pub use provider::{EMBEDDED_ARGUMENT, LaunchError, LaunchOptions, Provider, ProviderSource};
pub use provider_core::nearest;
pub use source::{Source, ToolSource};
pub use tree_json::tree_to_json;
pub use tree_text::tree_to_text;
