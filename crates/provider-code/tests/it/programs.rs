//! Programs over a provider of their own: what they may call, in which order, and what is read.

use provider_code::Code;
use provider_core::testing::Harness;
use serde_json::{Value, json};

use crate::support::{Bench, fx, overlapped};

#[tokio::test]
async fn a_program_gets_results_and_its_calls_are_listed() {
    let bench = Bench::new(json!({})).await;
    let outcome = bench
        .execute("const {text} = await tools.fx.echo({text: 'q'}); console.log('l'); await tools.fx.echo({text: 'boom'}).catch(() => 0); return text")
        .await;
    let expected = json!({
        "text": "q\n\nl",
        "calls": [{"tool": "fx.echo", "status": "ok"}, {"tool": "fx.echo", "status": "failed"}],
    });
    assert_eq!(outcome.payload(), &expected);
}

#[tokio::test]
async fn a_failed_program_is_an_error_that_begins_with_the_reason() {
    let bench = Bench::new(json!({"slice_ms": 300})).await;
    let error = bench.execute("await tools.fx.echo({text: 'boom'})").await.error();
    assert_eq!(error.category, "execution_failed");
    assert!(error.message.starts_with("threw: Error: boom!\n"), "{}", error.message);
    assert!(error.message.ends_with("Calls made: fx.echo failed"), "{}", error.message);
    let error = bench.execute("for(;;);").await.error();
    assert!(error.message.starts_with("time: "), "{}", error.message);
}

#[tokio::test]
async fn wrong_input_is_refused_by_the_provider_and_nothing_runs() {
    let bench = Bench::new(json!({})).await;
    let message = bench.text("try { await tools.fx.echo({txt: 1}) } catch (e) { return e.message }").await;
    assert!(message.contains("text: missing") && message.contains("did you mean text?"), "{message}");
    assert_eq!(bench.log(), Vec::<String>::new());
}

#[tokio::test]
async fn only_what_reads_is_offered() {
    let bench = Bench::new(json!({})).await;
    assert_eq!(bench.text("return Object.keys(tools.fx)").await, r#"["echo","keyed","exclusive"]"#);
    let error = bench.execute("await tools.fx.change({text: 'x'})").await.error();
    assert!(error.message.contains("no tool fx.change"), "{}", error.message);
    assert_eq!(bench.log(), Vec::<String>::new());
    let bench = Bench::new(json!({"allow_resources": true})).await;
    assert_eq!(bench.text("return (await tools.fx.change({text: 'x'})).text").await, "x");
    assert_eq!(bench.log(), ["change x"]);
    let refused =
        bench.text("try { await tools.fx.ask({question: 'Who?'}) } catch (e) { return e.message }").await;
    assert!(refused.contains("nobody is there"), "{refused}");
}

#[tokio::test]
async fn calls_keep_session_directory_and_an_id_of_their_own() {
    let bench = Bench::new(json!({})).await;
    let folder = bench.folder.path().display();
    assert_eq!(
        bench.text("return (await tools.fx.echo({text: 'where'})).text").await,
        format!("one {folder}")
    );
    let code = "await tools.fx.echo({text: 'a'}); return (await tools.fx.echo({text: 'id'})).text";
    let outcome = bench.harness.call_as("outer", "execute", json!({"code": code}), None).await;
    assert_eq!(outcome.payload()["text"], "outer/2");
}

#[tokio::test]
async fn calls_run_together_as_far_as_their_tools_allow() {
    let bench = Bench::new(json!({})).await;
    let code = "await Promise.all([
        tools.fx.keyed({text: 'same', ms: 300}), tools.fx.keyed({text: 'same', ms: 300}),
        tools.fx.keyed({text: 'other', ms: 900})])";
    bench.execute(code).await.payload();
    let log = bench.log();
    let same: Vec<&str> = log.iter().map(String::as_str).filter(|line| line.ends_with("same")).collect();
    assert_eq!(same, ["begin same", "end same", "begin same", "end same"]);
    assert!(overlapped(&log, "same", "other"), "{log:?}");

    let bench = Bench::new(json!({})).await;
    let code =
        "await Promise.all([tools.fx.echo({text: 'a', ms: 200}), tools.fx.exclusive({text: 'x', ms: 200}),
        tools.fx.echo({text: 'b', ms: 200})])";
    bench.execute(code).await.payload();
    let log = bench.log();
    assert!(!overlapped(&log, "a", "x") && !overlapped(&log, "x", "b"), "{log:?}");
}

#[tokio::test]
async fn a_program_that_is_given_up_ends_its_calls_and_says_what_was_done() {
    let bench = Bench::new(json!({"allow_resources": true})).await;
    let code = "await tools.fx.change({text: 'first'}); await tools.fx.change({text: 'long', ms: 600000})";
    let harness = bench.harness.clone();
    let running =
        tokio::spawn(async move { harness.call_as("outer", "execute", json!({"code": code}), None).await });
    bench.folder.wait_for("begin long").await;
    assert!(bench.harness.cancel("outer").await);
    let outcome = running.await.unwrap();
    bench.folder.wait_for("cancelled long").await;
    let last = outcome.events.last().unwrap();
    let note = last["payload"]["note"].as_str().unwrap();
    assert!(note.contains("called fx.change: ok"), "{last}");
}

#[tokio::test]
async fn many_programs_run_at_once() {
    let bench = Bench::new(json!({})).await;
    let run = |number: usize| {
        let harness = bench.harness.clone();
        let code = format!("return (await tools.fx.echo({{text: 'n{number}', ms: 50}})).text");
        tokio::spawn(async move { harness.call("execute", json!({"code": code})).await })
    };
    for (number, running) in (0..8).map(run).collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(running.await.unwrap().payload()["text"], format!("n{number}"));
    }
}

#[tokio::test]
async fn a_program_can_ask_what_there_is() {
    let bench = Bench::new(json!({})).await;
    assert_eq!(
        bench.text("return (await tools.$list()).map((tool) => tool.name)").await,
        r#"["fx.echo","fx.keyed","fx.exclusive"]"#
    );
    assert_eq!(bench.text("return (await tools.$search('key'))[0].call").await, "tools.fx.keyed");
    let described = bench.text("return await tools.$describe('fx.echo')").await;
    let described: Value = serde_json::from_str(&described).unwrap();
    assert_eq!(described["input_schema"]["required"], json!(["text"]), "{described}");
    assert_eq!(described["input_schema"]["properties"]["ms"]["type"], "number", "{described}");
    assert_eq!(described["returns"]["properties"]["text"]["description"], "The text.", "{described}");
}

#[tokio::test]
async fn a_preview_shows_the_program_and_what_it_can_reach() {
    let bench = Bench::new(json!({})).await;
    let tree = bench.harness.preview_as("p", "execute", json!({"code": "return 1\n// two"})).await.unwrap();
    let shown = format!("{tree:?}");
    assert!(shown.contains("can call tools of fx") && shown.contains("return 1\\n// two"), "{shown}");
}

#[tokio::test]
async fn a_result_is_shown_again() {
    let bench = Bench::new(json!({})).await;
    let payload = json!({"text": "q", "calls": [{"tool": "fx.echo", "status": "ok"}]});
    let shown = format!("{:?}", bench.harness.render(&payload).await.unwrap());
    assert!(shown.contains("\"q\"") && shown.contains("1 call") && shown.contains("fx.echo"), "{shown}");
}

async fn refused(config: Value) -> String {
    match Harness::start::<Code>(config).await {
        Ok(_) => panic!("it was accepted"),
        Err(status) => status.message().to_owned(),
    }
}

#[tokio::test]
async fn wrong_providers_are_refused_by_name() {
    let message =
        refused(json!({"providers": ["nothing", "code"], "provider_config": {"search": "{}"}})).await;
    for part in [
        "provider_config.search",
        "providers: nothing: there is no program provider-nothing",
        "cannot run programs",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let path = fx().to_str().unwrap().to_owned();
    let message =
        refused(json!({"providers": [path.clone()], "provider_config": {path.clone(): "{\"lag\": 1}"}}))
            .await;
    assert!(message.contains("lag") && message.contains("did you mean log?"), "{message}");
    let message = refused(json!({"providers": [path.clone()], "provider_config": {path: "nonsense"}})).await;
    assert!(message.contains("no JSON object"), "{message}");
    let itself = json!({"providers": [env!("CARGO_BIN_EXE_provider-code")]});
    assert!(refused(itself).await.contains("a program cannot run programs"));
}
