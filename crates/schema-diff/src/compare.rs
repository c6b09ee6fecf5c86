//! Two declarations side by side.

use std::time::Duration;

use tool_host::catalogue::{
    Attribute, AttributeKind, Concurrency, DEFAULT_TIMEOUT, Identity, Risk, SlashCommand, Tool,
};

use crate::change::{Change, Rule};
use crate::document::Declaration;
use crate::fields::{Side, compare_schemas};

/// Every change from `old` to `new`: breaking ones first, otherwise in the order of the declarations.
pub fn compare(old: &Declaration, new: &Declaration) -> Vec<Change> {
    let mut changes = Changes::of("provider");
    identity(&mut changes, &old.identity, &new.identity);
    tools(&mut changes, &old.catalogue.tools, &new.catalogue.tools);
    changes.subject = "configuration".to_owned();
    attributes(&mut changes, "", &old.catalogue.config, &new.catalogue.config);
    changes.subject = "hooks".to_owned();
    hooks(&mut changes, &old.catalogue.hook_points, &new.catalogue.hook_points);
    changes.subject = "commands".to_owned();
    commands(&mut changes, &old.catalogue.slash_commands, &new.catalogue.slash_commands);
    changes.list.sort_by_key(|change| change.rule.effect());
    changes.list
}

/// The changes found so far, and what is being looked at.
pub(crate) struct Changes {
    subject: String,
    list: Vec<Change>,
}

impl Changes {
    fn of(subject: &str) -> Self {
        Self { subject: subject.to_owned(), list: Vec::new() }
    }

    pub(crate) fn add(&mut self, rule: Rule, place: impl Into<String>, message: impl Into<String>) {
        let subject = self.subject.clone();
        self.list.push(Change { rule, subject, place: place.into(), message: message.into() });
    }
}

/// What of `old` is not in `new`, and the other way round, and what is in both.
fn matched<'a, T>(
    old: &'a [T],
    new: &'a [T],
    name: impl Fn(&T) -> &str,
) -> (Vec<&'a T>, Vec<&'a T>, Vec<(&'a T, &'a T)>) {
    let among = |list: &'a [T], wanted: &T| list.iter().find(|item| name(item) == name(wanted));
    let gone = old.iter().filter(|item| among(new, item).is_none()).collect();
    let fresh = new.iter().filter(|item| among(old, item).is_none()).collect();
    let both = old.iter().filter_map(|item| Some((item, among(new, item)?))).collect();
    (gone, fresh, both)
}

fn identity(changes: &mut Changes, old: &Identity, new: &Identity) {
    if old.name != new.name {
        changes.add(Rule::ProviderRenamed, "name", format!("its name was {} and is {}", old.name, new.name));
    }
    if old.source != new.source {
        changes.add(
            Rule::SourceChanged,
            "source",
            format!("its source was {} and is {}", old.source, new.source),
        );
    }
    if old.protocol_version != new.protocol_version {
        let message =
            format!("its protocol version was {} and is {}", old.protocol_version, new.protocol_version);
        changes.add(Rule::ProtocolChanged, "protocol_version", message);
    }
}

fn tools(changes: &mut Changes, old: &[Tool], new: &[Tool]) {
    let (gone, fresh, both) = matched(old, new, |tool| tool.name.as_str());
    for tool in gone {
        changes.subject.clone_from(&tool.name);
        changes.add(Rule::ToolRemoved, "", "the tool is gone");
    }
    for tool in fresh {
        changes.subject.clone_from(&tool.name);
        changes.add(Rule::ToolAdded, "", format!("the tool is new: {}, risk {}", tool.kind, tool.risk));
    }
    for (old, new) in both {
        changes.subject.clone_from(&old.name);
        promises(changes, old, new);
        running(changes, old, new);
        if old.description != new.description {
            changes.add(Rule::DescriptionChanged, "description", "its description changed");
        }
        compare_schemas(changes, Side::Arguments, &old.input, &new.input);
        compare_schemas(changes, Side::Result, &old.output, &new.output);
    }
}

/// What approval, retries and the turn rest on.
fn promises(changes: &mut Changes, old: &Tool, new: &Tool) {
    if old.kind != new.kind {
        changes.add(Rule::KindChanged, "kind", format!("it was a {} and is a {}", old.kind, new.kind));
    }
    if old.risk != new.risk {
        let raised = severity(new.risk) > severity(old.risk);
        let (rule, verb) = if raised { (Rule::RiskRaised, "raised") } else { (Rule::RiskLowered, "lowered") };
        changes.add(rule, "risk", format!("its risk was {verb} from {} to {}", old.risk, new.risk));
    }
    match (old.idempotent, new.idempotent) {
        (true, false) => changes.add(
            Rule::IdempotenceLost,
            "idempotent",
            "repeating a call is no longer the same as making it once",
        ),
        (false, true) => changes.add(
            Rule::IdempotenceGained,
            "idempotent",
            "repeating a call is the same as making it once now",
        ),
        _ => {}
    }
    if old.terminates_turn != new.terminates_turn {
        let message = if new.terminates_turn { "it ends the turn now" } else { "it no longer ends the turn" };
        changes.add(Rule::TurnEndChanged, "terminates_turn", message);
    }
}

/// A tool that does not say its risk may do anything.
fn severity(risk: Risk) -> u8 {
    match risk {
        Risk::ReadOnly => 0,
        Risk::Low => 1,
        Risk::Moderate => 2,
        Risk::High => 3,
        Risk::Critical => 4,
        Risk::Unspecified => 5,
    }
}

/// How calls run.
fn running(changes: &mut Changes, old: &Tool, new: &Tool) {
    match (old.streaming, new.streaming) {
        (false, true) => {
            changes.add(Rule::StreamingStarted, "streaming", "events may come before its outcome now");
        }
        (true, false) => changes.add(Rule::StreamingStopped, "streaming", "only its outcome comes now"),
        _ => {}
    }
    if old.concurrency != new.concurrency {
        let message = format!("it ran {} and runs {}", beside(&old.concurrency), beside(&new.concurrency));
        changes.add(Rule::ConcurrencyChanged, "concurrency", message);
    }
    let limit = |tool: &Tool| tool.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let (before, after) = (limit(old), limit(new));
    if before != after {
        let rule = if after < before { Rule::TimeoutShortened } else { Rule::TimeoutExtended };
        changes.add(
            rule,
            "default_timeout",
            format!("its time limit was {} and is {}", time(before), time(after)),
        );
    }
}

fn time(limit: Duration) -> String {
    format!("{limit:?}")
}

fn beside(concurrency: &Concurrency) -> String {
    match concurrency {
        Concurrency::Exclusive => "alone".to_owned(),
        Concurrency::Shared { keys } if keys.is_empty() => "beside others".to_owned(),
        Concurrency::Shared { keys } => format!("one at a time per {}", keys.join(" and ")),
    }
}

fn attributes(changes: &mut Changes, prefix: &str, old: &[Attribute], new: &[Attribute]) {
    let (gone, fresh, both) = matched(old, new, |attribute| attribute.name.as_str());
    for attribute in gone {
        let place = format!("{prefix}{}", attribute.name);
        changes.add(Rule::AttributeRemoved, &place, format!("the attribute {place} is gone"));
    }
    for attribute in fresh {
        let place = format!("{prefix}{}", attribute.name);
        if attribute.required {
            let message = format!("the required attribute {place} is new");
            changes.add(Rule::RequiredAttributeAdded, &place, message);
        } else {
            changes.add(Rule::AttributeAdded, &place, format!("the attribute {place} is new"));
        }
    }
    for (old, new) in both {
        attribute(changes, &format!("{prefix}{}", old.name), old, new);
    }
}

fn attribute(changes: &mut Changes, place: &str, old: &Attribute, new: &Attribute) {
    let mut add = |rule, message: String| changes.add(rule, place, format!("{place} {message}"));
    match (old.required, new.required) {
        (false, true) => add(Rule::AttributeMadeRequired, "is required now".to_owned()),
        (true, false) => add(Rule::AttributeMadeOptional, "can be left out now".to_owned()),
        _ => {}
    }
    match (old.sensitive, new.sensitive) {
        (false, true) => add(
            Rule::MadeSensitive,
            "is a secret now, so a configuration must write it as env(\"NAME\")".to_owned(),
        ),
        (true, false) => add(Rule::MadePlain, "is no longer a secret".to_owned()),
        _ => {}
    }
    let same_shape = std::mem::discriminant(&old.kind) == std::mem::discriminant(&new.kind);
    if !same_shape {
        add(Rule::AttributeTypeChanged, format!("was a {} and is a {}", old.kind, new.kind));
    } else if old.default != new.default && !(old.required && new.required) {
        let shown = |default: &Option<_>| default.as_ref().map_or("nothing".to_owned(), ToString::to_string);
        add(
            Rule::DefaultChanged,
            format!("is {} when left out, and was {}", shown(&new.default), shown(&old.default)),
        );
    }
    if old.description != new.description {
        add(Rule::DescriptionChanged, "has another description".to_owned());
    }
    if let (AttributeKind::Object(old), AttributeKind::Object(new)) = (&old.kind, &new.kind) {
        attributes(changes, &format!("{place}."), old, new);
    }
}

fn hooks(changes: &mut Changes, old: &[String], new: &[String]) {
    let (gone, fresh, _) = matched(old, new, |point| point.as_str());
    for point in gone {
        changes.add(Rule::HookRemoved, point, format!("{point} is no longer supported"));
    }
    for point in fresh {
        changes.add(Rule::HookAdded, point, format!("{point} is supported now"));
    }
}

fn commands(changes: &mut Changes, old: &[SlashCommand], new: &[SlashCommand]) {
    let (gone, fresh, both) = matched(old, new, |command| command.name.as_str());
    for command in gone {
        changes.add(Rule::CommandRemoved, &command.name, format!("/{} is gone", command.name));
    }
    for command in fresh {
        changes.add(Rule::CommandAdded, &command.name, format!("/{} is new", command.name));
    }
    for (old, new) in both {
        if old.template != new.template {
            let message = format!("/{} expands to another text", old.name);
            changes.add(Rule::CommandChanged, &old.name, message);
        }
        if old.description != new.description {
            let message = format!("/{} has another description", old.name);
            changes.add(Rule::DescriptionChanged, &old.name, message);
        }
    }
}

#[cfg(test)]
mod tests;
