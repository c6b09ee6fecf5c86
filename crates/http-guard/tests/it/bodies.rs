//! Bodies: decoded, bounded, and kept as far as they came.

use std::io::Write as _;
use std::time::Duration;

use http_guard::testing::{Reply, Server};
use http_guard::{BodyEnd, Limits};

use super::{body_of, get, local};

const CAP: u64 = 1024 * 1024;

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn brotli(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    brotli::CompressorWriter::new(&mut out, 4096, 1, 22).write_all(data).unwrap();
    out
}

fn zstd(data: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(data, ruzstd::encoding::CompressionLevel::Fastest)
}

fn encoded(encoding: &'static str, body: Vec<u8>) -> impl Fn(&http_guard::testing::Received) -> Reply {
    move |_| Reply::new(200, &[("Content-Encoding", encoding)], &body)
}

#[tokio::test]
async fn bombs_stop_at_the_cap() {
    // A thousand times one MiB; what cannot be put together from parts is sixteen times the cap.
    let (zeros, more) = (vec![0; 1 << 20], vec![0; 16 << 20]);
    let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    deflate.write_all(&more).unwrap();
    let gigabyte = gzip(&zeros).repeat(1024);
    let bombs = [
        ("gzip, gzip", gzip(&gigabyte)),
        ("gzip", gigabyte),
        ("zstd", zstd(&zeros).repeat(1024)),
        ("br", brotli(&more)),
        ("deflate", deflate.finish().unwrap()),
    ];
    let limits = Limits { max_body: CAP, ..Limits::default() };
    for (encoding, bomb) in bombs {
        assert!(bomb.len() < 2 << 20, "{encoding} {}", bomb.len());
        let server = Server::start(encoded(encoding, bomb)).await;
        let response = local().send(get(&server.url("/")).within(limits)).await.unwrap();
        let body = response.body.collect().await;
        assert!(body.bytes.len() as u64 <= CAP && !body.bytes.is_empty(), "{encoding}: {}", body.bytes.len());
        assert!(matches!(body.end, BodyEnd::Capped | BodyEnd::Swollen), "{encoding}: {:?}", body.end);
    }
}

#[tokio::test]
async fn a_wrong_encoding_leaves_the_body_as_it_is_with_a_note() {
    let text = "this is not compressed at all, whatever the header says";
    for encoding in ["gzip", "br", "zstd", "deflate"] {
        let server = Server::start(encoded(encoding, text.into())).await;
        let body = body_of(&local(), &server.url("/")).await;
        assert_eq!((String::from_utf8(body.bytes).unwrap().as_str(), body.end), (text, BodyEnd::Complete));
        assert!(body.notes.len() == 1 && body.notes[0].contains(encoding), "{:?}", body.notes);
    }
    let server = Server::start(encoded("x-unheard-of", text.into())).await;
    let body = body_of(&local(), &server.url("/")).await;
    assert_eq!(body.bytes, text.as_bytes());
    assert!(body.notes[0].contains("x-unheard-of"), "{:?}", body.notes);
}

#[tokio::test]
async fn what_came_before_a_cut_is_kept() {
    let text: Vec<u8> = (0..50_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    let packed = gzip(&text);
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", packed.len());
    let cut = [head.as_bytes(), &packed[..packed.len() / 2]].concat();
    let server = Server::start(move |_| Reply::raw(cut.clone())).await;
    let body = body_of(&local(), &server.url("/")).await;
    assert!(body.bytes.len() > text.len() / 4 && text.starts_with(&body.bytes), "{}", body.bytes.len());
    assert!(matches!(body.end, BodyEnd::BrokenOff(_)), "{:?}", body.end);
    let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec();
    let server = Server::start(move |_| Reply::raw(plain.clone())).await;
    let body = body_of(&local(), &server.url("/")).await;
    assert_eq!(body.bytes, b"half");
    assert!(matches!(body.end, BodyEnd::BrokenOff(_)), "{:?}", body.end);
}

#[tokio::test]
async fn damage_keeps_what_was_decoded() {
    let text: Vec<u8> = (0..50_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    let mut packed = gzip(&text);
    let middle = packed.len() / 2;
    packed.truncate(middle);
    let server = Server::start(encoded("gzip", packed)).await;
    let body = body_of(&local(), &server.url("/")).await;
    assert!(text.starts_with(&body.bytes) && body.bytes.len() > 10_000);
    assert!(matches!(body.end, BodyEnd::Damaged(_)), "{:?}", body.end);
}

#[tokio::test]
async fn a_long_body_is_cut_at_the_cap_exactly() {
    let server = Server::start(|_| Reply::new(200, &[], "€".repeat(100_000))).await;
    for max_body in [0, 1, 1000, 299_999, 300_000, 300_001] {
        let limits = Limits { max_body, ..Limits::default() };
        let body = local().send(get(&server.url("/")).within(limits)).await.unwrap().body.collect().await;
        assert_eq!(body.bytes.len() as u64, max_body.min(300_000), "{max_body}");
        let end = if max_body < 300_000 { BodyEnd::Capped } else { BodyEnd::Complete };
        assert_eq!(body.end, end, "{max_body}");
    }
}

#[tokio::test]
async fn encoded_pieces_come_as_they_arrive() {
    let text = "a line of text\n".repeat(2_000);
    let packed = gzip(text.as_bytes());
    let server = Server::start(move |_| {
        Reply::new(200, &[("Content-Encoding", "gzip")], &packed).in_pieces(20, Duration::from_millis(1))
    })
    .await;
    assert_eq!(body_of(&local(), &server.url("/")).await.bytes, text.as_bytes());
}

#[tokio::test]
async fn answers_without_a_body_have_none() {
    for (status, encoding) in [(204, "gzip"), (304, "gzip"), (200, "gzip"), (200, "br")] {
        let server = Server::start(move |_| Reply::new(status, &[("Content-Encoding", encoding)], "")).await;
        let body = body_of(&local(), &server.url("/")).await;
        assert_eq!((body.bytes.len(), body.end, body.notes.len()), (0, BodyEnd::Complete, 0), "{status}");
    }
}

#[tokio::test]
async fn what_comes_over_the_wire_is_capped_before_it_is_decoded() {
    let text: Vec<u8> = (0..50_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    for (encoding, packed) in [("gzip", gzip(&text)), ("zstd", zstd(&text)), ("identity", text.clone())] {
        let server = Server::start(encoded(encoding, packed)).await;
        let limits = Limits { max_wire: 50_000, ..Limits::default() };
        let body = local().send(get(&server.url("/")).within(limits)).await.unwrap().body.collect().await;
        assert!(
            body.bytes.len() <= 60_000 && text.starts_with(&body.bytes),
            "{encoding}: {}",
            body.bytes.len()
        );
        assert_eq!(body.end, BodyEnd::Capped, "{encoding}");
    }
}
