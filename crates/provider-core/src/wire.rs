//! JSON values and the wire's `Struct`, in both directions.
//!
//! Hosts use this module too; a provider author never needs it.

use harness_proto::tool::v1 as pb;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value as PbValue};
use serde_json::{Map, Number, Value};

use crate::error::{Category, ToolError};

/// The largest integer that a double holds exactly, 2^53.
///
/// ```
/// use provider_core::wire::MAX_EXACT_INTEGER;
///
/// let exact = |number: u64| number as f64 <= MAX_EXACT_INTEGER;
/// assert!(exact(1 << 53) && !exact(1 << 54));
/// ```
pub const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// The JSON object that a `Struct` carries.
///
/// Whole numbers come back as integers. A number that JSON cannot hold (NaN, infinity) becomes its name as a
/// string, so that a schema check refuses it instead of taking it for an absent value.
///
/// ```
/// use provider_core::wire::{struct_to_value, value_to_struct};
/// use serde_json::json;
///
/// assert_eq!(struct_to_value(value_to_struct(json!({"count": 5.0}))), json!({"count": 5}));
/// assert_eq!(struct_to_value(Default::default()), json!({}));
/// ```
pub fn struct_to_value(wire: Struct) -> Value {
    Value::Object(wire.fields.into_iter().map(|(key, value)| (key, from_wire(value))).collect())
}

fn from_wire(value: PbValue) -> Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => Value::Bool(flag),
        Some(Kind::NumberValue(number)) => number_to_value(number),
        Some(Kind::StringValue(text)) => Value::String(text),
        Some(Kind::ListValue(list)) => Value::Array(list.values.into_iter().map(from_wire).collect()),
        Some(Kind::StructValue(object)) => struct_to_value(object),
    }
}

fn number_to_value(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() <= MAX_EXACT_INTEGER {
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or_else(|| Value::String(number.to_string()), Value::Number)
}

/// The `Struct` that carries a JSON object. Anything but an object becomes an empty one.
///
/// ```
/// use provider_core::wire::{struct_to_value, value_to_struct};
/// use serde_json::json;
///
/// let wire = value_to_struct(json!({"count": 5}));
/// assert_eq!(struct_to_value(wire), json!({"count": 5}));
/// ```
pub fn value_to_struct(value: Value) -> Struct {
    match value {
        Value::Object(map) => map_to_struct(map),
        _ => Struct::default(),
    }
}

/// The `Struct` that carries the members of a JSON object.
///
/// ```
/// use provider_core::wire::map_to_struct;
/// use serde_json::{Map, json};
///
/// let arguments = Map::from_iter([("path".to_owned(), json!("a.txt"))]);
/// assert!(map_to_struct(arguments).fields.contains_key("path"));
/// ```
pub fn map_to_struct(map: Map<String, Value>) -> Struct {
    Struct { fields: map.into_iter().map(|(key, value)| (key, to_wire(value))).collect() }
}

fn to_wire(value: Value) -> PbValue {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(flag) => Kind::BoolValue(flag),
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Kind::StringValue(text),
        Value::Array(items) => {
            Kind::ListValue(ListValue { values: items.into_iter().map(to_wire).collect() })
        }
        Value::Object(map) => Kind::StructValue(map_to_struct(map)),
    };
    PbValue { kind: Some(kind) }
}

/// The wire form of a tool's failure.
pub(crate) fn error_to_wire(error: &ToolError) -> pb::ToolError {
    use pb::ToolErrorCategory as Wire;
    let category = match error.category() {
        Category::InvalidArguments => Wire::InvalidArguments,
        Category::NotFound => Wire::NotFound,
        Category::PermissionDenied => Wire::PermissionDenied,
        Category::ExecutionFailed => Wire::ExecutionFailed,
        Category::Timeout => Wire::Timeout,
        Category::ConcurrencyConflict => Wire::ConcurrencyConflict,
        Category::Cancelled => Wire::Cancelled,
        Category::Unknown => Wire::Unknown,
    };
    let details = error.details();
    pb::ToolError {
        category: category.into(),
        message: error.message().to_owned(),
        retryable: error.retryable(),
        details: (!details.is_empty()).then(|| map_to_struct(details)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_numbers_come_back_as_integers() {
        let value = json!({"a": 5.0, "b": [1.5, true, null], "c": {"d": "x"}});
        let back = struct_to_value(value_to_struct(value));
        assert_eq!(back, json!({"a": 5, "b": [1.5, true, null], "c": {"d": "x"}}));
    }

    #[test]
    fn a_number_json_cannot_hold_is_not_taken_for_absent() {
        let wire =
            Struct { fields: [("n".to_owned(), PbValue { kind: Some(Kind::NumberValue(f64::NAN)) })].into() };
        assert_eq!(struct_to_value(wire), json!({"n": "NaN"}));
    }

    #[test]
    fn nesting_is_limited_by_the_wire_and_overflows_no_stack() {
        use prost::Message;
        let mut bytes = PbValue { kind: Some(Kind::BoolValue(true)) }.encode_to_vec();
        for _ in 0..10_000 {
            // A list (field 6 of a value) whose one item (field 1 of a list) is the value so far.
            for tag in [0x0a, 0x32] {
                let mut outer = vec![tag];
                prost::encoding::encode_varint(bytes.len() as u64, &mut outer);
                outer.append(&mut bytes);
                bytes = outer;
            }
        }
        assert!(PbValue::decode(&*bytes).is_err());
    }
}
