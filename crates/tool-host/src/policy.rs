//! The rules of an operator: which calls run, which are asked about, which are refused.
//!
//! The fields, the precedence and the defaults are the kernel's. A rule matches by the tool's bare name, the
//! provider's name, the risk and the kind; all fields it gives must match, and none matches everything. Of the
//! rules that match, the most specific decides, a name of a tool before a provider before a risk before a kind. Two
//! rules that could decide about one call with equal right are refused when the policy is read.
//!
//! Without a rule a resource is asked about, and everything else runs. A data source or a question to a person
//! cannot be asked about, so `ask` refuses those, with a warning that names the rule.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::catalogue::{Kind, Risk, Tool};

/// What an operator decided beforehand. The default has no rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The most specific first, so that the first that matches decides.
    rules: Vec<Rule>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    name: String,
    #[serde(rename = "match", default)]
    matches: Match,
    action: Action,
}

/// Which calls a rule is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Match {
    tool_name: Option<String>,
    provider: Option<String>,
    risk: Option<Risk>,
    kind: Option<MatchedKind>,
}

/// The kinds a rule can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MatchedKind {
    Resource,
    DataSource,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Allow,
    Ask,
    Deny,
}

/// What the policy says about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling<'a> {
    /// It runs without a question.
    Allow,
    /// People decide.
    Ask,
    /// It is refused by the rule of that name.
    Deny(&'a str),
    /// It is refused because the rule of that name asks, and a call of this kind cannot be asked about.
    CannotAsk(&'a str),
}

/// Why a policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// It is no list.
    #[error(
        "a policy is a JSON list of rules, for example \
         [{{\"name\":\"no shell\",\"match\":{{\"tool_name\":\"bash\"}},\"action\":\"deny\"}}]"
    )]
    NotAList,
    /// A rule is not understood.
    #[error("rule {number}: {reason}")]
    NotARule {
        /// Its place in the list, from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Two rules have one name.
    #[error("two rules are named {0:?}: a refusal names its rule, so give each its own name")]
    SameName(String),
    /// A rule matches no call.
    #[error("{name:?} can never match: {reason}")]
    NeverMatches {
        /// The rule.
        name: String,
        /// Why.
        reason: &'static str,
    },
    /// Two rules decide with equal right.
    #[error(
        "{first:?} and {second:?} match the same calls and neither is more specific: remove one, or add a field to one"
    )]
    Tie {
        /// One rule.
        first: String,
        /// The other.
        second: String,
    },
}

impl Policy {
    /// A policy from JSON: a list of `{"name", "match", "action"}`. `match` has any of `tool_name`, `provider`, `risk`
    /// and `kind` (`resource` or `data_source`); `action` is `allow`, `ask` or `deny`.
    ///
    /// # Errors
    /// The first rule that is not understood, can never match, or ties with another.
    pub fn from_json(value: Value) -> Result<Self, PolicyError> {
        let Value::Array(rules) = value else { return Err(PolicyError::NotAList) };
        let rule = |(index, value): (usize, Value)| {
            serde_json::from_value::<Rule>(value)
                .map_err(|error| PolicyError::NotARule { number: index + 1, reason: error.to_string() })
        };
        let mut rules: Vec<Rule> = rules.into_iter().enumerate().map(rule).collect::<Result<_, _>>()?;
        for (index, rule) in rules.iter().enumerate() {
            rule.check()?;
            for other in &rules[..index] {
                rule.check_beside(other)?;
            }
        }
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.matches.specificity()));
        Ok(Self { rules })
    }

    /// What the policy says about calls of this provider's tool.
    pub fn ruling(&self, provider: &str, tool: &Tool) -> Ruling<'_> {
        let rule = self.rules.iter().find(|rule| rule.matches.holds(provider, tool));
        let asks_by_default = tool.kind == Kind::Resource;
        match rule.map(|rule| (rule.action, rule.name.as_str())) {
            None if asks_by_default => Ruling::Ask,
            None | Some((Action::Allow, _)) => Ruling::Allow,
            Some((Action::Deny, name)) => Ruling::Deny(name),
            Some((Action::Ask, _)) if asks_by_default => Ruling::Ask,
            Some((Action::Ask, name)) => Ruling::CannotAsk(name),
        }
    }
}

impl Rule {
    fn check(&self) -> Result<(), PolicyError> {
        let never = |reason| Err(PolicyError::NeverMatches { name: self.name.clone(), reason });
        match (self.matches.kind, self.matches.risk) {
            (_, Some(Risk::Unspecified)) => never("no call that runs has an unspecified risk"),
            (Some(MatchedKind::Resource), Some(Risk::ReadOnly)) => {
                never("no resource has the risk read_only")
            }
            (Some(MatchedKind::DataSource), Some(risk)) if risk != Risk::ReadOnly => {
                never("every data_source has the risk read_only")
            }
            _ => Ok(()),
        }
    }

    fn check_beside(&self, other: &Self) -> Result<(), PolicyError> {
        if self.name == other.name {
            return Err(PolicyError::SameName(self.name.clone()));
        }
        // Rules with different fields differ in specificity; with the same fields, different values exclude each other.
        if self.matches == other.matches {
            return Err(PolicyError::Tie { first: other.name.clone(), second: self.name.clone() });
        }
        Ok(())
    }
}

impl Match {
    /// Greater is more specific.
    fn specificity(&self) -> [bool; 4] {
        [self.tool_name.is_some(), self.provider.is_some(), self.risk.is_some(), self.kind.is_some()]
    }

    fn holds(&self, provider: &str, tool: &Tool) -> bool {
        let kind = |kind| match kind {
            MatchedKind::Resource => tool.kind == Kind::Resource,
            MatchedKind::DataSource => tool.kind == Kind::DataSource,
        };
        self.tool_name.as_ref().is_none_or(|name| *name == tool.name)
            && self.provider.as_ref().is_none_or(|name| name == provider)
            && self.risk.is_none_or(|risk| risk == tool.risk)
            && self.kind.is_none_or(kind)
    }
}

impl fmt::Display for Ruling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => f.write_str("allow"),
            Self::Ask => f.write_str("ask"),
            Self::Deny(rule) => write!(f, "deny ({rule})"),
            Self::CannotAsk(rule) => write!(f, "deny, because it cannot be asked about ({rule})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use harness_proto::tool::v1 as pb;
    use serde_json::json;

    use super::*;

    fn tool(name: &str, kind: pb::ToolKind, risk: pb::RiskClass) -> Tool {
        let wire = pb::ToolSchema {
            name: name.to_owned(),
            kind: kind.into(),
            risk: risk.into(),
            ..pb::ToolSchema::default()
        };
        let schema = pb::GetSchemaResponse { tools: vec![wire], ..pb::GetSchemaResponse::default() };
        crate::catalogue::Catalogue::from(schema).tools.remove(0)
    }

    /// What the rules say about exec.bash, filesystem.read_file and user.ask_user.
    #[track_caller]
    fn check(rules: Value, expected: [&str; 3]) {
        let policy = Policy::from_json(rules).unwrap();
        let got = [
            ("exec", tool("bash", pb::ToolKind::Resource, pb::RiskClass::High)),
            ("filesystem", tool("read_file", pb::ToolKind::DataSource, pb::RiskClass::ReadOnly)),
            ("user", tool("ask_user", pb::ToolKind::Interactive, pb::RiskClass::ReadOnly)),
        ]
        .map(|(provider, tool)| policy.ruling(provider, &tool).to_string());
        assert_eq!(got, expected);
    }

    #[track_caller]
    fn check_refused(rules: Value, expected: &str) {
        assert_eq!(Policy::from_json(rules).unwrap_err().to_string(), expected);
    }

    #[test]
    fn without_a_rule_a_resource_is_asked_about_and_the_rest_runs() {
        check(json!([]), ["ask", "allow", "allow"]);
    }

    #[test]
    fn a_rule_without_fields_matches_everything() {
        check(json!([{"name": "none", "action": "deny"}]), ["deny (none)", "deny (none)", "deny (none)"]);
    }

    #[test]
    fn what_cannot_be_asked_about_is_denied() {
        let cannot = "deny, because it cannot be asked about (all)";
        check(json!([{"name": "all", "match": {}, "action": "ask"}]), ["ask", cannot, cannot]);
    }

    #[test]
    fn a_kind_never_names_a_question() {
        check(
            json!([
                {"name": "r", "match": {"kind": "resource"}, "action": "allow"},
                {"name": "d", "match": {"kind": "data_source"}, "action": "deny"},
            ]),
            ["allow", "deny (d)", "allow"],
        );
    }

    #[test]
    fn the_most_specific_rule_decides_wherever_it_stands() {
        let deny = |name: &str, matches: Value| json!({"name": name, "match": matches, "action": "deny"});
        let allow = |name: &str, matches: Value| json!({"name": name, "match": matches, "action": "allow"});
        let verdict = |rules: Value| {
            Policy::from_json(rules)
                .unwrap()
                .ruling("exec", &tool("bash", pb::ToolKind::Resource, pb::RiskClass::High))
                .to_string()
        };
        let (by_tool, by_provider) = (json!({"tool_name": "bash"}), json!({"provider": "exec"}));
        let (by_risk, by_kind) = (json!({"risk": "high"}), json!({"kind": "resource"}));
        let rest = json!({"provider": "exec", "risk": "high", "kind": "resource"});
        for (winner, loser) in
            [(&by_tool, &by_provider), (&by_provider, &by_risk), (&by_risk, &by_kind), (&by_tool, &rest)]
        {
            assert_eq!(verdict(json!([allow("l", loser.clone()), deny("w", winner.clone())])), "deny (w)");
            assert_eq!(verdict(json!([deny("w", winner.clone()), allow("l", loser.clone())])), "deny (w)");
        }
    }

    #[test]
    fn rules_that_tie_or_never_match_are_refused() {
        check_refused(
            json!([
                {"name": "a", "match": {"risk": "high"}, "action": "ask"},
                {"name": "b", "match": {"risk": "high"}, "action": "ask"},
            ]),
            "\"a\" and \"b\" match the same calls and neither is more specific: remove one, or add a field to one",
        );
        check_refused(
            json!([{"name": "a", "match": {"risk": "high", "kind": "data_source"}, "action": "deny"}]),
            "\"a\" can never match: every data_source has the risk read_only",
        );
        check_refused(
            json!([{"name": "a", "match": {"risk": "read_only", "kind": "resource"}, "action": "deny"}]),
            "\"a\" can never match: no resource has the risk read_only",
        );
        check_refused(
            json!([{"name": "a", "action": "deny"}, {"name": "a", "match": {"risk": "low"}, "action": "deny"}]),
            "two rules are named \"a\": a refusal names its rule, so give each its own name",
        );
    }

    #[test]
    fn what_is_no_rule_is_named() {
        assert_eq!(Policy::from_json(json!({})).unwrap_err(), PolicyError::NotAList);
        check_refused(
            json!([{"name": "a", "action": "deny"}, {"name": "b", "match": {"tool": "x"}, "action": "deny"}]),
            "rule 2: unknown field `tool`, expected one of `tool_name`, `provider`, `risk`, `kind`",
        );
        check_refused(
            json!([{"name": "a", "match": {"kind": "interactive"}, "action": "deny"}]),
            "rule 1: unknown variant `interactive`, expected `resource` or `data_source`",
        );
        check_refused(
            json!([{"name": "a", "action": "forbid"}]),
            "rule 1: unknown variant `forbid`, expected one of `allow`, `ask`, `deny`",
        );
    }
}
