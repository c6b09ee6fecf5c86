//! JSON objects and the wire's `Struct`.

use prost_types::Struct;
use serde_json::Value;

use crate::event::Object;

/// The JSON object that a `Struct` carries. Whole numbers come back as integers; NaN and the infinities, which
/// have no JSON form, as their names.
pub fn from_struct(wire: Struct) -> Object {
    match provider_core::wire::struct_to_value(wire) {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// The `Struct` that carries a JSON object.
pub(crate) fn to_struct(object: Object) -> Struct {
    provider_core::wire::map_to_struct(object)
}
