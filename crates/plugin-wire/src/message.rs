//! JSON-RPC messages.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::conventions::code;

/// What names a request: a number or a text, and always the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// A number, as it was written.
    Number(String),
    /// A text.
    Text(String),
}

impl Id {
    /// The id that a value is, if it is one.
    pub fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(Self::Number(number.to_string())),
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }

    /// The id as JSON, as it came.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Number(number) => serde_json::from_str(number).unwrap_or(Value::Null),
            Self::Text(text) => Value::String(text.clone()),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => f.write_str(number),
            Self::Text(text) => write!(f, "{}", Value::from(text.as_str())),
        }
    }
}

/// An error in place of a result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// Its code.
    pub code: i64,
    /// What is wrong, and what to do.
    pub message: String,
}

impl RpcError {
    /// An error.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// There is no such method.
    pub fn no_method(method: &str) -> Self {
        Self::new(code::NO_METHOD, format!("there is no method {method}"))
    }

    /// The parameters are wrong.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }
}

/// A message that came.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// It wants an answer.
    Request {
        /// Names it.
        id: Id,
        /// What is wanted.
        method: String,
        /// With what; null where nothing was said.
        params: Value,
    },
    /// It wants none.
    Notification {
        /// What it is about.
        method: String,
        /// The rest.
        params: Value,
    },
    /// It is an answer.
    Response {
        /// The request's id.
        id: Id,
        /// The result, or the error in its place.
        result: Result<Value, RpcError>,
    },
}

/// A message that is none, and what its sender is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Malformed {
    /// The id it gave, as far as it gave one.
    pub id: Option<Id>,
    /// What is wrong.
    pub error: RpcError,
}

impl Malformed {
    fn new(id: Option<Id>, code: i64, message: impl Into<String>) -> Self {
        Self { id, error: RpcError::new(code, message) }
    }
}

/// A message, and whether it says which JSON-RPC it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The message.
    pub message: Incoming,
    /// Whether it has the member `jsonrpc`.
    pub versioned: bool,
}

/// Reads a message.
///
/// # Errors
/// What its sender is told.
pub fn parse(bytes: &[u8]) -> Result<Parsed, Malformed> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| Malformed::new(None, code::PARSE, format!("not JSON: {error}")))?;
    let Value::Object(mut object) = value else {
        let batch = value.is_array();
        let what =
            if batch { "lists of messages are not taken: send one at a time" } else { "wanted an object" };
        return Err(Malformed::new(None, code::INVALID_REQUEST, what));
    };
    let versioned = object.contains_key("jsonrpc");
    if let Some(version) = object.get("jsonrpc").filter(|version| *version != "2.0") {
        let id = object.get("id").and_then(Id::from_json);
        return Err(Malformed::new(
            id,
            code::INVALID_REQUEST,
            format!("jsonrpc is {version}: wanted \"2.0\""),
        ));
    }
    read(&mut object).map(|message| Parsed { message, versioned })
}

fn read(object: &mut Map<String, Value>) -> Result<Incoming, Malformed> {
    let given = object.remove("id");
    let id = given.as_ref().and_then(Id::from_json);
    let params = object.remove("params").unwrap_or_default();
    match (object.remove("method"), id, given) {
        (Some(Value::String(method)), Some(id), _) => Ok(Incoming::Request { id, method, params }),
        (Some(Value::String(method)), None, None) => Ok(Incoming::Notification { method, params }),
        (Some(Value::String(_)), None, Some(_)) => {
            Err(Malformed::new(None, code::INVALID_REQUEST, "id must be a number or a text"))
        }
        (Some(_), id, _) => Err(Malformed::new(id, code::INVALID_REQUEST, "method must be a text")),
        (None, Some(id), _) => response(object, id),
        (None, None, _) => Err(Malformed::new(None, code::INVALID_REQUEST, "method is missing")),
    }
}

fn response(object: &mut Map<String, Value>, id: Id) -> Result<Incoming, Malformed> {
    match (object.remove("result"), object.remove("error")) {
        (_, Some(error)) if !error.is_null() => {
            let code = error.get("code").and_then(Value::as_i64).unwrap_or(code::INTERNAL);
            let message =
                error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
            Ok(Incoming::Response { id, result: Err(RpcError { code, message }) })
        }
        (Some(result), _) => Ok(Incoming::Response { id, result: Ok(result) }),
        (None, _) => Err(Malformed::new(Some(id), code::INVALID_REQUEST, "method is missing")),
    }
}

/// A message that goes out. `versioned`: whether it says which JSON-RPC it is.
pub fn write(message: &Outgoing, versioned: bool) -> String {
    let mut object = Map::new();
    if versioned {
        object.insert("jsonrpc".to_owned(), "2.0".into());
    }
    match message {
        Outgoing::Request { id, method, params } => {
            object.insert("id".to_owned(), id.to_json());
            object.insert("method".to_owned(), method.as_str().into());
            object.insert("params".to_owned(), params.clone());
        }
        Outgoing::Notification { method, params } => {
            object.insert("method".to_owned(), method.as_str().into());
            if !params.is_null() {
                object.insert("params".to_owned(), params.clone());
            }
        }
        Outgoing::Response { id, result } => {
            object.insert("id".to_owned(), id.as_ref().map_or(Value::Null, Id::to_json));
            match result {
                Ok(result) => object.insert("result".to_owned(), result.clone()),
                Err(RpcError { code, message }) => {
                    object.insert("error".to_owned(), json!({"code": code, "message": message}))
                }
            };
        }
    }
    Value::Object(object).to_string()
}

/// A message that goes out.
#[derive(Clone, Debug, PartialEq)]
pub enum Outgoing {
    /// It wants an answer.
    Request {
        /// Names it.
        id: Id,
        /// What is wanted.
        method: String,
        /// With what.
        params: Value,
    },
    /// It wants none.
    Notification {
        /// What it is about.
        method: String,
        /// The rest; null for nothing.
        params: Value,
    },
    /// An answer; without an id to what could not be read.
    Response {
        /// The request's id.
        id: Option<Id>,
        /// The result, or the error in its place.
        result: Result<Value, RpcError>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a message is read as, or what its sender is told.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let got = match parse(text.as_bytes()) {
            Ok(Parsed { message: Incoming::Request { id, method, params }, versioned }) => {
                format!("{method}({params}) as {id}, {versioned}")
            }
            Ok(Parsed { message: Incoming::Notification { method, params }, .. }) => {
                format!("{method}: {params}")
            }
            Ok(Parsed { message: Incoming::Response { id, result: Ok(result) }, .. }) => {
                format!("{id} = {result}")
            }
            Ok(Parsed { message: Incoming::Response { id, result: Err(error) }, .. }) => {
                format!("{id} failed {} {error}", error.code)
            }
            Err(Malformed { id, error }) => {
                format!("{} {} {error}", id.map_or(Value::Null, |id| id.to_json()), error.code)
            }
        };
        assert_eq!(got, expected);
    }

    #[test]
    fn messages_are_told_apart() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1}}"#, r#"a({"x":1}) as 1, true"#);
        check(r#"{"id":"1","method":"a"}"#, r#"a(null) as "1", false"#);
        check(r#"{"id":18446744073709551615,"method":"a"}"#, "a(null) as 18446744073709551615, false");
        check(r#"{"method":"tool/cancel","params":{"id":1}}"#, r#"tool/cancel: {"id":1}"#);
        check(r#"{"id":1,"result":null}"#, "1 = null");
        check(r#"{"id":1,"error":{"code":-1,"message":"no"}}"#, "1 failed -1 no");
        check(r#"{"id":1,"result":{},"error":null}"#, "1 = {}");
    }

    #[test]
    fn what_is_no_message_is_answered() {
        check("{", "null -32700 not JSON: EOF while parsing an object at line 1 column 1");
        check(
            "\"\u{0}\"",
            "null -32700 not JSON: control character (\\u0000-\\u001F) found while parsing a string at line 1 column 2",
        );
        check("[]", "null -32600 lists of messages are not taken: send one at a time");
        check("7", "null -32600 wanted an object");
        check(r#"{"id":null,"method":"a"}"#, "null -32600 id must be a number or a text");
        check(r#"{"id":3,"method":7}"#, "3 -32600 method must be a text");
        check(r#"{"id":3}"#, "3 -32600 method is missing");
        check(r#"{"jsonrpc":"1.0","id":3,"method":"a"}"#, r#"3 -32600 jsonrpc is "1.0": wanted "2.0""#);
    }

    #[test]
    fn an_id_comes_back_as_it_came() {
        for id in [
            serde_json::json!(1),
            serde_json::json!("1"),
            serde_json::json!(u64::MAX),
            serde_json::json!(1.5),
        ] {
            assert_eq!(Id::from_json(&id).unwrap().to_json(), id);
        }
        assert_ne!(Id::Number("1".into()), Id::Text("1".into()));
    }
}
