//! What a tool provider is built on.
//!
//! A provider is a subprocess that serves `ToolService` over gRPC. With this crate an author writes only what
//! the tools do: types for arguments and results, whose doc comments the model reads, and one async function
//! per tool. Schema, argument repair, streaming, deadlines, cancellation, previews, logs and the process itself
//! are taken care of.
//!
//! Start at [`Provider`], which has a complete example; then the three kinds of tools, [`DataSource`],
//! [`Resource`] and [`Interactive`]; then [`Cx`], which a call is given. [`jail`] holds paths that cannot leave
//! their roots. [`testing`] drives a provider in the same process.

pub mod arguments;
mod call;
mod config;
mod core;
mod debugger;
mod error;
mod hooks;
mod kernel;
mod logging;
mod nearest;
mod registry;
mod render;
mod run;
pub mod schema;
mod service;
pub mod subagent;
#[cfg(feature = "testing")]
pub mod testing;
mod tool;
pub mod wire;

pub use crate::call::{
    Cx, Effects, Events, Output, PreviewCx, Process, Silent, Stream, Streaming, ensure_as_previewed,
};
pub use crate::config::{Config, NoConfig, Secret};
pub use crate::error::{Category, Code, ToolError};
pub use crate::hooks::{HookEvent, HookPoint, HookedCall, Hooks, ModelCall, Verdict, VetoPoint};
pub use crate::kernel::{
    CALLBACK_BROKER_ID, CallbackError, EmittedKind, SessionFacts, SessionKernel, SubSession, SubSessionEnd,
};
pub use crate::nearest::nearest;
pub use crate::registry::{AddedResource, Catalogue, CatalogueError, Commands, Declaration, ToolKind, Tools};
pub use crate::render::{DiffHunk, DiffLine, LineChange, Node, Style};
pub use crate::run::{CONTRACT, run};
pub use crate::tool::{
    Args, Concurrency, DataSource, Interactive, Preview, Provider, Resource, Risk, Setup, ToolOutput,
    configured_path, default_state_folder,
};
pub use jail;
pub use supervisor;

/// All that an author's file needs.
pub mod prelude {
    pub use std::sync::Arc;

    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};

    pub use crate::{
        Code, Concurrency, Cx, DataSource, Events, Interactive, NoConfig, Node, Output, Preview, PreviewCx,
        Process, Provider, Resource, Risk, Setup, Silent, ToolError, Tools,
    };
}

/// The README's provider is compiled with the documentation's examples.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExample;
