//! Programs over providers that a host has: every call is ruled, asked about, ordered and given up as a direct one is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use codemode::providers::{Offer, Providers};
use codemode::{CallStatus, Program, Progress, Reason, Report};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tool_host::people::{Decision, Preview, Proposal, Question, denied_by_user};
use tool_host::{Answerer, Approver, CallError, Host, Object, Policy};

use crate::support::{Folder, set_program};

/// Somebody who approves what has a word in its preview, answers every question, and writes down what was before them.
#[derive(Default)]
struct Person {
    approves: &'static str,
    seen: Mutex<Vec<String>>,
    before_them: AtomicUsize,
    most_before_them: AtomicUsize,
}

impl Person {
    async fn takes_their_time(&self) {
        let now = self.before_them.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_before_them.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.before_them.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Approver for Person {
    fn approve<'a>(&'a self, proposal: &'a Proposal<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            self.takes_their_time().await;
            let Preview::Tree(tree) = &proposal.preview else { panic!("no preview: {proposal:?}") };
            let shown = format!("{tree:?}");
            let willing = shown.contains(self.approves);
            self.seen.lock().unwrap().push(format!(
                "{} {}",
                proposal.tool.name,
                Value::from(proposal.arguments.clone())
            ));
            Decision::once(if willing { Ok(()) } else { Err(denied_by_user("it was denied")) })
        })
    }
}

impl Answerer for Person {
    fn answer<'a>(&'a self, question: &'a Question<'a>) -> BoxFuture<'a, Result<Object, CallError>> {
        Box::pin(async move {
            self.takes_their_time().await;
            Ok(Object::from_iter([("answer".to_owned(), question.arguments["question"].clone())]))
        })
    }
}

/// A host with `fx`, and whom it asks.
struct Session {
    folder: Folder,
    person: Arc<Person>,
    providers: Providers,
}

impl Session {
    async fn new(approves: &'static str, rules: Value) -> Self {
        set_program();
        let folder = Folder::new();
        let person = Arc::new(Person { approves, ..Person::default() });
        let host = Host::new(person.clone(), person.clone()).under(Policy::from_json(rules).unwrap());
        let providers = Providers::new(host, vec![folder.launch_fx().await], Offer::Everything);
        Self { folder, person, providers }
    }

    fn program(&self, code: &str) -> Program {
        Program::new(Arc::new(self.providers.for_session("s", self.folder.path())), code, "outer")
    }

    async fn run(&self, code: &str) -> Report {
        self.program(code).run().await
    }
}

fn statuses(report: &Report) -> Vec<CallStatus> {
    report.calls.iter().map(|call| call.status).collect()
}

#[tokio::test]
async fn what_changes_things_is_asked_about_with_its_preview() {
    let session = Session::new("would change good", json!([])).await;
    let code = "await tools.fx.change({text: 'good'});
                try { await tools.fx.change({text: 'bad'}) } catch (e) { return e.message }";
    let report = session.run(code).await;
    assert_eq!((report.reason, report.text.as_str()), (None, "it was denied"));
    assert_eq!(statuses(&report), [CallStatus::Ok, CallStatus::Denied]);
    assert_eq!(
        *session.person.seen.lock().unwrap(),
        [r#"change {"text":"good"}"#, r#"change {"text":"bad"}"#]
    );
    assert_eq!(session.folder.log(), ["preview good", "change good", "preview bad"]);
}

#[tokio::test]
async fn what_the_policy_denies_is_not_made_and_what_it_allows_is_not_asked_about() {
    let rules = json!([
        {"name": "hands off", "match": {"tool_name": "keyed"}, "action": "deny"},
        {"name": "go on", "match": {"tool_name": "change"}, "action": "allow"},
    ]);
    let session = Session::new("nothing", rules).await;
    let code = "await tools.fx.change({text: 'x'});
                try { await tools.fx.keyed({text: 'y'}) } catch (e) { return e.message }";
    let report = session.run(code).await;
    assert!(report.text.contains("fx.keyed is denied by the policy \"hands off\""), "{report:?}");
    assert_eq!(statuses(&report), [CallStatus::Ok, CallStatus::Denied]);
    assert!(session.person.seen.lock().unwrap().is_empty());
    assert_eq!(session.folder.log(), ["change x"]);
}

#[tokio::test]
async fn people_are_asked_one_thing_at_a_time() {
    let session = Session::new("would change", json!([])).await;
    let code = "const ask = (question) => tools.fx.ask({question});
                const all = await Promise.all([ask('a'), tools.fx.change({text: 'x'}), ask('b'), tools.fx.change({text: 'y'}), ask('c')]);
                return all.map((one) => one.answer ?? one.text)";
    let report = session.run(code).await;
    assert_eq!((report.reason, report.text.as_str()), (None, r#"["a","x","b","y","c"]"#));
    assert_eq!(session.person.most_before_them.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_program_that_is_given_up_withdraws_what_it_called() {
    let session = Session::new("would change", json!([])).await;
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let code = "const rest = [1, 2].map(() => tools.fx.keyed({text: 'same', ms: 600000}));
                await tools.fx.change({text: 'done'}); console.log('now');
                await tools.fx.change({text: 'long', ms: 600000})";
    let running = tokio::spawn(session.program(code).until(cancel).telling(|_: Progress| {}).run());
    session.folder.wait_for("begin long").await;
    session.folder.wait_for("begin same").await;
    stop.cancel();
    let report = running.await.unwrap();
    assert_eq!(report.reason, Some(Reason::Cancelled), "{report:?}");
    assert!(report.text.contains("fx.change ok, fx.change running (cancelled)"), "{report:?}");
    session.folder.wait_for("cancelled long").await;
    let log = session.folder.log();
    // Of the two with one key, the second never had its turn, and does not get it afterwards.
    assert_eq!(log.iter().filter(|line| *line == "begin same").count(), 1, "{log:?}");
    let next = session.run("return (await tools.fx.keyed({text: 'same'})).text").await;
    assert_eq!((next.reason, next.text.as_str()), (None, "same"));
}
