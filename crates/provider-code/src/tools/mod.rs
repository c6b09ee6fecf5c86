//! One file per tool, named as on the wire.

pub(crate) mod execute;
