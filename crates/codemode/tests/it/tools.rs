//! What a program calls, and what it gets.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use codemode::{CallStatus, Limits, Progress, Reason};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::fx::{Fx, fails, program, reads, run, run_within};

async fn check(code: &str, expected: &str) {
    let report = run(code).await;
    assert_eq!((report.reason, report.text.as_str()), (None, expected), "{code}");
}

/// Large texts take their time in an engine that is not optimised.
fn patient() -> Limits {
    Limits { slice: Duration::from_secs(120), ..Limits::default() }
}

async fn check_patiently(code: &str, expected: &str) {
    reads(&run_within(patient(), code).await, expected);
}

#[tokio::test]
async fn answers_are_strings_objects_or_content() {
    check("return typeof await tools.fx.echo({t:'x'})", "string").await;
    check("const r = await tools.fx.add({a:1,b:2}); return [typeof r, r.sum]", r#"["object",3]"#).await;
    check(
        "const r = await tools.fx.img(); return [Array.isArray(r), r[0].type, r[0].mimeType, r[0].data]",
        r#"[true,"image","image/png","AAAA"]"#,
    )
    .await;
}

#[tokio::test]
async fn a_failed_call_rejects_with_the_tools_text() {
    check(
        "try { await tools.fx.boom() } catch(e) { return [e instanceof Error, e.message] }",
        r#"[true,"boom!"]"#,
    )
    .await;
    let report = run("await tools.fx.boom()").await;
    fails(&report, Reason::Threw, &["boom!", "Calls made: fx.boom failed"]);
    assert_eq!(report.calls[0].status, CallStatus::Failed);
}

#[tokio::test]
async fn names_are_reached_by_alias_unless_two_share_it() {
    check(
        "return [await tools.fx.my_tool_v2(), await tools.fx['my-tool.v2']()]",
        r#"["my-tool.v2","my-tool.v2"]"#,
    )
    .await;
    check("return [await tools.fx.a_b(), await tools.fx['a-b']()]", r#"["a_b","a-b"]"#).await;
    fails(&run("return tools.fx.c_d()").await, Reason::Threw, &["c-d", "c.d"]);
}

#[tokio::test]
async fn unknown_tools_reject_and_name_what_is_near() {
    fails(
        &run("await tools.fx.ech()").await,
        Reason::Threw,
        &["no tool fx.ech; did you mean fx.echo?", "fx has: echo"],
    );
    fails(&run("await tools.fy.echo()").await, Reason::Threw, &["no plugin fy; did you mean fx?"]);
    fails(
        &run("await tools.echo({})").await,
        Reason::Threw,
        &["no plugin echo; the tool of that name is tools.fx.echo"],
    );
    check("return ['ech' in tools.fx, 'fy' in tools, 'echo' in tools.fy]", "[false,false,false]").await;
}

#[tokio::test]
async fn tools_look_like_plain_objects() {
    check(
        "return [Object.keys(tools), Object.keys(tools.fx).slice(-4)]",
        r#"[["fx"],["a-b","a_b","c-d","c.d"]]"#,
    )
    .await;
    check("await tools; await tools.fx; return 'at once'", "at once").await;
    check("return ['fx' in tools, 'my_tool_v2' in tools.fx, 'then' in tools]", "[true,true,false]").await;
    check("return JSON.stringify(tools)", r#"{"fx":{}}"#).await;
    check("const names = []; for (const name in tools.fx) names.push(name); return names.length", "13").await;
    for code in ["tools.fx.x = 1", "tools.x = 1", "delete tools.fx.echo", "tools = 1", "console.log = 1"] {
        fails(&run(code).await, Reason::Threw, &["TypeError"]);
    }
}

#[tokio::test]
async fn there_is_no_code_mode_inside_code_mode() {
    check("return ['execute' in tools, 'codemode' in tools, 'code' in tools]", "[false,false,false]").await;
    fails(&run("await tools.execute({code: '1'})").await, Reason::Threw, &["no plugin execute"]);
    fails(&run("await tools.code.execute({code: '1'})").await, Reason::Threw, &["no plugin code"]);
}

#[tokio::test]
async fn an_input_is_one_object() {
    let fx = Arc::<Fx>::default();
    reads(&program(&fx, "await tools.fx.echo(); return 'ok'").run().await, "ok");
    assert_eq!(fx.inputs(), [json!({})]);
    for (input, got) in [("'x'", "a string"), ("null", "null"), ("[1]", "an array"), ("5", "a number")] {
        let report = program(&fx, &format!("await tools.fx.echo({input})")).run().await;
        fails(&report, Reason::Threw, &["fx.echo takes one object", got]);
    }
    fails(
        &program(&fx, "await tools.fx.echo({a: 1n})").run().await,
        Reason::Threw,
        &["fx.echo was not called: ", "BigInt"],
    );
    let cycle = "const a = {}; a.a = a; await tools.fx.echo(a)";
    fails(&program(&fx, cycle).run().await, Reason::Threw, &["fx.echo was not called", "circular"]);
    fails(
        &program(&fx, "await tools.fx.echo({t: '\\ud800'})").run().await,
        Reason::Threw,
        &["half of a surrogate pair"],
    );
    assert_eq!(fx.called(), ["echo"], "nothing but the first call was made");
    reads(&program(&fx, "await tools.fx.echo({a: undefined, b: () => 1, c: 2}); return 1").run().await, "1");
    assert_eq!(fx.inputs()[1], json!({"c": 2}));
}

#[tokio::test]
async fn many_calls_run_together_up_to_the_cap() {
    let fx = Arc::<Fx>::default();
    let code =
        "const all = await Promise.all(Array.from({length: 1000}, (_, i) => tools.fx.echo({t: String(i)})));
                return all.every((text, i) => text === String(i)) && all.length";
    let report = program(&fx, code).within(Limits { together: 5, ..Limits::default() }).run().await;
    reads(&report, "1000");
    assert_eq!((fx.most.load(Ordering::SeqCst), report.calls.len()), (5, 1_000));
}

#[tokio::test]
async fn calls_made_together_overlap() {
    let fx = Arc::<Fx>::default();
    let code = "await Promise.all([1, 2, 3].map(() => tools.fx.slow({ms: 300}))); return 1";
    reads(&program(&fx, code).run().await, "1");
    assert_eq!(fx.most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn large_answers_pass_and_larger_ones_reject_only_their_call() {
    let twenty = 20 * 1_024 * 1_024;
    check_patiently(&format!("return (await tools.fx.big({{bytes: {twenty}}})).length"), &twenty.to_string())
        .await;
    check_patiently(
        "const [small, large] = await Promise.allSettled([tools.fx.echo({t: 'x'}), tools.fx.big({bytes: 33 * 1024 * 1024})]);
         return [small.value, large.status, large.reason.message]",
        r#"["x","rejected","the tool answered with more than 32 MiB, which cannot be passed on; ask for less"]"#,
    )
    .await;
    check_patiently(
        "const large = {t: 'x'.repeat(33 * 1024 * 1024)};
         try { await tools.fx.echo(large) } catch (e) { return [e.message, await tools.fx.echo({t: 'next'})] }",
        r#"["fx.echo was not called: its input is larger than 32 MiB","next"]"#,
    )
    .await;
}

#[tokio::test]
async fn input_of_calls_without_an_answer_is_not_piled_up() {
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let code = "const large = {t: 'x'.repeat(31 * 1024 * 1024)};
                tools.fx.stuck(large), tools.fx.stuck(large);
                try { await tools.fx.stuck({t: large.t.slice(0, 3 * 1024 * 1024)}) } catch (e) { console.log(e.message) }
                await tools.fx.stuck()";
    let stop_at_console = move |progress| {
        if matches!(progress, Progress::Console(_)) {
            stop.cancel();
        }
    };
    let report =
        program(&Arc::default(), code).within(patient()).until(cancel).telling(stop_at_console).run().await;
    let refused = "fx.stuck was not called: calls without an answer have 64 MiB of input together, values counted; await some, or send less";
    fails(&report, Reason::Cancelled, &[refused]);
    let code = "const large = {t: 'x'.repeat(22 * 1024 * 1024)};
                for (let i = 0; i < 3; i += 1) await tools.fx.img(large);
                return 'each had room'";
    check_patiently(code, "each had room").await;
}

#[tokio::test]
async fn strings_arrive_unchanged_and_pollute_nothing() {
    let raw = r#"{"s":"\ud800","nul":"a\u0000b","ls":"\u2028","__proto__":{"polluted":1},"constructor":1}"#;
    let code = format!(
        "const v = await tools.fx.json({{t: {}}});
         return [v.s.length, v.s.charCodeAt(0), v.nul.length, v.ls.charCodeAt(0), Object.keys(v).length,
                 Object.hasOwn(v, '__proto__'), ({{}}).polluted === undefined]",
        serde_json::Value::from(raw)
    );
    check(&code, "[1,55296,3,8232,5,true,true]").await;
    check("return (await tools.fx.echo({t: 'a\\u0000\\u2028ß€😀'})) === 'a\\u0000\\u2028ß€😀'", "true").await;
    check("return '\\ud800'", "\u{fffd}").await;
}

#[tokio::test]
async fn a_program_always_calls_the_current_tools() {
    let fx = Arc::<Fx>::default();
    let other = fx.clone();
    let code = "await tools.fx.slow({ms: 50}); return await tools.fx.newcomer()";
    let report = program(&fx, code)
        .telling(move |progress| {
            if matches!(progress, Progress::Started { .. }) {
                *other.late.lock().unwrap() = vec!["newcomer".to_owned()];
            }
        })
        .run()
        .await;
    reads(&report, "newcomer");
}

#[tokio::test]
async fn a_program_can_ask_what_there_is() {
    check("return (await tools.$list()).length", "13").await;
    check("return (await tools.$search({query: 'echo'}))[0].call", "tools.fx.echo").await;
    check("return (await tools.$search('echo')).length", "1").await;
    check("return (await tools.$describe('fx.add')).returns.type", "object").await;
    let report = run("return (await tools.$describe('fx.nothing'))").await;
    fails(&report, Reason::Threw, &["no tool fx.nothing"]);
    assert_eq!(report.calls, []);
}

#[tokio::test]
async fn a_program_that_breaks_its_world_breaks_only_itself() {
    let code = "Promise.prototype.then = Map.prototype.get = Array.prototype.push = Function.prototype.call = () => { throw 1 };
                JSON.stringify = JSON.parse = String.prototype.split = () => { throw 2 };
                Object.prototype.id = 7; Object.keys = () => ['x'];
                console.log({a: 1});
                return (await tools.fx.add({a: 1, b: 2})).sum";
    check(code, "3\n\n{\"a\":1}").await;
}

#[tokio::test]
async fn giving_up_ends_the_program_and_its_calls() {
    let fx = Arc::<Fx>::default();
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let report = program(&fx, "console.log('begun'); await tools.fx.stuck()")
        .until(cancel)
        .telling(move |progress| {
            if matches!(progress, Progress::Started { .. }) {
                stop.cancel();
            }
        })
        .run()
        .await;
    fails(&report, Reason::Cancelled, &["begun", "fx.stuck"]);
    let never_more_than_started = fx.cancelled.load(Ordering::SeqCst) == fx.called().len();
    assert!(never_more_than_started, "{report:?}");
}

#[tokio::test]
async fn calls_that_run_when_time_is_up_are_given_up_and_listed() {
    let fx = Arc::<Fx>::default();
    let limits = Limits { total: Duration::from_secs(5), together: 1, ..Limits::default() };
    let code = "await tools.fx.echo({t: 'x'}); await Promise.all([tools.fx.stuck(), tools.fx.echo({})])";
    let report = program(&fx, code).within(limits).run().await;
    fails(
        &report,
        Reason::TotalTime,
        &["Calls made: fx.echo ok, fx.stuck running (cancelled), fx.echo not started"],
    );
    assert_eq!(fx.cancelled.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn calls_without_an_answer_are_not_piled_up_for_ever() {
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let code = "for (let i = 0; i < 10001; i += 1) tools.fx.stuck().catch((e) => console.log(i, e.message))";
    let stop_at_console = move |progress| {
        if matches!(progress, Progress::Console(_)) {
            stop.cancel();
        }
    };
    let report =
        program(&Arc::default(), code).within(patient()).until(cancel).telling(stop_at_console).run().await;
    let refused = "10000 fx.stuck was not called: 10000 calls are without an answer; await some";
    fails(&report, Reason::Cancelled, &[refused]);
    let calls = "fx.stuck running (cancelled) (32 times), fx.stuck not started (9968 times)";
    assert!(report.text.ends_with(calls), "{}", report.text);
}

#[tokio::test]
async fn records_of_calls_are_not_piled_up_for_ever() {
    let code = "for (let i = 0; i < 12000; i += 100) await Promise.all(Array.from({length: 100}, () => tools.fx.echo()));
                throw 'end'";
    let report = run(code).await;
    fails(&report, Reason::Threw, &["Calls made: fx.echo ok (10000 times), and 2000 more"]);
    assert_eq!((report.calls.len(), report.more_calls), (10_000, 2_000));
}

#[tokio::test]
async fn names_that_a_program_makes_up_are_shown_short() {
    let report = run("await tools.fx['x'.repeat(1e6)]()").await;
    fails(&report, Reason::Threw, &["no tool fx.xxxx"]);
    assert!(report.text.len() < 2_000, "{}", report.text.len());
}
