//! `shell_read` reads, and nothing in a repository makes it do more.

use std::fs;
use std::path::{Path, PathBuf};

use provider_core::testing::Outcome;
use serde_json::json;

use crate::support::{Place, place, within};

impl Place {
    async fn read(&self, argv: &[&str]) -> Outcome {
        within(self.harness.call("shell_read", json!({ "argv": argv }))).await
    }

    async fn stdout(&self, argv: &[&str]) -> String {
        let outcome = self.read(argv).await;
        let payload = outcome.payload();
        assert_eq!(payload["exit_code"], 0, "{argv:?}: {payload}");
        payload["stdout"].as_str().unwrap().to_owned()
    }

    /// A repository in the root with one commit and one change.
    fn repository(&self) {
        let root = self.root.display();
        git(&self.root, "init -q -b main");
        fs::write(self.root.join("a.txt"), "one\n").unwrap();
        git(&self.root, "add a.txt");
        git(&self.root, "-c user.name=n -c user.email=e@x commit -q -m first");
        fs::write(self.root.join("a.txt"), "one\ntwo\n").unwrap();
        assert!(self.root.join(".git").exists(), "{root}");
    }
}

/// Sets up a repository, with the git that the tests need.
fn git(directory: &Path, line: &str) {
    let output = std::process::Command::new("git")
        .args(line.split(' '))
        .current_dir(directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("these tests need git");
    assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn programs_that_read_work() {
    let place = place(json!({})).await;
    place.repository();
    assert_eq!(place.stdout(&["cat", "a.txt"]).await, "one\ntwo\n");
    assert_eq!(place.stdout(&["wc", "-l", "a.txt"]).await, "2 a.txt\n");
    assert_eq!(place.stdout(&["grep", "-n", "two", "a.txt"]).await, "2:two\n");
    assert_eq!(place.stdout(&["sed", "-n", "2p", "a.txt"]).await, "two\n");
    assert_eq!(place.stdout(&["find", ".", "-name", "*.txt"]).await, "./a.txt\n");
    assert_eq!(place.stdout(&["sort", "-r", "a.txt"]).await, "two\none\n");
    assert_eq!(place.stdout(&["git", "status", "--short"]).await, " M a.txt\n");
    assert_eq!(place.stdout(&["git", "log", "--format=%s"]).await, "first\n");
    let diff = place.stdout(&["git", "diff", "--stat"]).await;
    assert!(diff.contains("1 file changed, 1 insertion(+)"), "{diff}");
    assert!(place.stdout(&["git", "blame", "a.txt"]).await.contains("one"));
}

#[tokio::test]
async fn arguments_are_passed_as_they_are() {
    let place = place(json!({})).await;
    assert_eq!(
        place.stdout(&["echo", "a  b", "$HOME", "*", "; rm x", "`id`"]).await,
        "a  b $HOME * ; rm x `id`\n"
    );
}

#[tokio::test]
async fn both_streams_and_the_exit_code_come_back_whole() {
    let place = place(json!({})).await;
    let outcome = place.read(&["cat", "missing"]).await;
    let payload = outcome.payload();
    assert_eq!((&payload["exit_code"], &payload["stdout"]), (&json!(1), &json!("")));
    assert!(payload["stderr"].as_str().unwrap().contains("No such file"), "{payload}");
    assert!(payload["sandbox"].as_str().unwrap().starts_with("read_only ("), "{payload}");
    let statuses = outcome.events.iter().filter(|event| event["event"] == "exit_status").count();
    assert_eq!(statuses, 1);
}

#[tokio::test]
async fn much_output_is_cut_and_counted() {
    let place = place(json!({ "max_output_bytes": 4096 })).await;
    let outcome = place.read(&["seq", "100000"]).await;
    let payload = outcome.payload();
    assert_eq!(payload["truncated"], true);
    let stdout = payload["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("1\n2\n") && stdout.ends_with("\n100000\n") && stdout.len() < 4096 + 200);
}

#[tokio::test]
async fn what_is_not_listed_is_refused_by_name() {
    let place = place(json!({})).await;
    let check = async |argv: &[&str], category: &str, part: &str| {
        let error = place.read(argv).await.error();
        assert_eq!(error.category, category, "{argv:?}: {}", error.message);
        assert!(error.message.contains(part), "{argv:?}: {}", error.message);
    };
    check(&["rm", "a"], "permission_denied", "rm is not one of the programs that only read").await;
    check(&["sort", "-o", "x"], "permission_denied", "sort is not allowed with -o").await;
    check(&["git", "commit"], "permission_denied", "git is not allowed with commit").await;
    check(&["./ls"], "permission_denied", "./ls is not one").await;
    check(&[], "invalid_arguments", "argv").await;
    check(&["cat", "a\0b"], "invalid_arguments", "NUL").await;
}

#[tokio::test]
async fn files_outside_the_root_are_not_read() {
    let place = place(json!({})).await;
    let outside = place.root.parent().unwrap().join("secret");
    fs::write(&outside, "secret").unwrap();
    std::os::unix::fs::symlink(&outside, place.root.join("link")).unwrap();
    for argv in [
        vec!["cat", outside.to_str().unwrap()],
        vec!["cat", "../secret"],
        vec!["cat", "link"],
        vec!["grep", "-r", "secret", ".."],
        vec!["ls", ".."],
        vec!["cat", "/etc/shadow"],
    ] {
        let outcome = place.read(&argv).await;
        let text = outcome.terminal().to_string();
        let refused = outcome.terminal()["event"] == "error" || outcome.payload()["exit_code"] != 0;
        assert!(refused && !text.contains("secret\""), "{argv:?}: {text}");
    }
}

#[tokio::test]
async fn the_environment_of_the_provider_is_not_to_be_seen() {
    let place = place(json!({})).await;
    let own = format!("/proc/{}/environ", std::process::id());
    let outcome = place.read(&["cat", &own]).await;
    assert_ne!(outcome.payload()["exit_code"], 0, "{}", outcome.payload());
    assert_eq!(outcome.payload()["stdout"], "");
}

/// Every setting by which git can be told to run something while it reads, as lines of its configuration. `EVIL` is a
/// command that leaves a trace.
const HOSTILE: &str = r#"
[core]
    fsmonitor = EVIL
    hooksPath = hooks
    pager = EVIL
    editor = EVIL
    askPass = EVIL
    sshCommand = EVIL
    gitProxy = EVIL
    alternateRefsCommand = EVIL
[pager]
    status = EVIL
    log = EVIL
    diff = EVIL
    show = EVIL
    blame = EVIL
    branch = EVIL
[diff]
    external = EVIL
    submodule = diff
[diff "x"]
    command = EVIL
    textconv = EVIL
[filter "x"]
    clean = EVIL
    smudge = EVIL
    process = EVIL
    required = true
[filter "with = sign"]
    clean = EVIL
    required = true
[merge "x"]
    driver = EVIL
[log]
    showSignature = true
[gpg]
    program = EVIL
[gpg "ssh"]
    program = EVIL
    defaultKeyCommand = EVIL
[gpg "openpgp"]
    program = EVIL
[credential]
    helper = "!EVIL"
[alias]
    status = "!EVIL"
    log = "!EVIL"
    lg = "!EVIL"
[interactive]
    diffFilter = EVIL
[sequence]
    editor = EVIL
[uploadpack]
    packObjectsHook = EVIL
[trailer "x"]
    command = EVIL
    cmd = EVIL
[submodule]
    recurse = true
[status]
    submoduleSummary = true
[protocol]
    allow = always
[protocol "ext"]
    allow = always
[remote "origin"]
    url = "ext::EVIL"
    uploadpack = EVIL
    vcs = evil
    promisor = true
    partialCloneFilter = "blob:none"
[include]
    path = more
"#;

/// A repository that tries to run a command in every way there is.
struct Hostile {
    trace: PathBuf,
    state: PathBuf,
}

impl Hostile {
    fn new(place: &Place) -> Self {
        place.repository();
        let root = &place.root;
        let trace = root.join("trace");
        fs::create_dir(&trace).unwrap();
        // It leaves a trace in the repository, and, because it might be confined, where temporary files go.
        let evil = root.join("evil.sh");
        let script = format!(
            "#!/bin/sh
: > '{}/'$$
[ -n \"$TMPDIR\" ] && : > \"$TMPDIR/evil-trace.$$\"
cat
",
            trace.display()
        );
        fs::write(&evil, script).unwrap();
        fs::set_permissions(&evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut config = fs::read_to_string(root.join(".git/config")).unwrap();
        // Git runs it through a shell, where a program in the repository could also not be run at all.
        let command = format!("sh {}", evil.display());
        config.push_str(&HOSTILE.replace("EVIL", &command));
        fs::write(root.join(".git/config"), config).unwrap();
        fs::write(
            root.join(".git/more"),
            format!("[filter \"included\"]\n    clean = {command}\n    required = true\n"),
        )
        .unwrap();
        fs::write(
            root.join(".gitattributes"),
            "*.txt diff=x filter=x\n*.sign filter=with\n*.inc filter=included\n",
        )
        .unwrap();
        fs::write(root.join("b.inc"), "x").unwrap();
        fs::create_dir(root.join("hooks")).unwrap();
        for hook in ["post-index-change", "post-checkout", "reference-transaction", "pre-auto-gc"] {
            fs::copy(&evil, root.join("hooks").join(hook)).unwrap();
            fs::copy(&evil, root.join(".git/hooks").join(hook)).unwrap();
        }
        Self { trace, state: place.root.parent().unwrap().join("state") }
    }

    fn traces(&self) -> usize {
        fs::read_dir(&self.trace).unwrap().count() + evil_traces(&self.state)
    }
}

/// The traces below a directory.
fn evil_traces(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => evil_traces(&entry.path()),
            _ => usize::from(entry.file_name().to_string_lossy().starts_with("evil-trace")),
        })
        .sum()
}

const READING: &[&[&str]] = &[
    &["git", "status"],
    &["git", "status", "--short", "--ignored"],
    &["git", "diff"],
    &["git", "diff", "--cached"],
    &["git", "diff", "HEAD"],
    &["git", "log", "-p"],
    &["git", "log", "--format=%H %an %(trailers)"],
    &["git", "show"],
    &["git", "show", "HEAD:a.txt"],
    &["git", "blame", "a.txt"],
    &["git", "grep", "one"],
    &["git", "ls-files", "-m"],
    &["git", "branch", "-a"],
    &["git", "tag", "-l"],
    &["git", "remote", "-v"],
    &["git", "config", "--list"],
    &["git", "stash", "list"],
    &["git", "cat-file", "-p", "HEAD"],
    &["git", "cat-file", "-p", "0123456789012345678901234567890123456789"],
    &["git", "log", "0123456789012345678901234567890123456789"],
    &["git", "diff-files", "-p"],
    &["git", "diff-index", "-p", "HEAD"],
    &["git", "rev-list", "--all", "--objects"],
    &["git", "describe", "--always", "--dirty"],
    &["git", "for-each-ref"],
    &["git", "shortlog", "HEAD"],
    &["git", "reflog"],
    &["git", "check-attr", "-a", "a.txt"],
    &["git", "-C", ".", "status"],
];

#[tokio::test]
async fn a_hostile_repository_executes_nothing() {
    let place = place(json!({})).await;
    let hostile = Hostile::new(&place);
    for argv in READING {
        let outcome = place.read(argv).await;
        assert_eq!(hostile.traces(), 0, "{argv:?}: {}", outcome.terminal());
        let payload = outcome.payload();
        let unknown = argv.iter().any(|argument| argument.starts_with("0123"));
        assert_eq!(payload["exit_code"] == 0, !unknown, "{argv:?}: {payload}");
        let output = format!("{}{}", payload["stdout"], payload["stderr"]);
        // Neither run, nor tried: in the read-only sandbox the trace alone would not show.
        for sign in ["evil.sh: ", "cannot create", "Read-only", "Permission denied", "cannot run"] {
            assert!(!output.contains(sign), "{argv:?}: {output}");
        }
    }
    assert!(place.stdout(&["git", "status", "--short"]).await.contains(" M a.txt"));
}

#[tokio::test]
async fn the_same_repository_does_execute_something_without_care() {
    let place = place(json!({})).await;
    let hostile = Hostile::new(&place);
    for line in ["status", "diff", "log -p"] {
        let before = hostile.traces();
        let _ = std::process::Command::new("git")
            .args(line.split(' '))
            .current_dir(&place.root)
            .output()
            .unwrap();
        assert!(hostile.traces() > before, "git {line} ran nothing, so that the test above shows nothing");
    }
}

#[tokio::test]
async fn a_hostile_submodule_executes_nothing() {
    let place = place(json!({})).await;
    place.repository();
    let sub = place.root.join("sub");
    fs::create_dir(&sub).unwrap();
    git(&sub, "init -q -b main");
    fs::write(sub.join("f.txt"), "x\n").unwrap();
    git(&sub, "add f.txt");
    git(&sub, "-c user.name=n -c user.email=e@x commit -q -m sub");
    git(&place.root, "add sub");
    let trace = place.root.join("trace");
    fs::create_dir(&trace).unwrap();
    let mut config = fs::read_to_string(sub.join(".git/config")).unwrap();
    config.push_str(&format!(
        "[core]\n fsmonitor = \"sh -c ': > $TMPDIR/evil-trace; : > {0}/a'\"\n[filter \"y\"]\n clean = \"sh -c ': > $TMPDIR/evil-trace; : > {0}/b; cat'\"\n",
        trace.display()
    ));
    fs::write(sub.join(".git/config"), config).unwrap();
    fs::write(sub.join(".gitattributes"), "* filter=y\n").unwrap();
    fs::write(sub.join("f.txt"), "y\n").unwrap();
    let careless = std::process::Command::new("git").arg("status").current_dir(&place.root).output().unwrap();
    assert!(careless.status.success());
    assert!(fs::read_dir(&trace).unwrap().count() > 0, "this repository is not hostile enough");
    for entry in fs::read_dir(&trace).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    for argv in [
        &["git", "status"][..],
        &["git", "diff"],
        &["git", "diff", "HEAD"],
        &["git", "log", "-p"],
        &["git", "show"],
    ] {
        let outcome = place.read(argv).await;
        let traces = evil_traces(&place.root.parent().unwrap().join("state"));
        assert_eq!((fs::read_dir(&trace).unwrap().count(), traces), (0, 0), "{argv:?}");
        let output = outcome.terminal().to_string();
        assert!(
            !output.contains("Read-only") && !output.contains("cannot create") && !output.contains("denied"),
            "{argv:?}: {output}"
        );
    }
}

#[tokio::test]
async fn programs_of_the_root_are_not_run() {
    let place = place(json!({ "env": { "PATH": "/nowhere" } })).await;
    let bin = place.root.join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("cat"), "#!/bin/sh\necho evil\n").unwrap();
    fs::set_permissions(bin.join("cat"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(place.root.join("x"), "good").unwrap();
    assert_eq!(place.stdout(&["cat", "x"]).await, "good");
}

#[tokio::test]
async fn many_may_run_at_one_time() {
    let place = place(json!({})).await;
    let calls = (0..12).map(|number: u32| {
        let harness = place.harness.clone();
        tokio::spawn(async move {
            let argv = json!({ "argv": ["echo", number.to_string()] });
            within(harness.call("shell_read", argv)).await.payload()["stdout"].as_str().unwrap().to_owned()
        })
    });
    let mut outputs = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        outputs.push(call.await.unwrap());
    }
    let expected: Vec<String> = (0..12).map(|number: u32| format!("{number}\n")).collect();
    assert_eq!(outputs, expected);
}
