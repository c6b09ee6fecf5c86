//! Random bytes that nobody can guess.

use std::fs::File;
use std::io::Read as _;

/// 32 bytes from the system.
///
/// # Errors
/// The system has none to give.
pub(super) fn bytes() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// 32 bytes as hexadecimal digits.
///
/// # Errors
/// As [`bytes`].
pub(super) fn token() -> std::io::Result<String> {
    Ok(bytes()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether both are equal, in a time that does not tell where they differ.
pub(super) fn equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_are_long() {
        let (one, other) = (token().unwrap(), token().unwrap());
        assert_eq!(one.len(), 64);
        assert!(!equal(one.as_bytes(), other.as_bytes()));
        assert!(equal(one.as_bytes(), one.clone().as_bytes()));
        assert!(!equal(b"a", b"ab"));
    }
}
