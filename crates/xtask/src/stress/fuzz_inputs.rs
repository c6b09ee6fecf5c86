//! Readers of what others send, on kept inputs and on changed ones.

use anyhow::ensure;
use goplugin::Handshake;
use prost::Message as _;
use provider_core::arguments::{first_violation, repair};
use provider_core::schema::Schema;
use provider_core::wire::{struct_to_value, value_to_struct};
use provider_core::{Catalogue, Category};
use provider_web::text::html;
use url::Url;

use super::corpus::Corpus;
use super::{Run, Stress};

/// The line that a plugin prints.
pub const HANDSHAKE: Stress = Stress {
    name: "fuzz-handshake",
    about: "the handshake line, kept and changed: no panic, and what is read is written as it was read",
    short_rounds: 20_000,
    run: handshake,
};

/// Arguments as they come over the wire.
pub const ARGUMENTS: Stress = Stress {
    name: "fuzz-arguments",
    about: "argument structs, kept and changed, against every tool: refused with words, or repaired to what fits",
    short_rounds: 4_000,
    run: arguments,
};

/// Pages.
pub const HTML: Stress = Stress {
    name: "fuzz-html",
    about: "pages, kept and changed: no panic, and no more text than a page can hold",
    short_rounds: 150,
    run: pages,
};

fn handshake(run: &Run) -> anyhow::Result<String> {
    const PIECES: &[&[u8]] = &[
        b"|",
        b"1",
        b"unix",
        b"tcp",
        b"grpc",
        b"netrpc",
        b"/tmp/x",
        b"127.0.0.1:1",
        b"[::1]:65535",
        b"true",
        b"\n",
        b"\r",
        b" ",
        b"\0",
        b"\xff",
        b"99999999999999999999",
        b"-1",
        "\u{2028}".as_bytes(),
    ];
    let corpus = Corpus::of("handshake", PIECES, None)?;
    let (mut read, mut refused) = (0_u64, 0_u64);
    while let Some(mut random) = run.next_round() {
        let input = corpus.input(run.rounds(), &mut random);
        corpus.hold(&input, |input| {
            let line = String::from_utf8_lossy(input);
            match Handshake::parse(&line) {
                Err(error) => {
                    refused += 1;
                    ensure!(!error.to_string().is_empty(), "an error says nothing");
                }
                Ok(told) => {
                    read += 1;
                    let again = Handshake::parse(&told.to_string());
                    ensure!(again.as_ref() == Ok(&told), "{told:?} is read again as {again:?}");
                }
            }
            Ok(())
        })?;
    }
    Ok(format!("{read} lines read, {refused} refused with a reason"))
}

fn arguments(run: &Run) -> anyhow::Result<String> {
    const PIECES: &[&[u8]] = &[
        b"\x0a\x0a\x0a\x04path\x12\x02\x1a\x00",
        b"\x08\x00",
        b"\x11\0\0\0\0\0\0\xf8\x7f",
        b"\x20\x01",
        b"\x2a\x00",
        b"\x32\x00",
        b"\x1a\x03[1]",
        b"\x1a\x05{\"a\":",
        b"\x1a\x02-1",
        b"\x1a\x042480",
        b"\x32\x04\x0a\x02\x32\x00",
        b"path",
        b"content",
        b"edits",
        b"\xff",
        b"\x1a\x80\x80\x80\x80\x10",
    ];
    let corpus = Corpus::of("arguments", PIECES, None)?;
    let schemas = schemas()?;
    let (mut repaired, mut refused, mut broken) = (0_u64, 0_u64, 0_u64);
    while let Some(mut random) = run.next_round() {
        let input = corpus.input(run.rounds(), &mut random);
        let schema = &schemas[random.below(schemas.len())];
        corpus.hold(&input, |input| {
            let Ok(wire) = prost_types::Struct::decode(input) else {
                broken += 1;
                return Ok(());
            };
            let value = struct_to_value(wire);
            let again = struct_to_value(value_to_struct(value.clone()));
            ensure!(again == value, "{value} over the wire is {again}");
            match repair("arguments", schema, value) {
                Err(error) => {
                    refused += 1;
                    ensure!(
                        error.category() == Category::InvalidArguments,
                        "refused as {:?}",
                        error.category()
                    );
                    ensure!(!error.message().is_empty(), "an error says nothing");
                    ensure!(error.message().len() < 64 * 1024, "an error of {} bytes", error.message().len());
                }
                Ok(fits) => {
                    repaired += 1;
                    let violation = first_violation(schema, &fits.value);
                    ensure!(violation.is_none(), "{} is no arguments: {violation:?}", fits.value);
                    let same = repair("arguments", schema, fits.value.clone())?;
                    ensure!(same.value == fits.value, "{} is repaired to {}", fits.value, same.value);
                }
            }
            Ok(())
        })?;
    }
    Ok(format!("{repaired} taken, {refused} refused with a reason, {broken} are no struct"))
}

/// What every tool of the catalog takes.
fn schemas() -> anyhow::Result<Vec<Schema>> {
    fn of<P: provider_core::Provider>() -> anyhow::Result<Vec<Schema>> {
        Ok(Catalogue::<P>::of()?.declarations().map(|declaration| declaration.input.clone()).collect())
    }
    Ok([
        of::<provider_filesystem::Filesystem>()?,
        of::<provider_search::Search>()?,
        of::<provider_exec::Exec>()?,
        of::<provider_web::Web>()?,
        of::<provider_user::User>()?,
        of::<provider_task::Tasks>()?,
        of::<provider_agent::Agents>()?,
        of::<provider_code::Code>()?,
    ]
    .concat())
}

fn pages(run: &Run) -> anyhow::Result<String> {
    const PIECES: &[&[u8]] = &[
        b"<",
        b">",
        b"</",
        b"<!--",
        b"-->",
        b"<table>",
        b"<tr>",
        b"<td colspan=99 rowspan=99>",
        b"<pre>",
        b"</pre>",
        b"<code>",
        b"<ul><li>",
        b"</ul>",
        b"<a href=x>",
        b"<b>",
        b"</b>",
        b"<script>",
        b"</script>",
        b"<style>",
        b"<svg>",
        b"<math>",
        b"<title>",
        b"<base href=//x>",
        b"&amp;",
        b"&#x110000;",
        b"&#0;",
        b"<![CDATA[",
        b"<template>",
        b"<main>",
        b"\0",
        b"\xff",
        b"\r",
        b"\xe2\x82",
        b"```",
        b"<p>",
        b"<select>",
        b"<dl><dt>",
        b"<dd>",
        b"<blockquote>",
        b"<h1>",
    ];
    let corpus = Corpus::of("html", PIECES, Some(("crates/provider-web/tests/pages", ".html")))?;
    let base = Url::parse("https://docs.example/a/page.html")?;
    let (mut bytes, mut text) = (0, 0);
    while let Some(mut random) = run.next_round() {
        let input = corpus.input(run.rounds(), &mut random);
        corpus.hold(&input, |input| {
            let page = String::from_utf8_lossy(input);
            for is_markdown in [true, false] {
                let read = html::read(&page, Some(&base), is_markdown);
                let most = 4 * page.len() + (128 << 10);
                ensure!(read.text.len() <= most, "{} bytes of text from {}", read.text.len(), page.len());
                text += read.text.len();
            }
            bytes += page.len();
            Ok(())
        })?;
    }
    Ok(format!("{:.1} MB of pages, {:.1} MB of text", bytes as f64 / 1e6, text as f64 / 1e6))
}
