//! Programs over a provider of their own: what they may call, in which order, and what is left when they are given up.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use provider_code::Code;
use provider_core::testing::{Harness, Outcome};
use serde_json::{Value, json};
use tempfile::TempDir;
use tool_host::{Call, LaunchOptions, Provider, ProviderSource};

/// How long things may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The code provider over the provider `fx`, and what `fx` has written down.
struct Bench {
    folder: TempDir,
    harness: Harness,
}

/// The provider that is called.
fn fx() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_provider-code")).with_file_name("examples").join("fx");
    let hint = "`cargo test -p provider-code` builds it, `--test` alone does not";
    assert!(path.exists(), "{} is missing: {hint}", path.display());
    path
}

fn config(folder: &Path, more: Value) -> Value {
    let log = json!({"log": folder.join("log")}).to_string();
    let mut provider_config = serde_json::Map::new();
    provider_config.insert(fx().to_str().unwrap().to_owned(), log.into());
    let mut config = json!({"providers": [fx()], "provider_config": provider_config});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    config
}

impl Bench {
    async fn new(more: Value) -> Self {
        static PROGRAM: Once = Once::new();
        PROGRAM.call_once(|| codemode::set_program(env!("CARGO_BIN_EXE_provider-code")));
        let folder = TempDir::new().unwrap();
        let harness = Harness::start::<Code>(config(folder.path(), more)).await.unwrap();
        let harness = harness.in_directory(folder.path()).in_session("one");
        Self { folder, harness }
    }

    async fn execute(&self, code: &str) -> Outcome {
        self.harness.call("execute", json!({"code": code})).await
    }

    async fn text(&self, code: &str) -> String {
        self.execute(code).await.payload()["text"].as_str().unwrap().to_owned()
    }

    fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    async fn wait_for(&self, line: &str) {
        let began = Instant::now();
        while !self.log().iter().any(|known| known == line) {
            assert!(began.elapsed() < PATIENCE, "{line:?} was never written: {:?}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test]
async fn a_program_gets_results_and_its_calls_are_listed() {
    let bench = Bench::new(json!({})).await;
    let outcome = bench
        .execute("const {text} = await tools.fx.echo({text: 'q'}); console.log('l'); await tools.fx.echo({text: 'boom'}).catch(() => 0); return text")
        .await;
    let expected = json!({
        "text": "q\n\nl",
        "calls": [{"tool": "fx.echo", "status": "ok"}, {"tool": "fx.echo", "status": "failed"}],
    });
    assert_eq!(outcome.payload(), &expected);
}

#[tokio::test]
async fn a_failed_program_is_an_error_that_begins_with_the_reason() {
    let bench = Bench::new(json!({"slice_ms": 300})).await;
    let error = bench.execute("await tools.fx.echo({text: 'boom'})").await.error();
    assert_eq!(error.category, "execution_failed");
    assert!(error.message.starts_with("threw: Error: boom!\n"), "{}", error.message);
    assert!(error.message.ends_with("Calls made: fx.echo failed"), "{}", error.message);
    let error = bench.execute("for(;;);").await.error();
    assert!(error.message.starts_with("time: "), "{}", error.message);
}

#[tokio::test]
async fn wrong_input_is_refused_by_the_provider_and_nothing_runs() {
    let bench = Bench::new(json!({})).await;
    let message = bench.text("try { await tools.fx.echo({txt: 1}) } catch (e) { return e.message }").await;
    assert!(message.contains("text: missing") && message.contains("did you mean text?"), "{message}");
    assert_eq!(bench.log(), Vec::<String>::new());
}

#[tokio::test]
async fn only_what_reads_is_offered() {
    let bench = Bench::new(json!({})).await;
    assert_eq!(bench.text("return Object.keys(tools.fx)").await, r#"["echo","keyed","exclusive"]"#);
    let error = bench.execute("await tools.fx.change({text: 'x'})").await.error();
    assert!(error.message.contains("no tool fx.change"), "{}", error.message);
    assert_eq!(bench.log(), Vec::<String>::new());
    let bench = Bench::new(json!({"allow_resources": true})).await;
    assert_eq!(bench.text("return (await tools.fx.change({text: 'x'})).text").await, "x");
    assert_eq!(bench.log(), ["change x"]);
    let refused =
        bench.text("try { await tools.fx.ask({question: 'Who?'}) } catch (e) { return e.message }").await;
    assert!(refused.contains("nobody is there"), "{refused}");
}

#[tokio::test]
async fn calls_keep_session_directory_and_an_id_of_their_own() {
    let bench = Bench::new(json!({})).await;
    let folder = bench.folder.path().display();
    assert_eq!(
        bench.text("return (await tools.fx.echo({text: 'where'})).text").await,
        format!("one {folder}")
    );
    let code = "await tools.fx.echo({text: 'a'}); return (await tools.fx.echo({text: 'id'})).text";
    let outcome = bench.harness.call_as("outer", "execute", json!({"code": code}), None).await;
    assert_eq!(outcome.payload()["text"], "outer/2");
}

/// Whether two things that were written down overlapped.
fn overlapped(log: &[String], one: &str, other: &str) -> bool {
    let at = |line: String| log.iter().position(|known| *known == line).unwrap();
    at(format!("begin {one}")) < at(format!("end {other}"))
        && at(format!("begin {other}")) < at(format!("end {one}"))
}

#[tokio::test]
async fn calls_run_together_as_far_as_their_tools_allow() {
    let bench = Bench::new(json!({})).await;
    let code = "await Promise.all([
        tools.fx.keyed({text: 'same', ms: 300}), tools.fx.keyed({text: 'same', ms: 300}),
        tools.fx.keyed({text: 'other', ms: 900})])";
    bench.execute(code).await.payload();
    let log = bench.log();
    let same: Vec<&str> = log.iter().map(String::as_str).filter(|line| line.ends_with("same")).collect();
    assert_eq!(same, ["begin same", "end same", "begin same", "end same"]);
    assert!(overlapped(&log, "same", "other"), "{log:?}");

    let bench = Bench::new(json!({})).await;
    let code =
        "await Promise.all([tools.fx.echo({text: 'a', ms: 200}), tools.fx.exclusive({text: 'x', ms: 200}),
        tools.fx.echo({text: 'b', ms: 200})])";
    bench.execute(code).await.payload();
    let log = bench.log();
    assert!(!overlapped(&log, "a", "x") && !overlapped(&log, "x", "b"), "{log:?}");
}

#[tokio::test]
async fn a_program_that_is_given_up_ends_its_calls_and_says_what_was_done() {
    let bench = Bench::new(json!({"allow_resources": true})).await;
    let code = "await tools.fx.change({text: 'first'}); await tools.fx.change({text: 'long', ms: 600000})";
    let harness = bench.harness.clone();
    let running =
        tokio::spawn(async move { harness.call_as("outer", "execute", json!({"code": code}), None).await });
    bench.wait_for("begin long").await;
    assert!(bench.harness.cancel("outer").await);
    let outcome = running.await.unwrap();
    bench.wait_for("cancelled long").await;
    let last = outcome.events.last().unwrap();
    let note = last["payload"]["note"].as_str().unwrap();
    assert!(note.contains("called fx.change: ok"), "{last}");
}

#[tokio::test]
async fn many_programs_run_at_once() {
    let bench = Bench::new(json!({})).await;
    let run = |number: usize| {
        let harness = bench.harness.clone();
        let code = format!("return (await tools.fx.echo({{text: 'n{number}', ms: 50}})).text");
        tokio::spawn(async move { harness.call("execute", json!({"code": code})).await })
    };
    for (number, running) in (0..8).map(run).collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(running.await.unwrap().payload()["text"], format!("n{number}"));
    }
}

#[tokio::test]
async fn a_preview_shows_the_program_and_what_it_can_reach() {
    let bench = Bench::new(json!({})).await;
    let tree = bench.harness.preview_as("p", "execute", json!({"code": "return 1\n// two"})).await.unwrap();
    let shown = format!("{tree:?}");
    assert!(shown.contains("can call tools of fx") && shown.contains("return 1\\n// two"), "{shown}");
}

#[tokio::test]
async fn a_result_is_shown_again() {
    let bench = Bench::new(json!({})).await;
    let payload = json!({"text": "q", "calls": [{"tool": "fx.echo", "status": "ok"}]});
    let shown = format!("{:?}", bench.harness.render(&payload).await.unwrap());
    assert!(shown.contains("\"q\"") && shown.contains("1 call") && shown.contains("fx.echo"), "{shown}");
}

async fn refused(config: Value) -> String {
    match Harness::start::<Code>(config).await {
        Ok(_) => panic!("it was accepted"),
        Err(status) => status.message().to_owned(),
    }
}

#[tokio::test]
async fn wrong_providers_are_refused_by_name() {
    let folder = TempDir::new().unwrap();
    let message =
        refused(json!({"providers": ["nothing", "code"], "provider_config": {"search": "{}"}})).await;
    for part in [
        "provider_config.search",
        "providers: nothing: there is no program provider-nothing",
        "cannot run programs",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let path = fx().to_str().unwrap().to_owned();
    let message =
        refused(json!({"providers": [path.clone()], "provider_config": {path.clone(): "{\"lag\": 1}"}}))
            .await;
    assert!(message.contains("lag") && message.contains("did you mean log?"), "{message}");
    let message = refused(json!({"providers": [path.clone()], "provider_config": {path: "nonsense"}})).await;
    assert!(message.contains("no JSON object"), "{message}");
    let itself = json!({"providers": [env!("CARGO_BIN_EXE_provider-code")]});
    assert!(refused(itself).await.contains("a program cannot run programs"));
    drop(folder);
}

/// Processes whose parent is this one.
fn children(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.contains(&format!("PPid:\t{parent}\n"))
    };
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}

#[tokio::test]
async fn the_real_program_works_and_takes_its_providers_with_it() {
    let folder = TempDir::new().unwrap();
    let source = ProviderSource::Path(env!("CARGO_BIN_EXE_provider-code").into());
    let provider = Provider::launch(&source, LaunchOptions::default()).await.unwrap();
    let Value::Object(config) = config(folder.path(), json!({})) else { panic!("an object") };
    provider.configure(config).await.unwrap();
    let Value::Object(arguments) = json!({"code": "return (await tools.fx.echo({text: 'x'})).text"}) else {
        panic!("an object")
    };
    let payload = provider.invoke(Call::new("execute", arguments, "s")).outcome().await.unwrap();
    assert_eq!(payload["text"], "x");
    let started = children(provider.pid().unwrap());
    assert!(!started.is_empty());
    provider.stop().await;
    let began = Instant::now();
    while started.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
        assert!(began.elapsed() < PATIENCE, "{started:?} live on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
