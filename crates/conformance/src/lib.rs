//! Holds any tool provider, in any language, against the tool protocol, from the outside.
//!
//! [`check`] launches the program the way the kernel does, several times, in scratch directories of its own, and
//! gives back a [`Report`] with one finding for every [`Requirement`]. A [`Calls`] file says how to configure the
//! provider and which calls it can make; requirements that need it are not reached without.
//!
//! ```no_run
//! use conformance::{Calls, Subject, check};
//! use tool_host::ProviderSource;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let subject = Subject::new(&ProviderSource::Path("./my-provider".into()), Vec::new());
//! let calls = Calls::parse(&std::fs::read_to_string("my-provider.json")?)?;
//! let report = check(&subject, Some(&calls)).await;
//! for finding in &report.findings {
//!     println!("{} {:?}", finding.requirement.id, finding.outcome);
//! }
//! assert!(report.conforms(false));
//! # Ok(())
//! # }
//! ```

mod calls;
mod http_server;
mod judge;
mod junit;
mod kernel;
mod processes;
mod raw;
mod report;
mod requirement;
mod run;
mod scenes;
mod secret;
mod session;
mod snapshot;
mod subject;
mod topics;
mod transcript;
mod watch;
mod world;

pub use calls::{Call, Calls, CallsError, Expect, File, OtherFile, OtherPage, Page, RefusedConfig};
pub use report::{Counts, FORMAT_VERSION, Finding, Outcome, Report};
pub use requirement::{Level, Requirement};
pub use run::{check, check_topics};
pub use subject::Subject;

/// Every requirement, topic by topic: the word their ids begin with, what the topic is about, and the rules.
pub fn topics() -> impl Iterator<Item = (&'static str, &'static str, &'static [&'static Requirement])> + Clone
{
    topics::TOPICS.iter().copied()
}
