//! The code provider over the provider `fx`, and what `fx` writes down.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use provider_code::Code;
use provider_core::testing::{Harness, Outcome};
use serde_json::{Value, json};
use tempfile::TempDir;
use tool_host::{LaunchOptions, Object, Provider, ProviderSource};

/// How long things may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The code provider in this process, and the folder that `fx` writes to.
pub(crate) struct Bench {
    pub(crate) folder: Folder,
    pub(crate) harness: Harness,
}

/// A folder with the log of `fx`.
pub(crate) struct Folder(TempDir);

/// The provider that is called.
pub(crate) fn fx() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_provider-code")).with_file_name("examples").join("fx");
    let hint = "`cargo test -p provider-code` builds it, `--test` alone does not";
    assert!(path.exists(), "{} is missing: {hint}", path.display());
    path
}

pub(crate) fn object(value: Value) -> Object {
    let Value::Object(object) = value else { panic!("no object: {value}") };
    object
}

/// Names the program that becomes the sandbox: a test binary is none.
pub(crate) fn set_program() {
    static PROGRAM: Once = Once::new();
    PROGRAM.call_once(|| codemode::set_program(env!("CARGO_BIN_EXE_provider-code")));
}

pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path().join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) async fn wait_for(&self, line: &str) {
        until(line, || self.log().iter().any(|known| known == line)).await;
    }

    /// The configuration of `fx`.
    fn fx_config(&self) -> Value {
        json!({"log": self.path().join("log")})
    }

    /// The configuration of the code provider over `fx`.
    pub(crate) fn config(&self, more: Value) -> Value {
        let provider_config = Object::from_iter([(
            fx().to_str().unwrap().to_owned(),
            Value::String(self.fx_config().to_string()),
        )]);
        let mut config = object(json!({"providers": [fx()], "provider_config": provider_config}));
        config.extend(object(more));
        Value::Object(config)
    }

    /// `fx` itself.
    pub(crate) async fn launch_fx(&self) -> Provider {
        let provider = Provider::launch(&ProviderSource::Path(fx()), LaunchOptions::default()).await.unwrap();
        provider.configure(object(self.fx_config())).await.unwrap();
        provider
    }
}

impl Bench {
    pub(crate) async fn new(more: Value) -> Self {
        set_program();
        let folder = Folder::new();
        let harness = Harness::start::<Code>(folder.config(more)).await.unwrap();
        let harness = harness.in_directory(folder.path()).in_session("one");
        Self { folder, harness }
    }

    pub(crate) async fn execute(&self, code: &str) -> Outcome {
        self.harness.call("execute", json!({"code": code})).await
    }

    pub(crate) async fn text(&self, code: &str) -> String {
        self.execute(code).await.payload()["text"].as_str().unwrap().to_owned()
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.folder.log()
    }
}

/// Whether two things that were written down overlapped.
pub(crate) fn overlapped(log: &[String], one: &str, other: &str) -> bool {
    let at = |line: String| log.iter().position(|known| *known == line).unwrap();
    at(format!("begin {one}")) < at(format!("end {other}"))
        && at(format!("begin {other}")) < at(format!("end {one}"))
}
