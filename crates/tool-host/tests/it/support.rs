//! Launching the awkward provider.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tool_host::notice::What;
use tool_host::people::{ApproveAll, DenyAll, NoAnswers};
use tool_host::{
    Call, Category, Event, Host, Invocation, LaunchOptions, Notices, Object, Outcome, Provider,
    ProviderSource,
};

/// A provider, and what happened beside its calls.
pub(crate) struct Launched {
    pub(crate) provider: Provider,
    notices: Arc<Mutex<Vec<What>>>,
}

impl Launched {
    pub(crate) async fn plain() -> Self {
        Self::with(&[]).await
    }

    /// With these variables in its environment.
    pub(crate) async fn with(env: &[(&str, &str)]) -> Self {
        let notices = Arc::new(Mutex::new(Vec::new()));
        let sink = notices.clone();
        let options = LaunchOptions {
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            notices: Notices::to(move |notice| sink.lock().unwrap().push(notice.what)),
            ..LaunchOptions::default()
        };
        let provider = Provider::launch(&source(), options).await.unwrap();
        provider.configure(object(json!({"limit": 5}))).await.unwrap();
        Self { provider, notices }
    }

    /// The warnings so far, without those about the declaration.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warning = |what: &What| match what {
            What::Warning(text) if !text.contains("declared twice") && !text.contains("no kind") => {
                Some(text.clone())
            }
            _ => None,
        };
        self.notices.lock().unwrap().iter().filter_map(warning).collect()
    }

    pub(crate) fn notices(&self) -> Vec<What> {
        self.notices.lock().unwrap().clone()
    }

    pub(crate) fn invoke(&self, tool: &str) -> Invocation {
        self.provider.invoke(call(tool, json!({})))
    }
}

pub(crate) fn source() -> ProviderSource {
    ProviderSource::Path(env!("CARGO_BIN_EXE_tool-host-awkward").into())
}

pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

pub(crate) fn call(tool: &str, arguments: Value) -> Call {
    let mut call = Call::new(tool, object(arguments), "session");
    call.working_directory = "/".into();
    call
}

/// A host that approves everything and answers nothing.
pub(crate) fn willing() -> Host {
    Host::new(Arc::new(ApproveAll), Arc::new(NoAnswers { hint: "-" }))
}

/// A host with nobody behind it.
pub(crate) fn deserted() -> Host {
    Host::new(Arc::new(DenyAll { hint: "pass --yes" }), Arc::new(NoAnswers { hint: "pass --answers" }))
}

/// Everything the call reports, and its outcome.
pub(crate) async fn finish(mut invocation: Invocation) -> (Vec<Event>, Outcome) {
    let mut events = Vec::new();
    while let Some(event) = invocation.next().await {
        events.push(event);
    }
    (events, invocation.outcome().await)
}

/// The text of a result.
#[track_caller]
pub(crate) fn text(outcome: &Outcome) -> &str {
    outcome.as_ref().unwrap()["text"].as_str().unwrap()
}

/// The error has this category, and its message says this.
#[track_caller]
pub(crate) fn check_error(outcome: &Outcome, category: Category, says: &str) {
    let error = outcome.as_ref().unwrap_err();
    assert_eq!(error.category, category, "{error:?}");
    assert!(error.message.contains(says), "{error:?}");
}
