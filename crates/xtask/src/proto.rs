//! Code generated from `proto/`.
//!
//! The contract is compiled in this process, so no `protoc` is needed, and what comes out is checked in, so that an
//! ordinary build of a provider compiles neither a parser nor a generator.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use prost::Message;
use prost_types::FileDescriptorSet;
use prost_types::compiler::{CodeGeneratorRequest, CodeGeneratorResponse};

use crate::workspace_root;

/// Where the generated Rust lives, relative to the workspace root.
const RUST_DIRECTORY: &str = "crates/harness-proto/src/generated";

/// Name of the encoded descriptor set beside the generated Rust.
const DESCRIPTOR_FILE: &str = "descriptor.bin";

/// The Go module that talks to the catalog over the real plugin library, relative to the workspace root.
const GO_MODULE_DIRECTORY: &str = "tests/interop";

/// Import path of that module's generated packages, which live in its `gen` directory.
const GO_GENERATED_MODULE: &str = "github.com/pluggable-harness/catalog/tests/interop/gen";

/// The packages the Go programs need; the others would only be dead weight.
const GO_PACKAGES: [&str; 15] = [
    "pluggableharness.common.v1",
    "pluggableharness.config.v1",
    "pluggableharness.content.v1",
    "pluggableharness.kernel.v1",
    "pluggableharness.log.v1",
    "pluggableharness.metadata.v1",
    "pluggableharness.metric.v1",
    "pluggableharness.model.v1",
    "pluggableharness.plan.v1",
    "pluggableharness.render.v1",
    "pluggableharness.schema.v1",
    "pluggableharness.session.v1",
    "pluggableharness.tool.v1",
    "pluggableharness.trace.v1",
    "toolcatalog.control.v1",
];

/// Arguments of `cargo xtask proto`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Write nothing; fail when the checked-in code is not what would be written.
    #[arg(long)]
    check: bool,
    /// Leave out the Go stubs of the interop tests, for machines without Go.
    #[arg(long)]
    without_go: bool,
}

/// Generated files that fill one directory: whatever else lies there is left over.
#[derive(Debug)]
pub struct Generated {
    /// The directory, relative to the workspace root.
    pub directory: PathBuf,
    /// Contents by path relative to the workspace root.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

/// Runs the chore.
///
/// # Errors
///
/// When the contract does not compile, a file cannot be read or written, or `--check` finds a difference.
pub fn run(arguments: &Arguments) -> Result<()> {
    let root = workspace_root();
    let contract = compile(&root.join("proto"))?;
    let mut parts = vec![rust(&contract)?];
    if !arguments.without_go {
        parts.push(go(&root, &contract)?);
    }
    let mut stale = Vec::new();
    for part in &parts {
        stale.extend(part.differences(&root)?);
        if !arguments.check {
            part.write(&root)?;
        }
    }
    if arguments.check { report(&stale) } else { Ok(()) }
}

impl Generated {
    /// Files that are missing, different or left over, in order.
    ///
    /// # Errors
    ///
    /// When a file or directory cannot be read.
    pub fn differences(&self, root: &Path) -> Result<Vec<PathBuf>> {
        let mut stale = self.left_over(root)?;
        for (path, bytes) in &self.files {
            let found = match fs::read(root.join(path)) {
                Ok(found) => Some(found),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
            };
            if found.as_deref() != Some(bytes) {
                stale.push(path.clone());
            }
        }
        stale.sort();
        Ok(stale)
    }

    /// Makes the directory hold these files and no others.
    ///
    /// # Errors
    ///
    /// When a file or directory cannot be read or written.
    pub fn write(&self, root: &Path) -> Result<()> {
        for path in self.differences(root)? {
            let target = root.join(&path);
            match self.files.get(&path) {
                Some(bytes) => write(&target, bytes)?,
                None => {
                    fs::remove_file(&target).with_context(|| format!("removing {}", target.display()))?;
                }
            }
        }
        Ok(())
    }

    fn left_over(&self, root: &Path) -> Result<Vec<PathBuf>> {
        let directory = root.join(&self.directory);
        let mut found = Vec::new();
        if directory.exists() {
            collect(&directory, "", &mut found)?;
        }
        let mut left_over = Vec::new();
        for path in found {
            let path = path.strip_prefix(root)?;
            if !self.files.contains_key(path) {
                left_over.push(path.to_path_buf());
            }
        }
        Ok(left_over)
    }
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

/// The Rust types of the whole contract and its descriptor set.
///
/// # Errors
///
/// When generating fails or the scratch directory cannot be used.
pub fn rust(contract: &FileDescriptorSet) -> Result<Generated> {
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
    let directory = PathBuf::from(RUST_DIRECTORY);
    let mut files = BTreeMap::new();
    for name in names {
        let bytes = fs::read(&name)?;
        let own_package = !name.ends_with("google.protobuf.rs");
        if let Some(file_name) = name.file_name().filter(|_| own_package) {
            files.insert(directory.join(file_name), bytes);
        }
    }
    files.insert(directory.join(DESCRIPTOR_FILE), without_comments(contract).encode_to_vec());
    Ok(Generated { directory, files })
}

/// The Go types and stubs that the interop tests need, made by the generators their module pins.
///
/// # Errors
///
/// When Go is missing or a generator fails.
pub fn go(root: &Path, contract: &FileDescriptorSet) -> Result<Generated> {
    let module = root.join(GO_MODULE_DIRECTORY);
    let directory = Path::new(GO_MODULE_DIRECTORY).join("gen");
    let request = go_request(contract).encode_to_vec();
    let mut files = BTreeMap::new();
    for generator in ["protoc-gen-go", "protoc-gen-go-grpc"] {
        let response = CodeGeneratorResponse::decode(run_go_tool(&module, generator, &request)?.as_slice())?;
        if let Some(error) = response.error {
            bail!("{generator}: {error}");
        }
        for file in response.file {
            files.insert(directory.join(file.name()), file.content().as_bytes().to_vec());
        }
    }
    Ok(Generated { directory, files })
}

fn go_request(contract: &FileDescriptorSet) -> CodeGeneratorRequest {
    let proto_file = without_comments(contract).file;
    let wanted = proto_file.iter().filter(|file| GO_PACKAGES.contains(&file.package()));
    let file_to_generate = wanted.map(|file| file.name().to_owned()).collect();
    let mut parameter = format!("module={GO_GENERATED_MODULE}");
    for file in &proto_file {
        if let Some(go_package) = go_package(file.package()) {
            parameter.push_str(&format!(",M{}={go_package}", file.name()));
        }
    }
    CodeGeneratorRequest { file_to_generate, parameter: Some(parameter), proto_file, compiler_version: None }
}

/// `pluggableharness.tool.v1` becomes the directory and package `toolv1`.
fn go_package(package: &str) -> Option<String> {
    let name = package.strip_prefix("pluggableharness.").or(package.strip_prefix("toolcatalog."))?;
    Some(format!("{GO_GENERATED_MODULE}/{}", name.replace('.', "")))
}

fn run_go_tool(module: &Path, tool: &str, input: &[u8]) -> Result<Vec<u8>> {
    let mut child = Command::new("go")
        .args(["tool", tool])
        .current_dir(module)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting `go`, which the stubs of the interop tests need (--without-go leaves them out)")?;
    // A generator reads all of its input before it writes, so neither side can block the other.
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input).with_context(|| format!("writing to {tool}"))?;
    }
    let output = child.wait_with_output().with_context(|| format!("waiting for {tool}"))?;
    if !output.status.success() {
        bail!("`go tool {tool}` ended with {}", output.status);
    }
    Ok(output.stdout)
}

/// What reflection needs: comments and positions would only make every provider bigger.
fn without_comments(contract: &FileDescriptorSet) -> FileDescriptorSet {
    let mut contract = contract.clone();
    for file in &mut contract.file {
        file.source_code_info = None;
    }
    contract
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
