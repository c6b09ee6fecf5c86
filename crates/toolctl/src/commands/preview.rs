//! `toolctl preview`: what a call would do.

use harness_proto::render::v1::render_node::Node;
use harness_proto::render::v1::{CodeBlockNode, GroupNode, RenderNode, RenderTree, TextNode, TextStyle};
use serde_json::{Value, json};
use tool_host::{Call, CallError, Provider, tree_to_json};

use crate::cli::Preview;
use crate::exit::{Exit, Failure};
use crate::open::{Setup, arguments};
use crate::paint::{Look, paint};
use crate::shell::Shell;

pub(super) async fn run(args: Preview, shell: &Shell) -> Result<Exit, Failure> {
    let target = args.target;
    super::verbosity(target.shared.verbose, shell);
    let setup = Setup::new(&target.shared)?;
    let provider = setup.open(&target.provider, shell).await?;
    let tool = provider.tool(&target.tool).map_err(Failure::usage)?;
    let arguments = arguments(tool, target.args.as_deref(), &target.assignments)?;
    let call = setup.call(&target.tool, arguments, &target.shared);
    let tree = of(&provider, &call).await;
    provider.stop().await;
    let tree = tree?;
    if shell.json() {
        shell.json_line(&to_json(&tree));
    } else {
        shell.data(&paint(&tree, shell.out()));
    }
    Ok(Exit::Done)
}

/// The provider's preview of a call, or its arguments where it has none.
pub(super) async fn of(provider: &Provider, call: &Call) -> Result<RenderTree, CallError> {
    Ok(provider.preview(call).await?.unwrap_or_else(|| raw(call)))
}

/// The preview as an object: the tree, and the same painted without colour.
pub(super) fn to_json(tree: &RenderTree) -> Value {
    json!({"preview": tree_to_json(tree), "text": paint(tree, Look::PLAIN)})
}

fn raw(call: &Call) -> RenderTree {
    let node = |node| RenderNode { node: Some(node) };
    let title = TextNode {
        content: format!("{} has no preview; its arguments are", call.tool),
        style: Some(TextStyle::Dim.into()),
    };
    let arguments = format!("{:#}", Value::Object(call.arguments.clone()));
    let code = CodeBlockNode { language: Some("json".to_owned()), content: arguments };
    let children = vec![node(Node::Text(title)), node(Node::CodeBlock(code))];
    RenderTree { root: Some(node(Node::Group(GroupNode { children }))) }
}
