//! What a program may use, and every way in which it can end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use codemode::{CallStatus, Limits, Reason};

use crate::fx::{Fx, alone, fails, program, reads, run, run_within, short};

async fn check(code: &str, expected: &str) {
    let report = run(code).await;
    assert_eq!((report.reason, report.text.as_str()), (None, expected), "{code}");
}

/// The program fails with `time`, not before its limit.
async fn check_time(code: &str) {
    let began = Instant::now();
    let report = run_within(short(), code).await;
    fails(&report, Reason::Time, &["1s"]);
    let took = began.elapsed();
    // What is not stopped runs for more than half a minute, or for ever.
    assert!((Duration::from_secs(1)..Duration::from_secs(20)).contains(&took), "{code}: {took:?}");
    assert!(!report.text.contains("reached"), "{}", report.text);
}

#[tokio::test]
async fn an_endless_loop_is_stopped_and_cannot_be_caught() {
    check_time("while(true){}").await;
    check_time(
        "try { while(true){} } catch (e) { console.log('reached') } finally { console.log('reached') }",
    )
    .await;
    check_time("while(true) await 0").await;
}

#[tokio::test]
async fn what_never_asks_the_clock_is_stopped_too() {
    check_time("return /^(a+)+$/.test('a'.repeat(40)+'b')").await;
    // Not of `undefined`, which the language sorts without asking.
    check_time("return [...Array(1e6).keys()].sort(()=>{for(;;);})").await;
    check_time("return new Array(1e9)+''").await;
}

#[tokio::test]
async fn every_answer_begins_a_new_slice() {
    let spin = "const spin = (ms) => { const end = Date.now() + ms; while (Date.now() < end); };";
    let four = format!(
        "{spin} for (let i = 0; i < 4; i += 1) {{ spin(600); await tools.fx.echo({{}}) }} return 'done'"
    );
    reads(&run_within(short(), &four).await, "done");
    let one = format!("{spin} await tools.fx.echo({{}}); spin(1100); return 'done'");
    fails(&run_within(short(), &one).await, Reason::Time, &["Calls made: fx.echo ok"]);
}

#[tokio::test]
async fn waiting_for_a_tool_is_free() {
    let limits = Limits { slice: Duration::from_millis(500), ..short() };
    reads(&run_within(limits, "return await tools.fx.slow({ms: 1500})").await, "slept");
}

#[tokio::test]
async fn too_much_memory_is_said_so_whatever_the_program_makes_of_it() {
    let limits = Limits { slice: Duration::from_secs(30), memory: 64 << 20, ..Limits::default() };
    for code in [
        "const a=[];for(;;)a.push({x:1})",
        "try { const a=[];for(;;)a.push({x:1}) } catch { } return 'ok'",
        "const next = () => Promise.resolve([1,2,3]).then((a) => { keep.push(a, [...a], {a}); return next() }); \
         const keep = []; await next()",
        "const a = 'x'.repeat(100 * 1024 * 1024); return a.length",
    ] {
        fails(&run_within(limits, code).await, Reason::Memory, &["more than 64 MiB"]);
    }
}

#[test]
fn the_parent_does_not_grow_with_the_program() {
    alone("limits::memory_bomb_alone");
}

/// Run by the test above, in a process of its own: other tests hold large answers.
#[tokio::test]
#[ignore = "run by the_parent_does_not_grow_with_the_program"]
async fn memory_bomb_alone() {
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    reads(&run("return 1").await, "1");
    let before = peak();
    let limits = Limits { slice: Duration::from_secs(60), ..Limits::default() };
    fails(&run_within(limits, "const a=[];for(;;)a.push({x:1})").await, Reason::Memory, &["256 MiB"]);
    assert!(peak() - before < 20 * 1_024, "{} KiB more", peak() - before);
}

#[tokio::test]
async fn much_memory_and_much_garbage_are_fine() {
    let limits = Limits { slice: Duration::from_secs(60), ..Limits::default() };
    let live = "const a = []; for (let i = 0; i < 50; i += 1) a.push(new Uint8Array(4 << 20).fill(1)); return a.length";
    reads(&run_within(limits, live).await, "50");
    let garbage = "for (let i = 0; i < 200; i += 1) { const a = {data: new Uint8Array(4 << 20)}; a.self = a } return 'ok'";
    reads(&run_within(limits, garbage).await, "ok");
}

#[tokio::test]
async fn deep_recursion_is_an_error_of_the_program() {
    check("const f = () => f(); try { f() } catch (e) { return e.name }", "RangeError").await;
    check("try { JSON.parse('['.repeat(1e6)) } catch (e) { return 'caught' }", "caught").await;
}

#[tokio::test]
async fn a_promise_that_nothing_will_settle_is_a_deadlock_at_once() {
    for code in [
        "await new Promise(()=>{})",
        "await Promise.race([])",
        "let keep; const p = new Promise((resolve) => { keep = resolve }); await tools.fx.echo({}); await p",
    ] {
        // The limit is far away: what ends this is that nothing is left to do.
        let limits = Limits { slice: Duration::from_secs(600), ..Limits::default() };
        let ended = tokio::time::timeout(Duration::from_secs(60), run_within(limits, code)).await.unwrap();
        fails(&ended, Reason::Deadlock, &[]);
    }
    check("return await Promise.race([new Promise(()=>{}), tools.fx.slow({ms:300})])", "slept").await;
}

#[tokio::test]
async fn a_rejection_that_nobody_handles_fails_the_program() {
    let report = run("tools.fx.boom(); return 1").await;
    fails(&report, Reason::UnhandledRejection, &["Error: boom!", "\n1\n", "fx.boom failed"]);
    reads(&run("tools.fx.boom().catch(()=>{}); return 1").await, "1");
    fails(
        &run("Promise.reject(new TypeError('x')); return 1").await,
        Reason::UnhandledRejection,
        &["TypeError: x"],
    );
    reads(&run("const p = Promise.reject(1); await 0; try { await p } catch {} return 2").await, "2");
}

#[tokio::test]
async fn calls_that_nobody_waits_for_are_finished() {
    let fx = Arc::<Fx>::default();
    let code = "tools.fx.slow({ms: 300}).then(() => console.log('late')); console.log('early'); return 1";
    let report = program(&fx, code).run().await;
    // What the program says is fixed when its promise settles.
    reads(&report, "1\n\nearly");
    assert_eq!((fx.finished.load(Ordering::SeqCst), fx.cancelled.load(Ordering::SeqCst)), (1, 0));
    assert_eq!(report.calls[0].status, CallStatus::Ok);
}

#[tokio::test]
async fn the_console_is_cut_at_64_kib() {
    let report =
        run("for (let i = 0; i < 1024; i += 1) console.log(String(i).padEnd(1000, 'ä')); return").await;
    let (kept, notice) = report.text.rsplit_once('\n').unwrap();
    assert_eq!(notice, "[console truncated at 64 KiB]");
    assert!(kept.len() <= 65_536 && kept.len() > 65_000, "{}", kept.len());
    let numbers: Vec<usize> = kept.lines().map(|line| line.trim_end_matches('ä').parse().unwrap()).collect();
    assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>());
    let one = run("console.log('x'.repeat(1 << 20))").await;
    assert!(one.text.len() <= 65_536 + 30 && one.text.ends_with("[console truncated at 64 KiB]"));
}

#[tokio::test]
async fn the_console_shows_everything() {
    check(r#"console.log({a:1}, "b", new Error("x"))"#, r#"{"a":1} b Error: x"#).await;
    check("console.table([1]); console.time('t'); console.anything(); return 'ok'", "ok").await;
    check(
        "const a = {n: 1n, u: undefined, f() {}, d: new Date(0)}; a.self = a; console.log(a)",
        r#"{"n":1n,"u":undefined,"f":[function f],"d":"1970-01-01T00:00:00.000Z","self":[circular]}"#,
    )
    .await;
    check(
        "console.log(new Map([[1, {a: [1, 'x']}]]), new Set(['s']), null, undefined, Symbol('y'))",
        r#"Map{1=>{"a":[1,"x"]}} Set{"s"} null undefined Symbol(y)"#,
    )
    .await;
    check("console.log({get x() { throw new Error('no') }})", "[cannot be shown: Error: no]").await;
    check("let a = 1; for (let i = 0; i < 20; i += 1) a = [a]; console.log(a)", "[[[[[[[[[…]]]]]]]]]").await;
}

#[tokio::test]
async fn a_value_that_is_too_large_shows_its_head() {
    let report = run("return 'abc'.repeat(700 * 1024)").await;
    fails(&report, Reason::ResultTooLarge, &["2100 KiB", "at most 1024 KiB", "abcabcabc"]);
    assert!(report.text.len() < 8_192);
    assert_eq!(run("return 'x'.repeat(1 << 20)").await.text.len(), 1 << 20);
}

#[tokio::test]
async fn there_is_the_language_and_nothing_else() {
    let absent = "process require fetch setTimeout setInterval queueMicrotask performance WebAssembly navigator Deno std os \
                  print Atomics SharedArrayBuffer DOMException btoa atob URL TextEncoder structuredClone Intl gc \
                  scriptArgs Bun Buffer window self module exports";
    check(&format!("return {:?}.split(/\\s+/).filter((name) => name in globalThis)", absent), "[]").await;
    check(
        "return ['Map','Proxy','RegExp','Date','WeakRef','BigInt','Uint8Array','Promise','Reflect'].every((n) => n in globalThis)",
        "true",
    )
    .await;
    check("try { await import('fs') } catch (e) { return e instanceof Error }", "true").await;
    fails(&run("return this.constructor.constructor('return process')()").await, Reason::Threw, &[]);
    fails(
        &run("return (() => {}).constructor('return process')()").await,
        Reason::Threw,
        &["process is not defined"],
    );
}

#[tokio::test]
async fn what_the_language_asks_the_system_is_there() {
    check(
        "const d = new Date(86400000); return [d.getTime(), d.toISOString()]",
        r#"[86400000,"1970-01-02T00:00:00.000Z"]"#,
    )
    .await;
    check("const d = new Date(2020, 1, 29); return [d.getDate(), d.toString().includes('2020'), typeof d.getTimezoneOffset()]", r#"[29,true,"number"]"#)
        .await;
    check(
        "return [new Date().toLocaleString(), Date(), Date.parse('2020-01-01T00:00')].every(Boolean)",
        "true",
    )
    .await;
    check("const r = Math.random(); return r >= 0 && r < 1 && r !== Math.random()", "true").await;
    check(
        "return 'ä'.localeCompare('b') + 'e\\u0301'.normalize('NFC').length + (1.5).toLocaleString()",
        "21.5",
    )
    .await;
}

#[tokio::test]
async fn one_program_leaves_nothing_for_the_next() {
    reads(&run("globalThis.x=1; Array.prototype.p=1; return 1").await, "1");
    check("return [typeof globalThis.x, typeof [].p]", r#"["undefined","undefined"]"#).await;
}

#[tokio::test]
async fn programs_run_beside_each_other_without_mixing() {
    let fx = Arc::<Fx>::default();
    let all = (0..8).map(|number| {
        let code = format!(
            "const all = await Promise.all(Array.from({{length: 20}}, (_, i) => tools.fx.echo({{t: '{number}-' + i}})));
             console.log('console {number}'); return all.every((text) => text.startsWith('{number}-'))"
        );
        let program = program(&fx, &code);
        async move { (number, program.run().await) }
    });
    for (number, report) in futures_util::future::join_all(all).await {
        reads(&report, &format!("true\n\nconsole {number}"));
        assert_eq!(report.calls.len(), 20);
    }
    assert_eq!(fx.finished.load(Ordering::SeqCst), 160);
    let limits = Limits { slice: Duration::from_millis(300), ..Limits::default() };
    let spin = |ms| format!("const end = Date.now() + {ms}; while (Date.now() < end); return 'done'");
    let (endless, brief) = (spin(600_000), spin(1_000));
    let (short, long) = tokio::join!(run_within(limits, &endless), run(&brief));
    fails(&short, Reason::Time, &["300ms"]);
    reads(&long, "done");
}
