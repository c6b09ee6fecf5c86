//! A provider's configuration, put together from roots, JSON and assignments.

use std::path::PathBuf;

use serde_json::Value;

use crate::assign::{AssignError, Assignment, apply_to_config};
use crate::catalogue::{Attribute, AttributeKind};
use crate::event::Object;
use provider_core::nearest;

/// What an operator says about the configuration, for whichever provider it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Absolute directories. They fill `allowed_roots` or `root` where the provider has such an attribute.
    pub roots: Vec<PathBuf>,
    /// Attributes as JSON, over the roots.
    pub json: Object,
    /// Attributes as typed, over the JSON.
    pub assignments: Vec<Assignment>,
}

impl Settings {
    /// The configuration of a provider with these attributes.
    ///
    /// # Errors
    /// An attribute the provider does not have, or a text that is not of its type. Values given as JSON are
    /// left to the provider, which refuses wrong ones in Configure.
    pub fn resolve(&self, attributes: &[Attribute]) -> Result<Object, AssignError> {
        let mut out = self.root_defaults(attributes);
        for (key, value) in &self.json {
            if !attributes.iter().any(|attribute| attribute.name == *key) {
                return Err(unknown(key, attributes));
            }
            out.insert(key.clone(), value.clone());
        }
        let known = attributes.iter().map(|attribute| (attribute.name.as_str(), &attribute.kind));
        apply_to_config(known, &mut out, &self.assignments)?;
        Ok(out)
    }

    /// These settings without what a provider with these attributes does not know, for several providers that
    /// share one command line.
    #[must_use]
    pub fn restricted_to(&self, attributes: &[Attribute]) -> Self {
        let known = |key: &str| attributes.iter().any(|attribute| attribute.name == key);
        Self {
            roots: self.roots.clone(),
            json: self
                .json
                .iter()
                .filter(|(key, _)| known(key))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect(),
            assignments: self.assignments.iter().filter(|given| known(&given.key)).cloned().collect(),
        }
    }

    /// Checks that every attribute given is known to at least one of several providers.
    ///
    /// # Errors
    /// The first that none of them has.
    pub fn check_known_to_any(&self, attributes: &[Attribute]) -> Result<(), AssignError> {
        let keys = self.json.keys().chain(self.assignments.iter().map(|given| &given.key));
        for key in keys {
            if !attributes.iter().any(|attribute| attribute.name == *key) {
                return Err(unknown(key, attributes));
            }
        }
        Ok(())
    }

    fn root_defaults(&self, attributes: &[Attribute]) -> Object {
        let roots: Vec<Value> =
            self.roots.iter().map(|root| root.to_string_lossy().into_owned().into()).collect();
        let mut out = Object::new();
        for attribute in attributes {
            let value = match (attribute.name.as_str(), &attribute.kind) {
                ("allowed_roots", AttributeKind::ListString) if !roots.is_empty() => {
                    Some(Value::Array(roots.clone()))
                }
                ("root", AttributeKind::String) => roots.first().cloned(),
                _ => None,
            };
            if let Some(value) = value {
                out.insert(attribute.name.clone(), value);
            }
        }
        out
    }
}

fn unknown(key: &str, attributes: &[Attribute]) -> AssignError {
    let names = attributes.iter().map(|attribute| attribute.name.as_str());
    AssignError::Unknown {
        what: "configuration attribute",
        key: key.to_owned(),
        nearest: nearest(key, names).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn attribute(name: &str, kind: AttributeKind) -> Attribute {
        Attribute {
            name: name.into(),
            kind,
            required: false,
            sensitive: false,
            description: String::new(),
            default: None,
        }
    }

    fn attributes() -> Vec<Attribute> {
        vec![
            attribute("allowed_roots", AttributeKind::ListString),
            attribute("root", AttributeKind::String),
            attribute("read_only", AttributeKind::Bool),
            attribute("env", AttributeKind::MapString),
        ]
    }

    #[track_caller]
    fn check(json: Value, assignments: &[&str], expected: Result<Value, &str>) {
        let Value::Object(json) = json else { panic!("an object") };
        let assignments = assignments.iter().map(|text| text.parse().unwrap()).collect();
        let settings = Settings { roots: vec!["/a".into(), "/b".into()], json, assignments };
        let got = settings.resolve(&attributes()).map(Value::Object).map_err(|error| error.to_string());
        assert_eq!(got, expected.map_err(str::to_owned));
    }

    #[test]
    fn later_sources_rule() {
        check(json!({}), &[], Ok(json!({"allowed_roots": ["/a", "/b"], "root": "/a"})));
        check(
            json!({"root": "/j", "read_only": false}),
            &["read_only=true", "allowed_roots=/x", "allowed_roots=/y"],
            Ok(json!({"allowed_roots": ["/x", "/y"], "root": "/j", "read_only": true})),
        );
    }

    #[test]
    fn an_unknown_attribute_names_the_nearest() {
        let expected = "there is no configuration attribute allowed_root; did you mean allowed_roots?";
        check(json!({}), &["allowed_root=/x"], Err(expected));
        check(json!({"colour": 1}), &[], Err("there is no configuration attribute colour"));
    }
}
