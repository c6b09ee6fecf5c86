//! Arguments and results, field by field.

use tool_host::schema::{Schema, Shape};

use crate::change::Rule;
use crate::compare::Changes;

/// Which schema of a tool is compared: what callers send, or what they read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Arguments,
    Result,
}

/// The rules of one side, by what happened.
struct Rules {
    removed: Rule,
    added: Rule,
    added_required: Rule,
    made_required: Rule,
    made_optional: Rule,
    type_changed: Rule,
    widened: Rule,
    narrowed: Rule,
    value_removed: Rule,
    value_added: Rule,
    root: &'static str,
    noun: &'static str,
}

const ARGUMENTS: Rules = Rules {
    removed: Rule::ArgumentRemoved,
    added: Rule::ArgumentAdded,
    added_required: Rule::RequiredArgumentAdded,
    made_required: Rule::ArgumentMadeRequired,
    made_optional: Rule::ArgumentMadeOptional,
    type_changed: Rule::ArgumentTypeChanged,
    widened: Rule::ArgumentWidened,
    narrowed: Rule::ArgumentNarrowed,
    value_removed: Rule::ArgumentValueRemoved,
    value_added: Rule::ArgumentValueAdded,
    root: "arguments",
    noun: "argument",
};

const RESULT: Rules = Rules {
    removed: Rule::ResultFieldRemoved,
    added: Rule::ResultFieldAdded,
    added_required: Rule::ResultFieldAdded,
    made_required: Rule::ResultFieldMadeRequired,
    made_optional: Rule::ResultFieldMadeOptional,
    type_changed: Rule::ResultTypeChanged,
    widened: Rule::ResultWidened,
    narrowed: Rule::ResultNarrowed,
    value_removed: Rule::ResultValueRemoved,
    value_added: Rule::ResultValueAdded,
    root: "result",
    noun: "result field",
};

/// Compares one side of a tool.
pub(crate) fn compare_schemas(changes: &mut Changes, side: Side, old: &Schema, new: &Schema) {
    let rules = match side {
        Side::Arguments => &ARGUMENTS,
        Side::Result => &RESULT,
    };
    let mut walk = Walk { changes, rules };
    // The description of the whole is the tool's own and told there.
    walk.shapes("", &old.shape, &new.shape);
}

struct Walk<'a> {
    changes: &'a mut Changes,
    rules: &'static Rules,
}

impl Walk<'_> {
    fn add(&mut self, rule: Rule, path: &str, message: String) {
        let separator = if path.is_empty() { "" } else { "." };
        self.changes.add(rule, format!("{}{separator}{path}", self.rules.root), message);
    }

    /// The field at a path, as a sentence begins.
    fn named(&self, path: &str) -> String {
        if path.is_empty() {
            format!("the {}", self.rules.root)
        } else {
            format!("the {} {path}", self.rules.noun)
        }
    }

    fn nodes(&mut self, path: &str, old: &Schema, new: &Schema) {
        if old.description != new.description {
            self.add(Rule::DescriptionChanged, path, format!("{} has another description", self.named(path)));
        }
        self.shapes(path, &old.shape, &new.shape);
    }

    fn shapes(&mut self, path: &str, old: &Shape, new: &Shape) {
        match (old, new) {
            (Shape::Any, Shape::Any) | (Shape::Number, Shape::Number) | (Shape::Boolean, Shape::Boolean) => {}
            (
                Shape::Object { properties, required },
                Shape::Object { properties: new_properties, required: new_required },
            ) => {
                for (name, node) in properties {
                    let path = join(path, name);
                    match new_properties.get(name) {
                        None => self.add(self.rules.removed, &path, format!("{} is gone", self.named(&path))),
                        Some(new) => {
                            self.presence(&path, required.contains(name), new_required.contains(name));
                            self.nodes(&path, node, new);
                        }
                    }
                }
                for name in new_properties.keys().filter(|name| !properties.contains_key(*name)) {
                    self.added(&join(path, name), new_required.contains(name));
                }
            }
            (Shape::String { values: old }, Shape::String { values: new }) => self.values(path, old, new),
            (Shape::Array(Some(old)), Shape::Array(Some(new))) => self.nodes(&format!("{path}[]"), old, new),
            (Shape::Array(None), Shape::Array(None)) => {}
            (_, Shape::Any) | (Shape::Array(Some(_)), Shape::Array(None)) => {
                self.changed(self.rules.widened, path, old, new);
            }
            (Shape::Any, _) | (Shape::Array(None), Shape::Array(Some(_))) => {
                self.changed(self.rules.narrowed, path, old, new);
            }
            (old, new) => self.changed(self.rules.type_changed, path, old, new),
        }
    }

    fn added(&mut self, path: &str, required: bool) {
        if required && self.rules.root == ARGUMENTS.root {
            self.add(
                self.rules.added_required,
                path,
                format!("the required {} {path} is new", self.rules.noun),
            );
        } else {
            self.add(self.rules.added, path, format!("{} is new", self.named(path)));
        }
    }

    fn presence(&mut self, path: &str, old: bool, new: bool) {
        match (old, new, self.rules.root == ARGUMENTS.root) {
            (false, true, true) => {
                self.add(self.rules.made_required, path, format!("{} is required now", self.named(path)));
            }
            (true, false, true) => {
                self.add(self.rules.made_optional, path, format!("{} can be left out now", self.named(path)));
            }
            (false, true, false) => {
                self.add(self.rules.made_required, path, format!("{} is always there now", self.named(path)));
            }
            (true, false, false) => {
                self.add(self.rules.made_optional, path, format!("{} can be missing now", self.named(path)));
            }
            _ => {}
        }
    }

    fn changed(&mut self, rule: Rule, path: &str, old: &Shape, new: &Shape) {
        let wanted = |shape: &Shape| Schema { description: String::new(), shape: shape.clone() }.wanted();
        let message = format!("{} was {} and is {}", self.named(path), wanted(old), wanted(new));
        self.add(rule, path, message);
    }

    /// Two strings. An empty set allows any text.
    fn values(&mut self, path: &str, old: &[String], new: &[String]) {
        let shape = |values: &[String]| Shape::String { values: values.to_vec() };
        match (old.is_empty(), new.is_empty()) {
            (true, true) => {}
            (false, true) => self.changed(self.rules.widened, path, &shape(old), &shape(new)),
            (true, false) => self.changed(self.rules.narrowed, path, &shape(old), &shape(new)),
            (false, false) => {
                for value in old.iter().filter(|value| !new.contains(value)) {
                    let message = format!("{} has no value \"{value}\" any more", self.named(path));
                    self.add(self.rules.value_removed, path, message);
                }
                for value in new.iter().filter(|value| !old.contains(value)) {
                    let message = format!("{} has the new value \"{value}\"", self.named(path));
                    self.add(self.rules.value_added, path, message);
                }
            }
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
