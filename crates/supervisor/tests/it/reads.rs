//! Output in the order of writing, and terminals.

use std::os::fd::OwnedFd;
use std::time::Duration;

use supervisor::{Event, Files, Pipes, Source, Status, Supervisor, Terminal};

use crate::support::{LIMIT, files, job, status, supervisor, until};

/// Runs a script; answers the order of streams with what was read of each run.
async fn read(supervisor: &Supervisor, script: &str) -> Vec<(Source, Vec<u8>)> {
    let (mut pipes, writers) = Pipes::new().unwrap();
    let files = Files { stdout: writers.stdout, stderr: writers.stderr, ..files().0 };
    let mut running = supervisor.start(&job(script), files).await.unwrap();
    let mut runs: Vec<(Source, Vec<u8>)> = Vec::new();
    let all = async {
        loop {
            tokio::select! {
                biased;
                piece = pipes.next() => match piece {
                    Some(piece) => match runs.last_mut() {
                        Some((source, bytes)) if *source == piece.source => bytes.extend(piece.bytes),
                        _ => runs.push((piece.source, piece.bytes)),
                    },
                    None => break,
                },
                event = running.event() => if let Some(Event::Exited { .. }) = event {
                    pipes.release();
                },
            }
        }
    };
    tokio::time::timeout(LIMIT, all).await.expect("the output does not end");
    runs
}

#[tokio::test]
async fn two_streams_are_read_in_the_order_of_writing() {
    let supervisor = supervisor();
    for _ in 0..50 {
        let runs =
            read(&supervisor, "echo a; echo b >&2; echo c; echo d; echo e >&2; echo f >&2; echo g").await;
        let expected: [(Source, &[u8]); 5] = [
            (Source::Stdout, b"a\n"),
            (Source::Stderr, b"b\n"),
            (Source::Stdout, b"c\nd\n"),
            (Source::Stderr, b"e\nf\n"),
            (Source::Stdout, b"g\n"),
        ];
        assert!(runs.iter().map(|(source, bytes)| (*source, &bytes[..])).eq(expected), "{runs:?}");
    }
}

#[tokio::test]
async fn a_flood_is_read_whole_and_order_comes_back_after_it() {
    let supervisor = supervisor();
    let script = "head -c 50000000 /dev/zero; sleep 0.2; echo a >&2; echo b; echo c >&2; echo d";
    let runs = read(&supervisor, script).await;
    assert_eq!(runs[0].1.len(), 50_000_000);
    let rest: Vec<&[u8]> = runs[1..].iter().map(|(_, bytes)| &bytes[..]).collect();
    assert_eq!(rest, [b"a\n", b"b\n", b"c\n", b"d\n"]);
}

#[tokio::test]
async fn two_floods_are_read_whole() {
    let supervisor = supervisor();
    let runs = read(&supervisor, "head -c 20000000 /dev/zero & head -c 10000000 /dev/zero >&2; wait").await;
    let total =
        |wanted| runs.iter().filter(|(source, _)| *source == wanted).map(|(_, bytes)| bytes.len()).sum();
    let (stdout, stderr): (usize, usize) = (total(Source::Stdout), total(Source::Stderr));
    assert_eq!((stdout, stderr), (20_000_000, 10_000_000));
}

#[tokio::test]
async fn a_program_that_does_not_wait_for_room_loses_nothing() {
    let supervisor = supervisor();
    let script = "python3 -c '
import os, time
os.set_blocking(1, False)
os.write(1, b\"x\")
time.sleep(0.3)
print(sum(os.write(1, b\"y\" * 1000) for _ in range(60)))'";
    let runs = read(&supervisor, script).await;
    let text: Vec<u8> = runs.into_iter().flat_map(|(_, bytes)| bytes).collect();
    assert!(text.ends_with(b"60000\n"), "{}", String::from_utf8_lossy(&text));
}

/// Starts a script on a terminal.
async fn on_terminal(supervisor: &Supervisor, script: &str) -> (supervisor::Running, Terminal) {
    let (terminal, theirs) = Terminal::new(24, 80).unwrap();
    let copy = |file: &OwnedFd| file.try_clone().unwrap();
    let files = Files { stdin: copy(&theirs), stdout: copy(&theirs), stderr: theirs, ..files().0 };
    let mut job = job(script);
    job.terminal = true;
    (supervisor.start(&job, files).await.unwrap(), terminal)
}

#[tokio::test]
async fn waiting_for_somebody_to_type_is_seen_and_typing_ends_it() {
    let supervisor = supervisor();
    for script in [
        "read x; echo got:$x",
        "read x </dev/tty; echo got:$x",
        "python3 -c 'print(\"got:\" + input(\"> \"))'",
        "python3 -c 'import select,sys; select.select([0],[],[]); print(\"got:\" + sys.stdin.readline())'",
        "python3 -c 'import select,sys\np=select.poll(); p.register(0, 1); p.poll(); print(\"got:\" + sys.stdin.readline())'",
        "python3 -c 'import select,sys\np=select.epoll(); p.register(0, 1); p.poll(); print(\"got:\" + sys.stdin.readline())'",
    ] {
        let (mut running, mut terminal) = on_terminal(&supervisor, script).await;
        until(script, || terminal.waits_for_input()).await;
        assert_eq!(terminal.write(b"hello\n").unwrap(), 6);
        let mut output = Vec::new();
        let all = async {
            while let Some(piece) = terminal.next().await {
                output.extend(piece.bytes);
            }
        };
        tokio::time::timeout(LIMIT, all).await.expect(script);
        let text = String::from_utf8_lossy(&output).into_owned();
        assert!(text.contains("got:hello"), "{script}: {text}");
        assert_eq!(status(&[running.event().await.unwrap()]), Some(Status::Exited(0)));
    }
}

#[tokio::test]
async fn a_prompt_in_the_output_is_not_taken_for_waiting() {
    let supervisor = supervisor();
    let (_running, mut terminal) = on_terminal(&supervisor, "echo 'password:'; sleep 1000").await;
    tokio::time::timeout(LIMIT, terminal.next()).await.unwrap();
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(!terminal.waits_for_input());
    }
}
