//! New providers from one template, in this workspace or outside it.
//!
//! The template is a provider of its own, `template/`, which the workspace compiles and tests like any other.
//! A new provider is its files under another [`ProviderName`]. [`workspace`] plans one in a checkout of this
//! repository, where it is registered too; [`standalone`] plans one anywhere else. Both come to a [`Plan`],
//! which can be shown before it is applied.

mod name;
mod plan;
pub mod standalone;
mod template;
pub mod workspace;

pub use name::{NameError, ProviderName};
pub use plan::{Plan, PlanError};
