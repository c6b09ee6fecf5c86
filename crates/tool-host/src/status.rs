//! What a gRPC status says about a call.

use harness_proto::tool::v1 as pb;
use prost::Message;
use serde_json::Value;
use tonic::{Code, Status};

use crate::event::{CallError, Category};
use crate::json::from_struct;

/// `google.rpc.Status`, as it travels in the trailer of a failed call.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: std::collections::BTreeMap<String, String>,
}

/// The error of an RPC that answers with a status: Configure, Preview, Render.
///
/// The most exact source counts: a `ToolError` among the details, then an `ErrorInfo`, then the code.
pub(crate) fn unary_error(status: &Status) -> CallError {
    let details = RpcStatus::decode(status.details()).unwrap_or_default().details;
    let detail = |name: &str| details.iter().find(|detail| detail.type_url.ends_with(name));
    if let Some(error) = detail("/pluggableharness.tool.v1.ToolError")
        .and_then(|detail| pb::ToolError::decode(detail.value.as_slice()).ok())
    {
        return wire_error(error);
    }
    let mut error = CallError::new(code_category(status.code()), text(status));
    if let Some(info) =
        detail("/google.rpc.ErrorInfo").and_then(|detail| ErrorInfo::decode(detail.value.as_slice()).ok())
    {
        error.category = Category::parse(&info.reason).unwrap_or(error.category);
        error.details = info.metadata.into_iter().map(|(key, value)| (key, Value::from(value))).collect();
    }
    error
}

/// The error of an Invoke that ended with a status instead of a terminal event. Details are not parsed: a
/// failure reported this way loses its category, as it does in the kernel.
pub(crate) fn stream_error(status: &Status) -> CallError {
    let category = match status.code() {
        Code::Cancelled => Category::Cancelled,
        Code::DeadlineExceeded => Category::Timeout,
        Code::Unavailable => Category::ProcessCrashed,
        _ => Category::Unknown,
    };
    let cause = format!("{:?}: {}", status.code(), status.message());
    let message = format!("the call ended with a gRPC status instead of a result: {}", text(status));
    CallError::new(category, message).with("error", cause)
}

/// The error event of a provider. The categories that a provider must not send become `unknown`.
pub(crate) fn wire_error(wire: pb::ToolError) -> CallError {
    use pb::ToolErrorCategory as Wire;
    let category = match wire.category() {
        Wire::InvalidArguments => Category::InvalidArguments,
        Wire::NotFound => Category::NotFound,
        Wire::PermissionDenied => Category::PermissionDenied,
        Wire::ExecutionFailed => Category::ExecutionFailed,
        Wire::Timeout => Category::Timeout,
        Wire::ConcurrencyConflict => Category::ConcurrencyConflict,
        Wire::Cancelled => Category::Cancelled,
        Wire::Unspecified | Wire::ProcessCrashed | Wire::Unknown => Category::Unknown,
    };
    let details = wire.details.map(from_struct).unwrap_or_default();
    CallError { category, message: wire.message, retryable: wire.retryable, details }
}

fn code_category(code: Code) -> Category {
    match code {
        Code::InvalidArgument => Category::InvalidArguments,
        Code::NotFound => Category::NotFound,
        Code::PermissionDenied => Category::PermissionDenied,
        Code::Internal => Category::ExecutionFailed,
        Code::DeadlineExceeded => Category::Timeout,
        Code::Aborted => Category::ConcurrencyConflict,
        Code::Cancelled => Category::Cancelled,
        Code::Unavailable => Category::ProcessCrashed,
        _ => Category::Unknown,
    }
}

fn text(status: &Status) -> String {
    match status.message() {
        "" => status.code().description().to_owned(),
        message => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: Code, type_url: &str, value: Vec<u8>) -> Status {
        let details = vec![prost_types::Any { type_url: type_url.to_owned(), value }];
        Status::with_details(code, "text", RpcStatus { details }.encode_to_vec().into())
    }

    #[test]
    fn the_tool_error_among_the_details_rules() {
        let wire = pb::ToolError {
            category: pb::ToolErrorCategory::ConcurrencyConflict.into(),
            message: "changed".into(),
            retryable: true,
            details: None,
        };
        let error = unary_error(&status(
            Code::Internal,
            "type.googleapis.com/pluggableharness.tool.v1.ToolError",
            wire.encode_to_vec(),
        ));
        assert_eq!((error.category, error.message.as_str()), (Category::ConcurrencyConflict, "changed"));
    }

    #[test]
    fn error_info_names_category_and_code() {
        let info = ErrorInfo {
            reason: "permission_denied".into(),
            metadata: [("code".to_owned(), "outside_root".to_owned())].into(),
        };
        let error = unary_error(&status(
            Code::Unknown,
            "type.googleapis.com/google.rpc.ErrorInfo",
            info.encode_to_vec(),
        ));
        assert_eq!((error.category, error.code()), (Category::PermissionDenied, Some("outside_root")));
    }

    #[test]
    fn without_details_the_code_decides() {
        let error = unary_error(&Status::invalid_argument("bad root"));
        assert_eq!((error.category, error.message.as_str()), (Category::InvalidArguments, "bad root"));
        assert_eq!(stream_error(&Status::invalid_argument("x")).category, Category::Unknown);
        assert_eq!(stream_error(&Status::unavailable("x")).category, Category::ProcessCrashed);
    }

    #[test]
    fn a_provider_cannot_claim_to_have_crashed() {
        let wire = |category: pb::ToolErrorCategory| pb::ToolError {
            category: category.into(),
            ..pb::ToolError::default()
        };
        assert_eq!(wire_error(wire(pb::ToolErrorCategory::ProcessCrashed)).category, Category::Unknown);
        assert_eq!(wire_error(wire(pb::ToolErrorCategory::Unspecified)).category, Category::Unknown);
    }
}
