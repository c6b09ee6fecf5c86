//! What a provider finds when it calls back.

use tool_host::notice::What;

use crate::support::{Launched, finish, text};

#[tokio::test]
async fn the_callback_serves_what_a_host_without_a_model_can() {
    let launched = Launched::plain().await;
    let (_, outcome) = finish(launched.invoke("callbacks")).await;
    assert_eq!(text(&outcome), "logged 1 session denied 1 plugin.tool.awkward.done unimplemented");
    let logged = launched.notices().into_iter().any(
        |what| matches!(what, What::Log(record) if record.message == "logged" && record.session.as_deref() == Some("session")),
    );
    assert!(logged, "{:?}", launched.notices());
}
