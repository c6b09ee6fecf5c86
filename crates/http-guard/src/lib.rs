//! An HTTP client that cannot be turned against the network it runs in.
//!
//! [`CheckedUrl`] is an address that was parsed once and looked at with care; [`Policy`] decides which of them may be
//! fetched; [`Guard`] fetches them. What makes it a guard:
//!
//! - What is decided on is what is connected to. Names are looked up once per hop, every address is held against
//!   [`Range`], and the connection is made to these addresses, also through a [`Proxy`].
//! - Redirects are hops like the first one, and only those within the site are followed.
//! - Every wait, every buffer and every decoded byte has a limit ([`Limits`]), and what came before a limit is kept
//!   ([`BodyEnd`]).
//! - Nothing is remembered: no cookies, no referrer, no connection, no TLS ticket.

mod address;
mod body;
mod client;
mod connect;
mod decode;
mod dns;
mod domains;
mod error;
mod exchange;
mod policy;
mod proxy;
mod random;
mod redact;
mod redirect;
mod resolve;
#[cfg(feature = "testing")]
pub mod testing;
mod url;

pub use crate::address::Range;
pub use crate::body::{Body, BodyEnd, Collected};
pub use crate::client::{Guard, Limits, Redirect, Request, Response, Settings, root_certificates};
pub use crate::domains::{Domains, PatternError};
pub use crate::error::{FetchError, Stopped};
pub use crate::policy::{Policy, Refusal};
pub use crate::proxy::{Proxy, ProxyError};
pub use crate::redact::{Redacted, is_credential, redact_text};
pub use crate::resolve::Resolver;
pub use crate::url::{CheckedUrl, Host, UrlError};
pub use http;

/// A certificate, as it is trusted.
pub type Certificate = rustls::pki_types::CertificateDer<'static>;
