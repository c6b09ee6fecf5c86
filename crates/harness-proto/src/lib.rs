//! The generated wire types of the Pluggable Harness tool protocol.
//!
//! One module per proto package, named like it: `pluggableharness.tool.v1` is [`tool::v1`]. Everything below these
//! modules is written by `cargo xtask proto` from `proto/` and documented there; there is no logic here.
//!
//! Maps are [`BTreeMap`](std::collections::BTreeMap)s, so that equal messages always have equal bytes, and `bytes`
//! fields are [`prost::bytes::Bytes`], so that payloads are passed on without a copy.

/// The contract as an encoded `google.protobuf.FileDescriptorSet`, with the well-known types it imports.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptor.bin");

/// One module per package. They are siblings, because generated code names other packages by relative paths.
macro_rules! packages {
    ($($(#[$documentation:meta])* $name:ident from $file:literal;)*) => {$(
        $(#[$documentation])*
        pub mod $name {
            /// Version 1 of the package.
            #[allow(
                missing_docs,
                unreachable_pub,
                unused_qualifications,
                clippy::all,
                clippy::pedantic,
                clippy::unwrap_used,
                clippy::expect_used,
                rustdoc::all
            )]
            pub mod v1 {
                include!(concat!("generated/", $file));
            }
        }
    )*};
}

packages! {
    /// Vocabulary every other package builds on.
    common from "pluggableharness.common.v1.rs";
    /// How a plugin declares the configuration it accepts.
    config from "pluggableharness.config.v1.rs";
    /// Messages between human, model and tools.
    content from "pluggableharness.content.v1.rs";
    /// Control of running calls by a host that knows this catalog.
    control from "toolcatalog.control.v1.rs";
    /// What the payload of a stored event holds.
    event from "pluggableharness.event.v1.rs";
    /// Calls from the kernel to a plugin at fixed points of a turn.
    hook from "pluggableharness.hook.v1.rs";
    /// What the kernel serves to its plugins.
    kernel from "pluggableharness.kernel.v1.rs";
    /// Log entries.
    log from "pluggableharness.log.v1.rs";
    /// Status blocks beside a session.
    metadata from "pluggableharness.metadata.v1.rs";
    /// Metric observations.
    metric from "pluggableharness.metric.v1.rs";
    /// The parts of the model contract that other packages refer to.
    model from "pluggableharness.model.v1.rs";
    /// The calls of one turn and what came of them.
    plan from "pluggableharness.plan.v1.rs";
    /// Pictures of results.
    render from "pluggableharness.render.v1.rs";
    /// The closed subset of JSON Schema.
    schema from "pluggableharness.schema.v1.rs";
    /// What is known about a session.
    session from "pluggableharness.session.v1.rs";
    /// Commands that a human calls directly.
    slashcommand from "pluggableharness.slashcommand.v1.rs";
    /// The contract between the kernel and a tool provider.
    tool from "pluggableharness.tool.v1.rs";
    /// Finished trace spans.
    trace from "pluggableharness.trace.v1.rs";
}
