//! The catalog against the original Go plugin library, in both directions: a Go host that launches the catalog's
//! providers, and Go providers that `toolctl` drives. The Go programs live in `tests/interop`.
//!
//! There is nothing to use here; everything is in the tests, which need Go and fail without it.
