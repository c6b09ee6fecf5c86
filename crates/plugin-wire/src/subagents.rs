//! What subagents of a call do, carried in order and ended with their call.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tool_host::{CallError, Category, Object};

/// Follows the subagents of one call. What it is given it passes on as long as the subagent is open; those that are open
/// when the call ends, end with it.
pub struct Subagents {
    /// `None` where nobody is shown anything.
    sink: Option<Sink>,
    open: BTreeSet<u64>,
    ended: BTreeSet<u64>,
}

/// Takes the events of a subagent: its number, and an object with its `kind`.
pub type Sink = Box<dyn FnMut(u64, &Object) + Send>;

impl std::fmt::Debug for Subagents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subagents")
            .field("shown", &self.shown())
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

impl Subagents {
    /// Subagents that are shown to `sink`.
    pub fn shown_to(sink: impl FnMut(u64, &Object) + Send + 'static) -> Self {
        Self { sink: Some(Box::new(sink)), open: BTreeSet::new(), ended: BTreeSet::new() }
    }

    /// Subagents of a call outside of a chat: everything works, and nobody sees it.
    pub fn unseen() -> Self {
        Self { sink: None, open: BTreeSet::new(), ended: BTreeSet::new() }
    }

    /// Whether somebody may be watching.
    pub fn shown(&self) -> bool {
        self.sink.is_some()
    }

    /// Takes a partial result of the call, if it is an event of a subagent; returns whether it was one.
    pub fn take(&mut self, payload: &Object) -> bool {
        let number = payload.get("subagent").and_then(Value::as_u64);
        let kind = payload.get("kind").and_then(Value::as_str);
        let (Some(number), Some(kind)) = (number, kind) else { return false };
        if self.ended.contains(&number) {
            return true;
        }
        match kind {
            "end" => {
                self.open.remove(&number);
                self.ended.insert(number);
            }
            _ => {
                self.open.insert(number);
            }
        }
        self.tell(number, payload);
        true
    }

    /// The call has ended; so have the subagents that it left open, in the way it did.
    pub fn finish(&mut self, ending: Ending) {
        for number in std::mem::take(&mut self.open) {
            self.ended.insert(number);
            let status = ending.as_str();
            if let Value::Object(event) = json!({"subagent": number, "kind": "end", "status": status}) {
                self.tell(number, &event);
            }
        }
    }

    fn tell(&mut self, number: u64, event: &Object) {
        if let Some(sink) = &mut self.sink {
            sink(number, event);
        }
    }
}

/// How a call ended, for the subagents that end with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It has a result.
    Completed,
    /// It failed.
    Failed,
    /// It was given up.
    Stopped,
}

impl Ending {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }

    /// How a call with this outcome ended.
    pub fn of<T>(outcome: &Result<T, CallError>) -> Self {
        match outcome {
            Ok(_) => Self::Completed,
            Err(error) if error.category == Category::Cancelled => Self::Stopped,
            Err(_) => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What is told of these events, and then of the call's end.
    #[track_caller]
    fn check(events: Value, ending: Ending, expected: &[&str]) {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let keep = told.clone();
        let mut subagents = Subagents::shown_to(move |number, event| {
            let what = event.get("delta").or(event.get("status")).and_then(Value::as_str).unwrap_or("");
            let kind = event["kind"].as_str().unwrap();
            keep.lock().unwrap().push(format!("{number} {kind} {what}").trim_end().to_owned());
        });
        for event in events.as_array().unwrap() {
            assert!(subagents.take(event.as_object().unwrap()));
        }
        subagents.finish(ending);
        assert_eq!(*told.lock().unwrap(), expected);
    }

    #[test]
    fn events_are_told_in_order_and_an_open_one_ends_with_its_call() {
        let events = json!([
            {"subagent": 1, "kind": "start", "title": "x"},
            {"subagent": 2, "kind": "start", "title": "y"},
            {"subagent": 1, "kind": "text", "delta": "a"},
            {"subagent": 2, "kind": "end", "status": "completed"},
            {"subagent": 1, "kind": "text", "delta": "b"},
        ]);
        let told = ["1 start", "2 start", "1 text a", "2 end completed", "1 text b"];
        for (ending, last) in
            [(Ending::Completed, "completed"), (Ending::Failed, "failed"), (Ending::Stopped, "stopped")]
        {
            let last = format!("1 end {last}");
            check(events.clone(), ending, &[told.as_slice(), &[last.as_str()]].concat());
        }
    }

    #[test]
    fn after_its_end_a_subagent_tells_nothing() {
        let events = json!([
            {"subagent": 1, "kind": "start"},
            {"subagent": 1, "kind": "end", "status": "failed"},
            {"subagent": 1, "kind": "text", "delta": "late"},
            {"subagent": 1, "kind": "end", "status": "completed"},
        ]);
        check(events, Ending::Completed, &["1 start", "1 end failed"]);
    }

    #[test]
    fn outside_of_a_chat_everything_works_and_nothing_is_shown() {
        let mut subagents = Subagents::unseen();
        assert!(!subagents.shown());
        let event = json!({"subagent": 1, "kind": "start"});
        assert!(subagents.take(event.as_object().unwrap()));
        subagents.finish(Ending::Completed);
    }

    #[test]
    fn other_partial_results_are_not_taken() {
        let mut subagents = Subagents::unseen();
        for payload in
            [json!({"note": "x"}), json!({"subagent": "x", "kind": "text"}), json!({"subagent": 1})]
        {
            assert!(!subagents.take(payload.as_object().unwrap()), "{payload}");
        }
    }
}
