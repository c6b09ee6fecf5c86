//! Work that a tool hands to another agent, shown while it happens.
//!
//! A tool starts a [`Subagent`] on a [`SubagentSink`] and tells it what the other agent does; the sink carries that to
//! whoever watches. A call's [`Cx`] is one: over gRPC everything goes out as partial results, and steps as progress
//! too. [`Unseen`] is for hosts without a watcher: everything succeeds and nothing is shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use crate::call::{Cx, Streaming};

/// What a subagent is, when it is first shown.
///
/// ```
/// use provider_core::subagent::SubagentStart;
///
/// let start = SubagentStart {
///     title: "Look for the cause".to_owned(),
///     model: Some("small".to_owned()),
///     ..SubagentStart::default()
/// };
/// # assert_eq!(start.name, None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SubagentStart {
    /// What it is to do, on one line.
    pub title: String,
    /// The name of its kind.
    pub name: Option<String>,
    /// The agent it runs on.
    pub agent: Option<String>,
    /// The model it runs on.
    pub model: Option<String>,
    /// How much it thinks.
    pub effort: Option<String>,
    /// What it was asked.
    pub prompt: Option<String>,
}

/// How a subagent, or one of its tool calls, ended.
///
/// ```
/// use provider_core::subagent::{Subagent, SubagentStatus};
///
/// async fn finish(subagent: Subagent, found: Result<String, String>) {
///     match found {
///         Ok(text) => subagent.end(SubagentStatus::Completed, Some(text)).await,
///         Err(why) => subagent.end(SubagentStatus::Failed, Some(why)).await,
///     }
/// }
/// # let _ = finish;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentStatus {
    /// It came to its end.
    Completed,
    /// It failed.
    Failed,
    /// It was stopped.
    Stopped,
}

/// How important a notice is.
///
/// ```
/// use provider_core::subagent::{NoticeLevel, Subagent};
///
/// async fn warn(subagent: &Subagent) {
///     subagent.notice("the budget is nearly used up", NoticeLevel::Warning).await;
/// }
/// # let _ = warn;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something to look at.
    Warning,
    /// Something failed.
    Error,
}

/// What changes about a subagent. What is `None` stays as it is.
///
/// ```
/// use provider_core::subagent::{Subagent, SubagentUpdate};
///
/// async fn counted(subagent: &Subagent, tool_uses: u64) {
///     subagent.update(SubagentUpdate { tool_uses: Some(tool_uses), ..SubagentUpdate::default() }).await;
/// }
/// # let _ = counted;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SubagentUpdate {
    /// What it is to do.
    pub title: Option<String>,
    /// What it does now.
    pub activity: Option<String>,
    /// What it has done.
    pub summary: Option<String>,
    /// How many tools it has called.
    pub tool_uses: Option<u64>,
    /// The model it runs on.
    pub model: Option<String>,
    /// How much it thinks.
    pub effort: Option<String>,
}

/// One thing that a subagent does. As JSON it is an object with its `kind`.
///
/// ```
/// use provider_core::subagent::SubagentEvent;
/// use serde_json::json;
///
/// let event = SubagentEvent::Step { title: "Reading".to_owned() };
/// assert_eq!(serde_json::to_value(&event).unwrap(), json!({"kind": "step", "title": "Reading"}));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SubagentEvent {
    /// It is there.
    Start(SubagentStart),
    /// More of its answer.
    Text {
        /// What comes behind what was told before.
        delta: String,
    },
    /// More of what it thinks.
    Reasoning {
        /// What comes behind what was told before.
        delta: String,
    },
    /// It does something else now.
    Step {
        /// What, on one line.
        title: String,
    },
    /// It calls a tool.
    Tool {
        /// Names the call in this subagent.
        tool: u64,
        /// The tool's name.
        name: String,
        /// What the call is, on one line.
        title: Option<String>,
    },
    /// A tool call is something else than it was said to be.
    ToolUpdate {
        /// The call.
        tool: u64,
        /// What the call is, on one line.
        title: String,
    },
    /// A tool call prints something.
    ToolOutput {
        /// The call.
        tool: u64,
        /// What comes behind what was told before.
        delta: String,
    },
    /// A tool call has ended.
    ToolEnd {
        /// The call.
        tool: u64,
        /// How.
        status: SubagentStatus,
        /// What came of it.
        content: Option<String>,
    },
    /// What it has used so far.
    Usage {
        /// For example `{"used_tokens": 1200}`.
        usage: Value,
    },
    /// Something the watcher should know.
    Notice {
        /// The text.
        message: String,
        /// How important it is.
        level: NoticeLevel,
    },
    /// Something about it has changed.
    Update(SubagentUpdate),
    /// It has ended.
    End {
        /// How.
        status: SubagentStatus,
        /// What it has done, on one line.
        summary: Option<String>,
    },
}

/// Carries what subagents do to whoever watches.
///
/// ```
/// use std::sync::Mutex;
///
/// use provider_core::subagent::{SubagentEvent, SubagentSink};
///
/// /// Keeps the answer, for a host that has no window to show it in.
/// #[derive(Default)]
/// struct Answer(Mutex<String>);
///
/// impl SubagentSink for Answer {
///     fn shown(&self) -> bool {
///         false
///     }
///
///     fn deliver<'a>(
///         &'a self,
///         _subagent: u64,
///         event: &'a SubagentEvent,
///     ) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
///         if let (SubagentEvent::Text { delta }, Ok(mut answer)) = (event, self.0.lock()) {
///             answer.push_str(delta);
///         }
///         Box::pin(std::future::ready(()))
///     }
///
///     fn stopped(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
///         Box::pin(std::future::pending())
///     }
/// }
/// ```
pub trait SubagentSink: Send + Sync {
    /// Whether somebody may be watching.
    fn shown(&self) -> bool;

    /// Carries one event of the subagent of that id, in the order of the calls.
    fn deliver<'a>(&'a self, subagent: u64, event: &'a SubagentEvent) -> BoxFuture<'a, ()>;

    /// Resolves when the subagent is to stop.
    fn stopped(&self) -> BoxFuture<'_, ()>;
}

/// Shows nothing, and never stops anything.
///
/// ```
/// use std::sync::Arc;
///
/// use provider_core::subagent::{Subagent, SubagentStart, Unseen};
///
/// async fn start() -> Subagent {
///     Subagent::start(Arc::new(Unseen), SubagentStart { title: "Tidy up".to_owned(), ..Default::default() }).await
/// }
/// # let _ = start;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Unseen;

impl SubagentSink for Unseen {
    fn shown(&self) -> bool {
        false
    }

    fn deliver<'a>(&'a self, _: u64, _: &'a SubagentEvent) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    fn stopped(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// An event as it goes over the wire.
#[derive(Serialize)]
struct Carried<'a> {
    subagent: u64,
    #[serde(flatten)]
    event: &'a SubagentEvent,
}

impl<S: Streaming> SubagentSink for Cx<S> {
    fn shown(&self) -> bool {
        true
    }

    fn deliver<'a>(&'a self, subagent: u64, event: &'a SubagentEvent) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let SubagentEvent::Step { title } = event {
                self.progress(title.clone(), None).await;
            }
            // An event is plain data and can always be written.
            let _ = self.partial(&Carried { subagent, event }).await;
        })
    }

    fn stopped(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.cancelled())
    }
}

/// The handle on one subagent. One that is dropped without [`Subagent::end`] ends, for those who watch, with its call.
///
/// ```
/// use std::sync::Arc;
///
/// use provider_core::subagent::{Subagent, SubagentStart, SubagentStatus};
/// use provider_core::{Cx, Events};
///
/// async fn research(cx: Cx<Events>, question: String) {
///     let start = SubagentStart { title: question, ..SubagentStart::default() };
///     let subagent = Subagent::start(Arc::new(cx), start).await;
///     subagent.step("Reading the files").await;
///     subagent.text("It is in `main.rs`.").await;
///     subagent.end(SubagentStatus::Completed, None).await;
/// }
/// # let _ = research;
/// ```
pub struct Subagent {
    sink: Arc<dyn SubagentSink>,
    id: u64,
    tools: AtomicU64,
}

/// A tool call of a subagent.
///
/// ```
/// use provider_core::subagent::{Subagent, SubagentStatus};
///
/// async fn fetch(subagent: &Subagent) {
///     let tool = subagent.tool("fetch", Some("Fetch the page".to_owned())).await;
///     tool.output("200 OK").await;
///     tool.end(SubagentStatus::Completed, None).await;
/// }
/// # let _ = fetch;
/// ```
pub struct SubagentTool<'a> {
    subagent: &'a Subagent,
    id: u64,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Subagent {
    /// Shows a new subagent.
    pub async fn start(sink: Arc<dyn SubagentSink>, start: SubagentStart) -> Self {
        let subagent = Self { sink, id: NEXT.fetch_add(1, Ordering::Relaxed), tools: AtomicU64::new(1) };
        subagent.event(SubagentEvent::Start(start)).await;
        subagent
    }

    /// Whether somebody may be watching.
    pub fn shown(&self) -> bool {
        self.sink.shown()
    }

    /// Resolves when the subagent is to stop.
    pub async fn signal(&self) {
        self.sink.stopped().await;
    }

    /// Tells any event.
    pub async fn event(&self, event: SubagentEvent) {
        self.sink.deliver(self.id, &event).await;
    }

    /// Tells more of its answer.
    pub async fn text(&self, delta: impl Into<String>) {
        self.event(SubagentEvent::Text { delta: delta.into() }).await;
    }

    /// Tells more of what it thinks.
    pub async fn reasoning(&self, delta: impl Into<String>) {
        self.event(SubagentEvent::Reasoning { delta: delta.into() }).await;
    }

    /// Tells what it does now.
    pub async fn step(&self, title: impl Into<String>) {
        self.event(SubagentEvent::Step { title: title.into() }).await;
    }

    /// Tells that it calls a tool.
    pub async fn tool(&self, name: impl Into<String>, title: Option<String>) -> SubagentTool<'_> {
        let id = self.tools.fetch_add(1, Ordering::Relaxed);
        self.event(SubagentEvent::Tool { tool: id, name: name.into(), title }).await;
        SubagentTool { subagent: self, id }
    }

    /// Tells what it has used.
    pub async fn usage(&self, usage: Value) {
        self.event(SubagentEvent::Usage { usage }).await;
    }

    /// Tells the watcher something.
    pub async fn notice(&self, message: impl Into<String>, level: NoticeLevel) {
        self.event(SubagentEvent::Notice { message: message.into(), level }).await;
    }

    /// Tells what has changed about it.
    pub async fn update(&self, update: SubagentUpdate) {
        self.event(SubagentEvent::Update(update)).await;
    }

    /// Tells that it has ended. Nothing can be told of it after that.
    pub async fn end(self, status: SubagentStatus, summary: Option<String>) {
        self.event(SubagentEvent::End { status, summary }).await;
    }
}

impl SubagentTool<'_> {
    /// Says better what the call is.
    pub async fn update(&self, title: impl Into<String>) {
        self.subagent.event(SubagentEvent::ToolUpdate { tool: self.id, title: title.into() }).await;
    }

    /// Tells what the call prints.
    pub async fn output(&self, delta: impl Into<String>) {
        self.subagent.event(SubagentEvent::ToolOutput { tool: self.id, delta: delta.into() }).await;
    }

    /// Tells that the call has ended.
    pub async fn end(self, status: SubagentStatus, content: Option<String>) {
        self.subagent.event(SubagentEvent::ToolEnd { tool: self.id, status, content }).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Default)]
    struct Kept(std::sync::Mutex<Vec<Value>>);

    impl SubagentSink for Kept {
        fn shown(&self) -> bool {
            true
        }

        fn deliver<'a>(&'a self, _: u64, event: &'a SubagentEvent) -> BoxFuture<'a, ()> {
            let mut value = serde_json::to_value(event).unwrap();
            crate::arguments::strip_nulls(&mut value);
            self.0.lock().unwrap().push(value);
            Box::pin(async {})
        }

        fn stopped(&self) -> BoxFuture<'_, ()> {
            Box::pin(async {})
        }
    }

    #[tokio::test]
    async fn everything_is_told_in_order() {
        let kept = Arc::new(Kept::default());
        let title = "Research".to_owned();
        let subagent =
            Subagent::start(kept.clone(), SubagentStart { title, ..SubagentStart::default() }).await;
        subagent.step("Reading").await;
        let tool = subagent.tool("fetch", Some("Fetch the page".to_owned())).await;
        tool.update("Fetch the other page").await;
        tool.output("200").await;
        tool.end(SubagentStatus::Completed, None).await;
        subagent.reasoning("hm").await;
        subagent.text("Two.").await;
        subagent.usage(json!({"used_tokens": 12})).await;
        subagent.notice("slow", NoticeLevel::Warning).await;
        subagent.update(SubagentUpdate { tool_uses: Some(1), ..SubagentUpdate::default() }).await;
        subagent.signal().await;
        assert!(subagent.shown());
        subagent.end(SubagentStatus::Completed, Some("Two".to_owned())).await;
        assert_eq!(
            *kept.0.lock().unwrap(),
            [
                json!({"kind": "start", "title": "Research"}),
                json!({"kind": "step", "title": "Reading"}),
                json!({"kind": "tool", "tool": 1, "name": "fetch", "title": "Fetch the page"}),
                json!({"kind": "tool_update", "tool": 1, "title": "Fetch the other page"}),
                json!({"kind": "tool_output", "tool": 1, "delta": "200"}),
                json!({"kind": "tool_end", "tool": 1, "status": "completed"}),
                json!({"kind": "reasoning", "delta": "hm"}),
                json!({"kind": "text", "delta": "Two."}),
                json!({"kind": "usage", "usage": {"used_tokens": 12}}),
                json!({"kind": "notice", "message": "slow", "level": "warning"}),
                json!({"kind": "update", "tool_uses": 1}),
                json!({"kind": "end", "status": "completed", "summary": "Two"}),
            ]
        );
    }

    #[tokio::test]
    async fn without_a_watcher_everything_succeeds_and_nothing_is_shown() {
        let subagent = Subagent::start(Arc::new(Unseen), SubagentStart::default()).await;
        assert!(!subagent.shown());
        subagent.tool("x", None).await.end(SubagentStatus::Failed, None).await;
        subagent.end(SubagentStatus::Stopped, None).await;
    }
}
