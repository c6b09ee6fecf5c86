//! What the provider is put through, one launch or a few after the other in each scene.

pub(crate) mod arguments;
pub(crate) mod configuring;
pub(crate) mod conversation;
pub(crate) mod cookie;
pub(crate) mod ending;
pub(crate) mod hosts;
pub(crate) mod launching;
pub(crate) mod listed;
pub(crate) mod previewing;
pub(crate) mod rendering;
pub(crate) mod starting;
pub(crate) mod stopping;
pub(crate) mod trials;
