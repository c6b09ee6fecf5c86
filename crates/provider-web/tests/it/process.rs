//! The program itself: what it lets out of the key, what it costs in memory, and what it does when it is cancelled.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_guard::testing::{Reply, Server};
use serde_json::{Value, json};
use tool_host::{Call, LaunchOptions, Notices, Object, Outcome, Provider, ProviderSource};

/// How long anything may take that should happen at all.
const PATIENCE: Duration = Duration::from_secs(120);

fn object(value: Value) -> Object {
    value.as_object().unwrap().clone()
}

/// The program, configured so that it reaches the servers of the tests, with this laid over it.
async fn launched(options: LaunchOptions, over: Value) -> Provider {
    let source = ProviderSource::Path(env!("CARGO_BIN_EXE_provider-web").into());
    let provider = Provider::launch(&source, options).await.unwrap();
    let mut config =
        object(json!({"allow_private_hosts": ["127.0.0.1"], "robots": "ignore", "cache_bytes": 0}));
    config.extend(object(over));
    provider.configure(config).await.unwrap();
    provider
}

async fn called(provider: &Provider, tool: &str, arguments: Value) -> Outcome {
    let invocation = provider.invoke(Call::new(tool, object(arguments), "s"));
    tokio::time::timeout(PATIENCE, invocation.outcome()).await.expect("the call hangs")
}

async fn until(what: &str, happened: impl Fn() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

const KEY: &str = "sk-Canary+/77=x";

/// The key in every writing in which a server may repeat it.
fn writings() -> Vec<String> {
    let each = |write: fn(u8) -> String| KEY.bytes().map(write).collect::<String>();
    vec![
        KEY.to_owned(),
        each(|byte| format!("%{byte:02X}")),
        "sk-Canary%2B%2F77%3Dx".to_owned(),
        STANDARD.encode(KEY),
        STANDARD.encode(KEY).trim_end_matches('=').to_owned(),
        STANDARD.encode(format!("user:{KEY}")),
        each(|byte| format!("\\u{byte:04x}")),
        KEY.replace('/', "\\/"),
        each(|byte| format!("{byte:02x}")),
    ]
}

#[track_caller]
fn check_silent(place: &str, text: &str) {
    // What was written down once more has its own escapes.
    for text in [text.to_owned(), text.replace("\\\\", "\\")] {
        if let Some(writing) = writings().iter().find(|writing| text.contains(*writing)) {
            let at = text.find(writing.as_str()).unwrap();
            let start = text.floor_char_boundary(at.saturating_sub(200));
            panic!("{place} shows {writing}: {}", &text[start..]);
        }
    }
}

/// Every answer with which a service may repeat the key, by where it does.
fn echoes(writing: &str) -> Vec<(&'static str, Reply)> {
    let in_path: String =
        writing.chars().map(|character| if character == '\\' { '/' } else { character }).collect();
    let item = json!({"title": writing, "url": format!("https://t.example/{in_path}"), "content": writing});
    let list = json!({"results": [item], "web": {"results": [item]}}).to_string();
    let page = format!("<html><title>{writing}</title><p>{writing}</p>");
    let kind = ("content-type", "application/json");
    let same = format!("/{in_path}?k={in_path}");
    let below = format!("http://{}.localhost/{in_path}", hex(writing));
    let other = format!("https://elsewhere.example/{in_path}");
    vec![
        ("results", Reply::new(200, &[kind], &list)),
        ("an error of 401", Reply::new(401, &[("www-authenticate", writing)], &page)),
        ("an error of 403", Reply::new(403, &[kind], json!({"error": writing}).to_string())),
        ("an error of 429", Reply::new(429, &[("retry-after", writing)], &page)),
        ("an error of 500", Reply::new(500, &[("x-echo", writing)], &page)),
        ("another form", Reply::new(200, &[kind], json!({"oops": writing}).to_string())),
        ("a page", Reply::new(200, &[("content-type", "text/html")], &page)),
        ("a redirect to itself", Reply::redirect(302, &same)),
        ("a redirect to another site", Reply::redirect(307, &other)),
        ("a redirect to this machine", Reply::redirect(301, &below)),
        ("a wrong head", Reply::raw(format!("HTTP/1.1 {writing}\r\n\r\n"))),
        ("a reason", Reply::raw(format!("HTTP/1.1 500 {writing}\r\nConnection: close\r\n\r\n"))),
        ("a wrong encoding", Reply::new(200, &[kind, ("content-encoding", writing)], &list)),
        ("a cut", Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{list}"))),
    ]
}

fn hex(text: &str) -> String {
    text.bytes().take(30).map(|byte| format!("{byte:02x}")).collect()
}

/// What any process of the machine shows of itself to the others.
fn command_lines() -> String {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    all.map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).into_owned()
    })
    .collect()
}

/// A service that repeats the key in every place and writing gets it into nothing that leaves the process: results,
/// errors, what is shown of them, logs down to the finest, standard error, files, command line, environment.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_leaves_by_no_door() {
    for (backend, path) in
        [("tavily", "/search"), ("brave", "/res"), ("generic", "/api/{key}/find?q={query}&k={key}")]
    {
        let answer = Arc::new(Mutex::new(Reply::html("")));
        let current = answer.clone();
        let server = Server::start(move |_| current.lock().unwrap().clone()).await;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = heard.clone();
        let notices = Notices::to(move |notice| log.lock().unwrap().push(notice));
        let state = tempfile::tempdir().unwrap();
        let over = json!({
            "search_backend": backend, "search_url": server.url(path), "search_api_key": KEY,
            "state_dir": state.path(), "cache_bytes": 1_000_000, "allow_private_hosts": ["127.0.0.1", "localhost"],
        });
        let provider = launched(LaunchOptions { notices, ..LaunchOptions::default() }, over).await;
        let mut calls = 0;
        for (writing, echo) in
            writings().iter().flat_map(|writing| echoes(writing).into_iter().map(move |echo| (writing, echo)))
        {
            let (place, reply) = echo;
            *answer.lock().unwrap() = reply;
            let outcome = called(&provider, "web_search", json!({"query": "x"})).await;
            let what = format!("{backend}, {place}, {writing}");
            check_silent(&what, &format!("{outcome:?}"));
            if let Ok(payload) = &outcome {
                let shown = provider.render(payload).await.unwrap();
                check_silent(&what, &format!("{shown:?}"));
            }
            calls += 1;
        }
        assert!(server.requests().len() >= calls, "{} of {calls}", server.requests().len());
        // That the service could have repeated it at all.
        assert!(
            server.requests().iter().all(|request| {
                request.target.contains("sk-Canary%2B%2F77%3Dx")
                    || request.headers.iter().any(|(_, value)| value.contains(KEY))
            }) || backend == "generic"
        );
        until("something is logged", || {
            heard.lock().unwrap().iter().any(|notice| format!("{notice:?}").contains("fetching"))
        })
        .await;
        let pid = provider.pid().unwrap();
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        check_silent("the environment", &String::from_utf8_lossy(&environment));
        check_silent("a command line", &command_lines());
        provider.stop().await;
        check_silent("the log", &format!("{:?}", heard.lock().unwrap()));
        check_silent("a file", &super::searches::kept_files(state.path()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_address_or_a_header_holds_is_not_logged() {
    let server = Server::start(|request| match request.target.as_str() {
        "/away?key=hunter2" => Reply::redirect(302, "/hunter2?key=hunter2"),
        "/none?key=hunter2" => Reply::raw("hunter2\r\n\r\n"),
        _ => Reply::html("page"),
    })
    .await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = heard.clone();
    let notices = Notices::to(move |notice| log.lock().unwrap().push(notice));
    let over = json!({"robots": "respect"});
    let provider = launched(LaunchOptions { notices, ..LaunchOptions::default() }, over).await;
    for path in ["/away?key=hunter2", "/none?key=hunter2", "/page?hunter2"] {
        let _ = called(&provider, "web_fetch", json!({"url": server.url(path)})).await;
    }
    let request = json!({
        "method": "POST", "url": server.url("/x?key=hunter2"), "headers": {"Authorization": "hunter2"}, "body": "hunter2",
    });
    called(&provider, "http_request", request).await.unwrap();
    until("something is logged", || {
        heard.lock().unwrap().iter().any(|notice| format!("{notice:?}").contains("fetching"))
    })
    .await;
    provider.stop().await;
    let log = format!("{:?}", heard.lock().unwrap());
    assert!(!log.contains("hunter2"), "{log}");
}

fn gzip(data: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn brotli(data: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut out = Vec::new();
    brotli::CompressorWriter::new(&mut out, 4096, 1, 24).write_all(data).unwrap();
    out
}

/// A figure of the kernel about a process, in bytes.
fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    1024 * line.trim_matches(|character: char| !character.is_ascii_digit()).parse::<u64>().unwrap()
}

/// A page that is nothing but what costs most to read, at the size of the cap.
fn hostile(cap: usize) -> Vec<u8> {
    let unit = b"<table><tr><td><ul><li><b><a href=x>y";
    unit.iter().copied().cycle().take(cap).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_cost_little_memory_and_pages_at_the_cap_a_bounded_one() {
    const CAP: usize = 5 * 1024 * 1024;
    // A GiB each, or what their compression allows; and pages that are as large as may be.
    let letters = vec![b'a'; 1 << 20];
    let gigabyte = gzip(&letters).repeat(1024);
    let zstd =
        ruzstd::encoding::compress_to_vec(letters.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    let many = vec![b'a'; 64 << 20];
    let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut deflate, &many).unwrap();
    let text = "text/plain; charset=utf-8";
    let twice = 2 * CAP as u64;
    // Brotli may look back over 16 MiB, which no decoder can do without keeping them.
    let bodies: Vec<(&str, &str, &str, Vec<u8>, u64)> = vec![
        ("gzip", "gzip", text, gigabyte.clone(), twice),
        ("gzip in gzip", "gzip, gzip", text, gzip(&gigabyte), twice),
        ("zstd", "zstd", text, zstd.repeat(1024), twice),
        ("br", "br", text, brotli(&many), twice + (16 << 20)),
        ("br in gzip", "br, gzip", text, gzip(&brotli(&many)), twice + (16 << 20)),
        ("deflate", "deflate", text, deflate.finish().unwrap(), twice),
        ("a text at the cap", "identity", text, vec![b'a'; 2 * CAP], 3 * CAP as u64),
        ("a hostile page at the cap", "identity", "text/html", hostile(2 * CAP), 40 * CAP as u64),
    ];
    for (name, encoding, kind, body, most) in bodies {
        let server = Server::start(move |_| {
            Reply::new(200, &[("content-type", kind), ("content-encoding", encoding)], &body)
        })
        .await;
        let provider =
            launched(LaunchOptions::default(), json!({"max_bytes": CAP, "timeout_ms": 55_000})).await;
        called(&provider, "web_fetch", json!({"url": "http://127.0.0.1:1/"})).await.unwrap_err();
        let pid = provider.pid().unwrap();
        let before = memory(pid, "VmRSS:");
        let page = called(&provider, "web_fetch", json!({"url": server.url("/"), "max_chars": 1_000}))
            .await
            .unwrap();
        let grown = memory(pid, "VmHWM:") - before;
        assert_eq!(page["truncated"], true, "{name}: {page:?}");
        assert!(page["total_chars"].as_f64().unwrap() > 0.0, "{name}");
        assert!(grown <= most, "{name}: {} KiB of {} KiB", grown / 1024, most / 1024);
        provider.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_body_that_can_be_configured_is_read_whole() {
    const LARGEST: usize = 32 * 1024 * 1024;
    let body: Vec<u8> = b"0123456789abcde\n".iter().copied().cycle().take(LARGEST).collect();
    let server = Server::start(move |_| Reply::new(200, &[("content-type", "text/plain")], &body)).await;
    let over = json!({"max_bytes": LARGEST, "timeout_ms": 55_000});
    let provider = launched(LaunchOptions::default(), over).await;
    let last = LARGEST - 16;
    let page = called(&provider, "web_fetch", json!({"url": server.url("/"), "start": last})).await.unwrap();
    assert_eq!(
        (&page["content"], page["total_chars"].as_u64()),
        (&json!("0123456789abcde\n"), Some(LARGEST as u64))
    );
    assert_eq!(page["truncated"], false);
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_fetch_closes_its_connection_and_no_other() {
    let server = Server::start(|request| match request.target.as_str() {
        "/body" => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nthe beginning").and_hangs(),
        "/packed" => {
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1000\r\n\r\n\x0b")
                .and_hangs()
        }
        "/head" => Reply::raw("HTTP/1.1 200").and_hangs(),
        _ => Reply::html("<p>whole"),
    })
    .await;
    let provider = launched(LaunchOptions::default(), json!({"timeout_ms": 55_000})).await;
    let start = |tool: &str, path: &str| {
        let mut arguments = object(json!({"url": server.url(path)}));
        if tool == "http_request" {
            arguments.insert("method".to_owned(), json!("POST"));
        }
        provider.invoke(Call::new(tool, arguments, "s"))
    };
    for (number, (tool, path)) in
        [("web_fetch", "/body"), ("web_fetch", "/packed"), ("web_fetch", "/head"), ("http_request", "/body")]
            .into_iter()
            .enumerate()
    {
        let asked = server.requests().len();
        let mut doomed = start(tool, path);
        until("the request arrives", || server.requests().len() > asked).await;
        let others: Vec<_> = (0..10).map(|_| start("web_fetch", "/page")).collect();
        assert_eq!(server.left(), number, "{tool} {path}");
        doomed.canceller().cancel();
        let mut reported = Vec::new();
        while let Some(event) = tokio::time::timeout(PATIENCE, doomed.next()).await.expect("it goes on") {
            reported.push(format!("{event:?}"));
        }
        let error = doomed.outcome().await.unwrap_err();
        assert_eq!(error.category, tool_host::Category::Cancelled, "{error:?}");
        until("the connection is closed", || server.left() == number + 1).await;
        if tool == "http_request" {
            assert!(reported.concat().contains("sent POST http://127.0.0.1"), "{reported:?}");
        }
        for other in others {
            assert_eq!(other.outcome().await.unwrap()["content"], "whole");
        }
    }
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_provider_leaves_a_cache_that_the_next_one_reads() {
    let state = tempfile::tempdir().unwrap();
    let server = Server::start(|_| Reply::html(&format!("<p>{}", "whole ".repeat(50_000)))).await;
    let over = json!({"state_dir": state.path(), "cache_bytes": 10_000_000});
    for round in 0..10_u64 {
        let provider = launched(LaunchOptions::default(), over.clone()).await;
        let calls: Vec<_> = (0..8)
            .map(|number| {
                let url = server.url(&format!("/{}", (round + number) % 12));
                provider.invoke(Call::new("web_fetch", object(json!({"url": url, "fresh": true})), "s"))
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(20 * round)).await;
        provider.kill();
        for call in calls {
            let _ = tokio::time::timeout(PATIENCE, call.outcome()).await.expect("the call hangs");
        }
    }
    let provider = launched(LaunchOptions::default(), over).await;
    for number in 0..12 {
        let page =
            called(&provider, "web_fetch", json!({"url": server.url(&format!("/{number}"))})).await.unwrap();
        assert_eq!(page["total_chars"].as_u64(), Some(299_999), "{page:?}");
    }
    provider.stop().await;
    let files = std::fs::read_dir(state.path().join("web")).unwrap();
    let names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    // One for each page and none that was begun.
    assert!(names.len() == 12 && !names.iter().any(|name| name.starts_with("new-")), "{names:?}");
}
