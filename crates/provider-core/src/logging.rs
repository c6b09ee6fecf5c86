//! `tracing` events go to the kernel's log, in batches; warnings and errors also to stderr.
//!
//! An event inside a call carries that call's session. Secrets from the configuration never leave.

use std::fmt;
use std::io::Write;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use goplugin::log as stderr;
use harness_proto::log::v1::LogLevel;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::call::{CURRENT, locked};
use crate::config::Scrubber;
use crate::kernel::{Kernel, LogEntry};

/// Entries wait here until they are sent; when it is full, new ones are counted and dropped.
const QUEUE: usize = 1_024;
/// Entries per request. The kernel takes requests up to 4 MiB.
const BATCH: usize = 128;
/// How long the first entry of a batch waits for company.
const GATHER: Duration = Duration::from_millis(50);
/// Longer messages and fields are cut.
const LONGEST_TEXT: usize = 16 * 1_024;

struct Log {
    queue: OnceLock<mpsc::Sender<LogEntry>>,
    scrubber: Mutex<Scrubber>,
}

fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| Log { queue: OnceLock::new(), scrubber: Mutex::default() })
}

/// From now on these secrets are taken out of what is logged.
pub(crate) fn set_scrubber(scrubber: Scrubber) {
    *locked(&log().scrubber) = scrubber;
}

/// Makes this module the process's subscriber. Without a runtime nothing is sent, only written to stderr.
pub(crate) fn install() {
    let subscriber = tracing_subscriber::registry().with(KernelLayer);
    // A second call, as in tests with several providers in one process, finds the first one in place.
    let _ = tracing::subscriber::set_global_default(subscriber);
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let text = crate::call::panic_text(panic.payload());
        let message = locked(&log().scrubber).text(&text).into_owned();
        write_stderr(stderr::Level::Error, &format!("panic at {place}: {message}"), &Map::new());
    }));
}

/// Sends queued entries to the kernel for as long as the process lives.
pub(crate) fn forward(kernel: Kernel) {
    let (sender, mut entries) = mpsc::channel(QUEUE);
    if log().queue.set(sender).is_err() {
        return;
    }
    tokio::spawn(async move {
        let mut batch = Vec::with_capacity(BATCH);
        while entries.recv_many(&mut batch, BATCH).await > 0 {
            tokio::time::sleep(GATHER).await;
            while batch.len() < BATCH {
                let Ok(entry) = entries.try_recv() else { break };
                batch.push(entry);
            }
            send(&kernel, std::mem::take(&mut batch)).await;
        }
    });
}

/// One request per session: a request names the session of all its entries.
async fn send(kernel: &Kernel, mut entries: Vec<LogEntry>) {
    while let Some(first) = entries.first() {
        let session = first.session_id.clone();
        let (own, others) = entries.into_iter().partition(|entry| entry.session_id == session);
        entries = others;
        // A kernel without a log loses nothing that matters: warnings and errors are on stderr.
        let _ = kernel.log(own).await;
    }
}

struct KernelLayer;

impl<S: Subscriber> Layer<S> for KernelLayer {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        let floor = match metadata.target().split("::").next() {
            // The transport's own events would be sent over the transport.
            Some("h2" | "hyper" | "hyper_util" | "tonic" | "tower" | "mio") => Level::ERROR,
            _ => Level::DEBUG,
        };
        *metadata.level() <= floor
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let (session_id, scrubber) = CURRENT
            .try_with(|call| (Some(call.session_id.clone()), call.scrubber.clone()))
            .unwrap_or_else(|_| (None, locked(&log().scrubber).clone()));
        let message = scrubber.text(&fields.message).into_owned();
        fields.rest.values_mut().for_each(|value| scrubber.value(value));
        let level = *event.metadata().level();
        if level <= Level::WARN {
            let level = if level == Level::ERROR { stderr::Level::Error } else { stderr::Level::Warn };
            write_stderr(level, &message, &fields.rest);
        }
        if let Some(queue) = log().queue.get() {
            let entry = LogEntry {
                session_id: session_id.filter(|id| !id.is_empty()),
                level: level_to_wire(level),
                logger: event.metadata().target().replace("::", "."),
                message,
                fields: fields.rest,
                time: SystemTime::now(),
            };
            // A full queue means that the kernel is not listening; the newest entry is the one to lose.
            let _ = queue.try_send(entry);
        }
    }
}

fn level_to_wire(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}

/// Writes one line in the form that hosts of go-plugin processes read.
fn write_stderr(level: stderr::Level, message: &str, fields: &Map<String, Value>) {
    let mut line = stderr::Line::new(level, message);
    for (name, value) in fields {
        line = line.field(name, value.clone());
    }
    // Nobody may be reading; then there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "{}", line.render(SystemTime::now()));
}

#[derive(Default)]
struct Fields {
    message: String,
    rest: Map<String, Value>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.rest.insert(field.name().to_owned(), value);
    }
}

fn cut(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        text.push('…');
    }
    text
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = cut(format!("{value:?}"));
        if field.name() == "message" {
            self.message = text;
        } else {
            self.put(field, text.into());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = cut(value.to_owned());
        } else {
            self.put(field, cut(value.to_owned()).into());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

/// Installs the subscriber and, for the first kernel that is given, the forwarding.
#[cfg(feature = "testing")]
pub(crate) fn install_for_tests(kernel: &Kernel) {
    let subscriber = tracing_subscriber::registry().with(KernelLayer);
    let _ = tracing::subscriber::set_global_default(subscriber);
    if kernel.is_present() {
        forward(kernel.clone());
    }
}
