//! Approval and answers.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tool_host::people::Question;
use tool_host::people::{
    ApproveAll, Decision, DenyAll, NoAnswers, PreparedAnswers, Preview, Proposal, denied_by_user,
};
use tool_host::{Answerer, Approver, Call, CallError, Category, Event, Host, Object, Policy, Reporter};

use crate::support::{Launched, call, check_error, deserted, finish, text, willing};

/// Notes what it was shown, and decides by the tool's name.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Approver for Notes {
    fn approve<'a>(&'a self, proposal: &'a Proposal<'a>) -> BoxFuture<'a, Decision> {
        let preview = match &proposal.preview {
            Preview::Tree(_) => "preview",
            Preview::Unsupported => "nothing",
            Preview::Failed(_) => "failure",
        };
        self.0.lock().unwrap().push(format!("{} {preview}", proposal.tool.name));
        let denied = proposal.tool.name == "change_unseen";
        Box::pin(async move { Decision::once(if denied { Err(denied_by_user("no")) } else { Ok(()) }) })
    }
}

#[tokio::test]
async fn a_resource_is_approved_with_its_preview_first() {
    let launched = Launched::plain().await;
    let notes = Arc::new(Notes::default());
    let host = Host::new(notes.clone(), Arc::new(NoAnswers { hint: "-" }));
    let outcome = |tool| {
        let (host, provider) = (host.clone(), launched.provider.clone());
        async move { finish(host.call(&provider, call(tool, json!({})))).await.1 }
    };
    assert_eq!(text(&outcome("change").await), "change");
    assert_eq!(text(&outcome("fail_preview").await), "fail_preview");
    check_error(&outcome("change_unseen").await, Category::PermissionDenied, "no");
    assert_eq!(text(&outcome("fine").await), "fine");
    assert_eq!(*notes.0.lock().unwrap(), ["change preview", "fail_preview failure", "change_unseen nothing"]);
}

#[tokio::test]
async fn with_nobody_there_a_resource_is_denied_and_a_question_unanswered() {
    let launched = Launched::plain().await;
    for (tool, says) in [("change", "pass --yes"), ("ask", "pass --answers")] {
        let (_, outcome) =
            finish(deserted().call(&launched.provider, call(tool, json!({"question": "?"})))).await;
        check_error(&outcome, Category::PermissionDenied, says);
        assert_eq!(outcome.unwrap_err().code(), Some("no_human"));
    }
}

async fn ask(host: &Host, launched: &Launched) -> Result<Value, CallError> {
    finish(host.call(&launched.provider, call("ask", json!({"question": "?"})))).await.1.map(Value::Object)
}

fn answering(answers: Value) -> Host {
    Host::new(Arc::new(ApproveAll), Arc::new(PreparedAnswers::from_json(answers).unwrap()))
}

#[tokio::test]
async fn one_answer_fits_all_and_a_list_is_used_in_order() {
    let launched = Launched::plain().await;
    let always = answering(json!({"answer": "yes"}));
    assert_eq!(ask(&always, &launched).await.unwrap(), json!({"answer": "yes"}));
    assert_eq!(ask(&always, &launched).await.unwrap(), json!({"answer": "yes"}));
    let once = answering(json!([{"answer": "a"}, {"answer": "b"}]));
    assert_eq!(ask(&once, &launched).await.unwrap(), json!({"answer": "a"}));
    assert_eq!(ask(&once, &launched).await.unwrap(), json!({"answer": "b"}));
    assert_eq!(ask(&once, &launched).await.unwrap_err().code(), Some("no_human"));
}

#[tokio::test]
async fn an_answer_must_satisfy_the_output_schema() {
    let launched = Launched::plain().await;
    let error = ask(&answering(json!({"reply": "yes"})), &launched).await.unwrap_err();
    assert_eq!(error.category, Category::Unknown);
    assert!(error.message.contains("answer: is required and missing"), "{error}");
}

#[test]
fn answers_are_objects() {
    assert!(PreparedAnswers::from_json(json!("yes")).is_none());
    assert!(PreparedAnswers::from_json(json!(["yes"])).is_none());
}

#[tokio::test]
async fn a_tool_without_a_kind_is_refused() {
    let launched = Launched::plain().await;
    let (_, outcome) = finish(willing().call(&launched.provider, call("no_kind", json!({})))).await;
    check_error(&outcome, Category::PermissionDenied, "no_kind declares no kind");
}

/// Allows the first call for its session, and counts how often it is asked.
#[derive(Default)]
struct ForTheSession(Mutex<u32>);

impl Approver for ForTheSession {
    fn approve<'a>(&'a self, _: &'a Proposal<'a>) -> BoxFuture<'a, Decision> {
        *self.0.lock().unwrap() += 1;
        Box::pin(async { Decision::for_session(Ok(())) })
    }
}

#[tokio::test]
async fn a_decision_for_the_session_is_asked_once_for_each_tool_and_session() {
    let launched = Launched::plain().await;
    let approver = Arc::new(ForTheSession::default());
    let host = Host::new(approver.clone(), Arc::new(NoAnswers { hint: "-" }));
    let outcome = |tool: &str, session: &str| {
        let mut call = call(tool, json!({}));
        call.session = session.to_owned();
        host.call(&launched.provider, call).outcome()
    };
    let (one, other) = tokio::join!(outcome("change", "a"), outcome("change", "a"));
    assert!(one.is_ok() && other.is_ok());
    assert_eq!(*approver.0.lock().unwrap(), 1, "those who wait learn of the decision");
    outcome("change_unseen", "a").await.unwrap();
    outcome("change", "b").await.unwrap();
    outcome("change", "a").await.unwrap();
    assert_eq!(*approver.0.lock().unwrap(), 3);
}

fn ruled(approver: impl Approver + 'static, rules: Value) -> Host {
    Host::new(Arc::new(approver), Arc::new(PreparedAnswers::from_json(json!({"answer": "yes"})).unwrap()))
        .under(Policy::from_json(rules).unwrap())
}

#[tokio::test]
async fn what_the_policy_denies_is_not_made_whoever_approves() {
    let launched = Launched::plain().await;
    let host = ruled(ApproveAll, json!([{"name": "hands off", "action": "deny"}]));
    for tool in ["change", "fine", "ask"] {
        let (_, outcome) = finish(host.call(&launched.provider, call(tool, json!({"question": "?"})))).await;
        check_error(
            &outcome,
            Category::PermissionDenied,
            "is denied by the policy \"hands off\"; nothing was done",
        );
        let error = outcome.unwrap_err();
        assert_eq!((error.code(), &error.details["rule"]), (Some("denied_by_policy"), &json!("hands off")));
    }
}

#[tokio::test]
async fn what_the_policy_allows_is_not_asked_about() {
    let launched = Launched::plain().await;
    let host = ruled(
        DenyAll { hint: "-" },
        json!([{"name": "go", "match": {"tool_name": "change"}, "action": "allow"}]),
    );
    assert_eq!(text(&finish(host.call(&launched.provider, call("change", json!({})))).await.1), "change");
    let (_, outcome) = finish(host.call(&launched.provider, call("change_unseen", json!({})))).await;
    assert_eq!(outcome.unwrap_err().code(), Some("no_human"));
}

#[tokio::test]
async fn asking_about_what_cannot_be_asked_about_denies_it_with_a_warning() {
    let launched = Launched::plain().await;
    let host =
        ruled(ApproveAll, json!([{"name": "careful", "match": {"risk": "read_only"}, "action": "ask"}]));
    for tool in ["fine", "ask"] {
        let (_, outcome) = finish(host.call(&launched.provider, call(tool, json!({"question": "?"})))).await;
        check_error(&outcome, Category::PermissionDenied, "the policy \"careful\", which asks");
        let warnings = launched.warnings();
        assert!(
            warnings.iter().any(|warning| warning.contains("\"careful\"") && warning.contains(tool)),
            "{warnings:?}"
        );
    }
    assert_eq!(text(&finish(host.call(&launched.provider, call("change", json!({})))).await.1), "change");
}

/// Takes its time with each question, and notes the most that were before it at once.
#[derive(Default)]
struct OneAtATime {
    now: Mutex<u32>,
    most: Mutex<u32>,
}

impl Answerer for OneAtATime {
    fn answer<'a>(&'a self, _: &'a Question<'a>) -> BoxFuture<'a, Result<Object, CallError>> {
        Box::pin(async {
            let now = {
                let mut now = self.now.lock().unwrap();
                *now += 1;
                *now
            };
            let most = (*self.most.lock().unwrap()).max(now);
            *self.most.lock().unwrap() = most;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            *self.now.lock().unwrap() -= 1;
            Ok(Object::from_iter([("answer".to_owned(), json!("yes"))]))
        })
    }
}

#[tokio::test]
async fn a_person_is_asked_one_thing_at_a_time() {
    let launched = Launched::plain().await;
    let answerer = Arc::new(OneAtATime::default());
    let host = Host::new(Arc::new(ApproveAll), answerer.clone());
    let asked =
        (0..5).map(|_| host.call(&launched.provider, call("ask", json!({"question": "?"}))).outcome());
    let outcomes = futures_util::future::join_all(asked).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(*answerer.most.lock().unwrap(), 1);
}

#[tokio::test]
async fn work_in_place_of_a_provider_is_gated_as_its_calls_are() {
    let launched = Launched::plain().await;
    let payload = || json!({"text": "done here"}).as_object().unwrap().clone();
    let work = move |_: Call, reporter: Reporter| async move {
        reporter.send(Event::Progress { message: "half".to_owned(), fraction_complete: None }).await;
        Ok(payload())
    };
    let made = willing().call_with(&launched.provider, call("change", json!({})), work);
    let (events, outcome) = finish(made).await;
    assert_eq!((events.len(), text(&outcome)), (1, "done here"));
    let denied = deserted().call_with(&launched.provider, call("change", json!({})), work);
    check_error(&finish(denied).await.1, Category::PermissionDenied, "pass --yes");
}

#[tokio::test]
async fn work_in_place_of_a_provider_sees_that_it_is_given_up() {
    let launched = Launched::plain().await;
    let work = |_: Call, reporter: Reporter| async move {
        reporter.cancelled().await;
        Err(tool_host::call::cancelled())
    };
    let made = willing().call_with(&launched.provider, call("change", json!({})), work);
    made.canceller().cancel();
    check_error(&finish(made).await.1, Category::Cancelled, "cancelled");
}
