//! Code generated from `proto/`.
//!
//! The contract is compiled in this process, so no `protoc` is needed, and what comes out is checked in, so that an
//! ordinary build of a provider compiles neither a parser nor a generator.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use prost::Message;
use prost_types::FileDescriptorSet;

use crate::workspace_root;

/// Where the generated Rust lives, relative to the workspace root.
const RUST_DIRECTORY: &str = "crates/harness-proto/src/generated";

/// Name of the encoded descriptor set beside the generated Rust.
const DESCRIPTOR_FILE: &str = "descriptor.bin";

/// Arguments of `cargo xtask proto`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Write nothing; fail when the checked-in code is not what would be written.
    #[arg(long)]
    check: bool,
}

/// Generated files by their path relative to the workspace root.
pub type Generated = BTreeMap<PathBuf, Vec<u8>>;

/// Runs the chore.
///
/// # Errors
///
/// When the contract does not compile, a file cannot be read or written, or `--check` finds a difference.
pub fn run(arguments: &Arguments) -> Result<()> {
    let root = workspace_root();
    let expected = generate(&root)?;
    let stale = differences(&root, &expected)?;
    if arguments.check {
        return report(&stale);
    }
    for path in &stale {
        let target = root.join(path);
        match expected.get(path) {
            Some(bytes) => write(&target, bytes)?,
            None => fs::remove_file(&target).with_context(|| format!("removing {}", target.display()))?,
        }
    }
    Ok(())
}

/// Generates everything in memory.
///
/// # Errors
///
/// When the contract does not compile or the temporary directory cannot be used.
pub fn generate(root: &Path) -> Result<Generated> {
    let contract = compile(&root.join("proto"))?;
    rust(&contract)
}

/// Files that are missing, different or no longer generated, in order.
///
/// # Errors
///
/// When a checked-in file or directory cannot be read.
pub fn differences(root: &Path, expected: &Generated) -> Result<Vec<PathBuf>> {
    let mut stale = Vec::new();
    for (path, bytes) in expected {
        let found = match fs::read(root.join(path)) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        if found.as_deref() != Some(bytes) {
            stale.push(path.clone());
        }
    }
    stale.extend(checked_in(root)?.into_iter().filter(|path| !expected.contains_key(path)));
    stale.sort();
    Ok(stale)
}

/// The contract as one descriptor set, with comments and with the imported well-known types.
///
/// # Errors
///
/// When a file cannot be read or does not compile.
pub fn compile(proto: &Path) -> Result<FileDescriptorSet> {
    let mut files = Vec::new();
    collect(proto, "proto", &mut files)?;
    let mut compiler = protox::Compiler::new([proto])?;
    compiler.include_source_info(true).include_imports(true).open_files(&files)?;
    Ok(compiler.file_descriptor_set())
}

fn rust(contract: &FileDescriptorSet) -> Result<Generated> {
    let scratch = tempfile::tempdir().context("making a scratch directory")?;
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(true)
        .build_transport(false)
        .btree_map(".")
        .bytes(".")
        .emit_rerun_if_changed(false)
        .out_dir(scratch.path())
        .compile_fds(contract.clone())?;
    let mut names = Vec::new();
    collect(scratch.path(), "rs", &mut names)?;
    let mut generated = Generated::new();
    for name in names {
        let bytes = fs::read(&name)?;
        let own_package = !name.ends_with("google.protobuf.rs");
        if let Some(file_name) = name.file_name().filter(|_| own_package) {
            generated.insert(Path::new(RUST_DIRECTORY).join(file_name), bytes);
        }
    }
    generated
        .insert(Path::new(RUST_DIRECTORY).join(DESCRIPTOR_FILE), without_comments(contract).encode_to_vec());
    Ok(generated)
}

/// What reflection needs: comments and positions would only make every provider bigger.
fn without_comments(contract: &FileDescriptorSet) -> FileDescriptorSet {
    let mut contract = contract.clone();
    for file in &mut contract.file {
        file.source_code_info = None;
    }
    contract
}

fn checked_in(root: &Path) -> Result<Vec<PathBuf>> {
    let directory = root.join(RUST_DIRECTORY);
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    collect(&directory, "", &mut files)?;
    files.iter().map(|file| Ok(file.strip_prefix(root)?.to_path_buf())).collect()
}

/// Collects the files below `directory` that have the extension, in order; an empty extension takes every file.
fn collect(directory: &Path, extension: &str, files: &mut Vec<PathBuf>) -> Result<()> {
    let listing = fs::read_dir(directory).with_context(|| format!("listing {}", directory.display()))?;
    let mut entries = listing.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            collect(&path, extension, files)?;
        } else if extension.is_empty() || path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    Ok(())
}

fn write(target: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(directory) = target.parent() {
        fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    }
    fs::write(target, bytes).with_context(|| format!("writing {}", target.display()))
}

fn report(stale: &[PathBuf]) -> Result<()> {
    if stale.is_empty() {
        return Ok(());
    }
    let list = stale.iter().map(|path| format!("  {}\n", path.display())).collect::<String>();
    bail!("generated code is out of date; run `cargo xtask proto`:\n{list}")
}
