//! Numbers that nobody can guess.

/// A random number.
pub(crate) fn u16() -> u16 {
    let mut bytes = [0; 2];
    let provider = rustls::crypto::ring::default_provider();
    // It cannot fail where the system has a source of randomness; without one a TLS connection fails too.
    let _ = provider.secure_random.fill(&mut bytes);
    u16::from_be_bytes(bytes)
}
