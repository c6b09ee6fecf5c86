//! The archive of one program: a tar, gzipped, that depends on nothing but its content.

use std::io::{self, Read as _, Write as _};

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};

/// The largest program that is unpacked, in bytes. A compressed archive can claim any size.
pub const LARGEST_PROGRAM: u64 = 512 << 20;

/// A file for an archive.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name, without folders.
    pub name: String,
    /// Whether it can be executed.
    pub executable: bool,
    /// Its content.
    pub content: Vec<u8>,
}

/// Why a program could not be taken out of an archive.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// It is no such archive, or is damaged.
    #[error("it is no gzipped tar, or is damaged: {0}")]
    Damaged(#[from] io::Error),
    /// The program is not in it.
    #[error("it holds no file {0}")]
    Missing(String),
    /// The program is not a file.
    #[error("{0} in it is no regular file")]
    NotAFile(String),
    /// The program is larger than [`LARGEST_PROGRAM`].
    #[error("{name} in it has {bytes} bytes, more than the {LARGEST_PROGRAM} that are unpacked")]
    TooLarge {
        /// The program.
        name: String,
        /// Its size.
        bytes: u64,
    },
}

/// Packs `entries` in their order. The same entries give the same bytes: no time, owner, or name of this machine
/// goes in.
///
/// # Errors
/// A name is too long for the format.
pub fn pack(entries: &[Entry]) -> io::Result<Vec<u8>> {
    let zipped = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    let mut tar = tar::Builder::new(zipped);
    for entry in entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(entry.content.len() as u64);
        header.set_mode(if entry.executable { 0o755 } else { 0o644 });
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_entry_type(tar::EntryType::Regular);
        tar.append_data(&mut header, &entry.name, entry.content.as_slice())?;
    }
    let mut zipped = tar.into_inner()?;
    zipped.flush()?;
    zipped.finish()
}

/// Takes the file `name` out of an archive; what else is in it is not looked at.
///
/// # Errors
/// The archive is damaged, or has no such regular file of a size that is unpacked.
pub fn unpack(archive: &[u8], name: &str) -> Result<Vec<u8>, UnpackError> {
    let mut tar = tar::Archive::new(GzDecoder::new(archive));
    for entry in tar.entries()? {
        let entry = entry?;
        if entry.path_bytes().as_ref() != name.as_bytes() {
            continue;
        }
        if entry.header().entry_type() != tar::EntryType::Regular {
            return Err(UnpackError::NotAFile(name.to_owned()));
        }
        let bytes = entry.size();
        if bytes > LARGEST_PROGRAM {
            return Err(UnpackError::TooLarge { name: name.to_owned(), bytes });
        }
        let mut content = Vec::new();
        entry.take(LARGEST_PROGRAM).read_to_end(&mut content)?;
        return Ok(content);
    }
    Err(UnpackError::Missing(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, content: &[u8]) -> Entry {
        Entry { name: name.to_owned(), executable: true, content: content.to_vec() }
    }

    #[test]
    fn a_program_comes_out_as_it_went_in() {
        let program: Vec<u8> =
            (0..300_000_u32).map(|number| (number.wrapping_mul(number) >> 7) as u8).collect();
        let archive = pack(&[entry("LICENSE", b"text"), entry("provider-x", &program)]).unwrap();
        assert_eq!(unpack(&archive, "provider-x").unwrap(), program);
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        let entries = [entry("a", b"1"), entry("b", b"2")];
        assert_eq!(pack(&entries).unwrap(), pack(&entries).unwrap());
    }

    #[test]
    fn the_systems_tar_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.tar.gz"), pack(&[entry("program", b"#!/bin/sh\n")]).unwrap())
            .unwrap();
        let listed =
            std::process::Command::new("tar").arg("-tvzf").arg(folder.path().join("a.tar.gz")).output();
        let listed = listed.expect("tar(1) is needed for this test");
        let text = String::from_utf8_lossy(&listed.stdout);
        assert!(text.starts_with("-rwxr-xr-x") && text.trim_end().ends_with(" program"), "{text}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let archive = pack(&[entry("a", b"1")]).unwrap();
        assert!(matches!(unpack(&archive, "b"), Err(UnpackError::Missing(name)) if name == "b"));
        assert!(matches!(unpack(&archive[..archive.len() / 2], "b"), Err(UnpackError::Damaged(_))));
        assert!(matches!(unpack(b"no archive", "b"), Err(UnpackError::Damaged(_))));
    }

    #[test]
    fn a_link_is_no_program() {
        let mut tar = tar::Builder::new(GzBuilder::new().write(Vec::new(), Compression::fast()));
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, "a", "/bin/sh").unwrap();
        let archive = tar.into_inner().unwrap().finish().unwrap();
        assert!(matches!(unpack(&archive, "a"), Err(UnpackError::NotAFile(_))));
    }
}
