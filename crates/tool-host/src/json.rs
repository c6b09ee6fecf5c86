//! JSON objects and the wire's `Struct`.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value as Wire};
use serde_json::{Number, Value};

use crate::event::Object;

/// The largest magnitude up to which a double holds every integer.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// The JSON object that a `Struct` carries. Whole numbers come back as integers.
///
/// NaN and the infinities have no JSON form; they become their names as strings, so that a schema check
/// refuses them instead of taking them for something else.
pub fn from_struct(wire: Struct) -> Object {
    wire.fields.into_iter().map(|(key, value)| (key, from_wire(value))).collect()
}

fn from_wire(value: Wire) -> Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => flag.into(),
        Some(Kind::NumberValue(number)) => from_number(number),
        Some(Kind::StringValue(text)) => text.into(),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(from_wire).collect(),
        Some(Kind::StructValue(object)) => Value::Object(from_struct(object)),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the number is whole and its magnitude at most 2^53")]
fn from_number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() <= MAX_EXACT {
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or_else(|| Value::from(number.to_string()), Value::Number)
}

/// The `Struct` that carries a JSON object.
pub(crate) fn to_struct(object: Object) -> Struct {
    Struct { fields: object.into_iter().map(|(key, value)| (key, to_wire(value))).collect() }
}

fn to_wire(value: Value) -> Wire {
    Wire {
        kind: Some(match value {
            Value::Null => Kind::NullValue(0),
            Value::Bool(flag) => Kind::BoolValue(flag),
            Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => Kind::StringValue(text),
            Value::Array(items) => {
                Kind::ListValue(ListValue { values: items.into_iter().map(to_wire).collect() })
            }
            Value::Object(object) => Kind::StructValue(to_struct(object)),
        }),
    }
}
