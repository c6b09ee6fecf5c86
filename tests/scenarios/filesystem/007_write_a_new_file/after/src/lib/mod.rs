//! A module.
