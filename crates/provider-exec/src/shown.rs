//! Commands and their output as render trees.

use std::fmt;
use std::time::Duration;

use provider_core::{Node, Style};

use crate::engine::command::{Command, Kind, Mark};

/// A duration as people read it: `320 ms`, `4.2 s`, `3 min 5 s`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds(pub(crate) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            short if short < Duration::from_secs(1) => write!(f, "{} ms", short.as_millis()),
            medium if medium < Duration::from_secs(60) => {
                write!(f, "{}.{} s", medium.as_secs(), medium.subsec_millis() / 100)
            }
            long => write!(f, "{} min {} s", long.as_secs() / 60, long.as_secs() % 60),
        }
    }
}

/// A number of processes in words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processes(pub(crate) usize);

impl fmt::Display for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} process{}", self.0, if self.0 == 1 { "" } else { "es" })
    }
}

/// What a command would do.
pub(crate) struct CommandPreview {
    pub(crate) command: String,
    pub(crate) directory: String,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) sandbox: String,
    pub(crate) terminal: bool,
    pub(crate) background: bool,
    pub(crate) timeout: Option<Duration>,
}

/// A preview as a tree.
pub(crate) fn preview(command: &CommandPreview) -> Node {
    let mut nodes = vec![
        Node::styled(format!("run in {}", command.directory), Style::Bold),
        Node::Code { language: "bash".to_owned(), content: command.command.clone() },
    ];
    nodes.extend(parts(&Command::read(&command.command)));
    if !command.environment.is_empty() {
        let lines = command.environment.iter().map(|(name, value)| format!("{name}={value}"));
        nodes.push(Node::text(format!("environment: {}", lines.collect::<Vec<_>>().join(" "))));
    }
    let mut facts = vec![format!("sandbox: {}", command.sandbox)];
    facts.extend(command.timeout.map(|timeout| format!("ended after {}", Seconds(timeout))));
    facts.extend(command.terminal.then(|| "on a terminal".to_owned()));
    facts.extend(command.background.then(|| "in the background".to_owned()));
    nodes.push(Node::styled(facts.join("; "), Style::Dim));
    Node::Group(nodes)
}

/// More commands than this are counted.
const MOST_COMMANDS: usize = 30;

/// Which programs a command runs, and the parts of it that deserve a look.
fn parts(command: &Command) -> Vec<Node> {
    let mut nodes = Vec::new();
    if command.simple.len() > 1 {
        let line =
            |text: &str, depth: usize| Node::styled(format!("{}{text}", "  ".repeat(depth)), Style::Code);
        let mut items: Vec<Node> = command
            .simple
            .iter()
            .take(MOST_COMMANDS)
            .map(|simple| line(&simple.text, simple.depth))
            .collect();
        if let Some(more) = command.simple.len().checked_sub(MOST_COMMANDS).filter(|more| *more > 0) {
            items.push(Node::text(format!("and {more} more")));
        }
        nodes.push(Node::List { items, ordered: false });
    }
    let mut marks: Vec<&Mark> = command.marks.iter().collect();
    marks.sort_by_key(|mark| mark.kind);
    if !marks.is_empty() {
        let mark = |mark: &Mark| Node::styled(format!("{} {}", mark.part, mark.why), style(mark.kind));
        nodes.push(Node::styled("worth a look:", Style::Warning));
        nodes.push(Node::List { items: marks.into_iter().map(mark).collect(), ordered: false });
    }
    let unclear = |why| Node::styled(format!("could not be read to its end: {why}"), Style::Warning);
    nodes.extend(command.unclear.map(unclear));
    nodes
}

fn style(kind: Kind) -> Style {
    match kind {
        Kind::RunsDownload
        | Kind::MoreRights
        | Kind::Removes
        | Kind::EndsByPattern
        | Kind::NeverEnds
        | Kind::RunsLater
        | Kind::Hidden
        | Kind::Machine => Style::Error,
        Kind::RunsText | Kind::Writes | Kind::Substitutes | Kind::GoesOn | Kind::Environment => {
            Style::Warning
        }
    }
}

/// What a command printed, under how it ended.
pub(crate) fn scrollback(summary: &str, output: &str, succeeded: bool) -> Node {
    let style = if succeeded { Style::Success } else { Style::Error };
    let mut nodes = vec![Node::styled(summary, style)];
    if !output.is_empty() {
        nodes.push(Node::Code { language: String::new(), content: output.to_owned() });
    }
    Node::Group(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_naturally() {
        let check = |milliseconds, expected: &str| {
            assert_eq!(Seconds(Duration::from_millis(milliseconds)).to_string(), expected);
        };
        check(0, "0 ms");
        check(320, "320 ms");
        check(4_270, "4.2 s");
        check(185_000, "3 min 5 s");
    }
}
