//! What counts as a program, and what is read of it.

use codemode::Reason;

use crate::fx::{fails, reads, run};

async fn check(code: &str, expected: &str) {
    let report = run(code).await;
    assert_eq!((report.reason, report.text.as_str()), (None, expected), "{code}");
}

#[tokio::test]
async fn a_body_returns_what_is_read() {
    check("return 1", "1").await;
    check("return \"a\\nb\"", "a\nb").await;
    check("return {a:1}", r#"{"a":1}"#).await;
    check("return [undefined, NaN, null]", "[null,null,null]").await;
    check("return ''", "").await;
    check("return null", "null").await;
    check("await null; return false", "false").await;
}

#[tokio::test]
async fn one_expression_is_a_program() {
    check("1+1", "2").await;
    check("1+1;", "2").await;
    check("1+1 // c", "2").await;
    check("1+1; // c", "2").await;
    check("{a:1}", r#"{"a":1}"#).await;
    check("({a:1})", r#"{"a":1}"#).await;
    check("await Promise.resolve(7)", "7").await;
    check("'a // b'", "a // b").await;
}

#[tokio::test]
async fn an_expression_that_is_a_function_is_called_with_the_tools() {
    check("async (tools) => (await tools.fx.add({a:1,b:2})).sum", "3").await;
    check("async () => 3", "3").await;
    check("async () => 3;", "3").await;
    check("function f(t){return typeof t.fx}", "object").await;
    check("(t) => t === tools", "true").await;
}

#[tokio::test]
async fn a_markdown_fence_is_no_part_of_the_program() {
    check("```js\nreturn 1\n```", "1").await;
    check("```\n1 + 1\n```\n", "2").await;
}

#[tokio::test]
async fn the_value_is_read_before_the_console() {
    check("const x = await tools.fx.echo({t:\"q\"}); console.log(\"l\"); return x", "q\n\nl").await;
    check("console.log('a'); console.warn('b'); console.error('c')", "a\n[warn] b\n[error] c").await;
}

#[tokio::test]
async fn without_a_value_it_says_what_to_do() {
    check("const a = 1", "(no value: use return)").await;
    check("", "(no value: use return)").await;
    check("console.log('only')", "only").await;
}

#[tokio::test]
async fn what_is_no_json_is_refused() {
    fails(&run("return 10n").await, Reason::ValueNotJson, &["BigInt"]);
    fails(&run("const a = {}; a.a = a; return a").await, Reason::ValueNotJson, &["circular"]);
    fails(&run("return () => 1").await, Reason::ValueNotJson, &["a function"]);
}

#[tokio::test]
async fn an_error_says_its_line_and_shows_no_frame_of_ours() {
    let thrown = run("const a = 1;\nfunction inner() {\n  null.x\n}\ninner()").await;
    fails(&thrown, Reason::Threw, &["TypeError", "at inner (program.js:3:", "(program.js:5:1)"]);
    let called = run("\n\nawait tools.fx.boom()").await;
    fails(&called, Reason::Threw, &["threw: Error: boom!", "(program.js:3:"]);
    let syntax = run("const a = 1\nconst b = 2\nconst = 3").await;
    fails(&syntax, Reason::Syntax, &["program.js:3:"]);
    for report in [thrown, called, syntax] {
        assert!(!report.text.contains("prelude"), "{}", report.text);
    }
    fails(
        &run("nonsense()").await,
        Reason::Threw,
        &["ReferenceError: nonsense is not defined", "(program.js:1:1)"],
    );
    fails(&run("throw 42").await, Reason::Threw, &["threw: 42"]);
    fails(&run("throw {a: 1}").await, Reason::Threw, &[r#"threw: {"a":1}"#]);
}

#[tokio::test]
async fn a_text_cannot_leave_its_function() {
    for code in [
        "}); globalThis.x=1; (async()=>{",
        "} }); globalThis.x=1; (async function () { return async function () {",
        "1) }); globalThis.x = 1; (async function () { return (2",
        "1)] }); tools.fx.boom(); (async function () { return [(2",
        "}); tools.fx.boom(); (async () => {",
        "}, globalThis.x = 1, async function () {",
        "} [globalThis.x = 1] = async function () {",
        "} instanceof\nasync function () {",
        "} async other() {",
        "} } [globalThis.x = 1] + class { async other() {",
        "1) + (2",
        "1), globalThis.x = 1, (2",
        "1}` + `${2",
        "1] + [2",
        "/* } */ }",
    ] {
        let report = run(code).await;
        fails(&report, Reason::Syntax, &[]);
        assert_eq!(report.calls, [], "{code}");
    }
}

#[tokio::test]
async fn common_mistakes_are_explained() {
    fails(&run("import fs from 'fs'").await, Reason::Syntax, &["no modules"]);
    fails(&run("const a: string = 'x'; return a").await, Reason::Syntax, &["TypeScript"]);
    fails(&run("git status").await, Reason::Syntax, &["shell command"]);
    fails(&run("ls -la").await, Reason::Threw, &["ls is not defined", "shell command"]);
    fails(&run("setTimeout(() => 1, 5)").await, Reason::Threw, &["no timers"]);
    fails(&run("return require('fs')").await, Reason::Threw, &["no modules"]);
}

#[tokio::test]
async fn a_program_is_strict_and_may_shadow_everything() {
    fails(&run("undeclared = 1").await, Reason::Threw, &["undeclared is not defined"]);
    reads(&run("const tools = 5, console = 6; return tools + console").await, "11");
}

#[tokio::test]
async fn pictures_are_not_printed() {
    let report = run("return await tools.fx.img({size: 40000})").await;
    reads(&report, r#"[{"type":"image","mimeType":"image/png","data":"[image/png, 29 KiB]"}]"#);
    let small = run("return (await tools.fx.img())[0].data").await;
    reads(&small, "AAAA");
}
