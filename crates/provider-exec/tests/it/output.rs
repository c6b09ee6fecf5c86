//! What is printed is what is returned, in order, whole or with its beginning and end.

use serde_json::json;

use crate::support::{notes, place};

#[tokio::test]
async fn both_streams_come_in_order_and_apart() {
    let place = place(json!({})).await;
    let result = place.run("echo a; echo b >&2; echo c").await;
    assert_eq!(
        (&result["output"], &result["stdout"], &result["stderr"]),
        (&json!("a\nb\nc\n"), &json!("a\nc\n"), &json!("b\n"))
    );
    let result = place.run("echo a").await;
    assert_eq!((&result["output"], result.get("stdout"), result.get("stderr")), (&json!("a\n"), None, None));
}

#[tokio::test]
async fn a_character_that_is_written_in_two_parts_is_one_character() {
    let place = place(json!({})).await;
    let command = "python3 -c \"import os,time; os.write(1,b'cleanup \\xe2'); time.sleep(0.05); os.write(1,b'\\x80\\x94 end')\"";
    assert_eq!(place.run(command).await["output"], "cleanup — end");
    let command = "python3 -c \"import os
for a, b in zip('a—b'.encode(), 'c…d'.encode()):
    os.write(1, bytes([a])); os.write(2, bytes([b]))\"";
    let result = place.run(command).await;
    assert_eq!((&result["stdout"], &result["stderr"]), (&json!("a—b"), &json!("c…d")));
    assert_eq!(place.run("printf 'x\\xe2\\x80'").await["output"], "x\u{fffd}");
}

#[tokio::test]
async fn the_end_of_long_output_is_there_with_the_exit_code() {
    let place = place(json!({})).await;
    let script = "for i in $(seq 300); do printf '%05000d\\n' $i; done; echo 'error: boom'; exit 1";
    for command in [script.to_owned(), format!("{{ {}; }} >&2", script.replace("; exit 1", "")) + "; exit 1"]
    {
        let result = place.run(&command).await;
        assert_eq!(result["exit_code"], 1);
        let output = result["output"].as_str().unwrap();
        assert!(output.ends_with("300\nerror: boom\n"), "…{}", &output[output.len() - 200..]);
        assert!(output.starts_with("0000"), "{}", &output[..100]);
        assert!(output.len() < 33 * 1024, "{}", output.len());
        assert_eq!(result["truncated"], true);
        let whole = std::fs::read_to_string(result["spill_path"].as_str().unwrap()).unwrap();
        assert_eq!(whole.len(), 300 * 5001 + "error: boom\n".len());
        let omitted = result["omitted_bytes"].as_f64().unwrap() as usize;
        assert!(omitted > whole.len() - 33 * 1024 && omitted < whole.len(), "{omitted}");
    }
}

#[tokio::test]
async fn escape_sequences_and_overwritten_text_are_rendered_and_the_chunks_are_raw() {
    let place = place(json!({})).await;
    let outcome = place.bash(json!({ "command": "printf '10%%\\r50%%\\r\\033[32mdone\\033[0m\\n'" })).await;
    assert_eq!(outcome.payload()["output"], "done\n");
    let raw: String = outcome.events.iter().filter_map(|event| event["data"].as_str()).collect();
    assert_eq!(raw, "10%\r50%\r\u{1b}[32mdone\u{1b}[0m\n");
}

#[tokio::test]
async fn here_documents_reach_the_shell_unchanged() {
    let place = place(json!({})).await;
    let check = async |command: &str, expected: &str| {
        let result = place.run(command).await;
        assert_eq!(result["output"], expected, "{command}");
    };
    check("python3 - <<'EOF'\nprint(\"it's $HOME `x` !\")\nEOF", "it's $HOME `x` !\n").await;
    check("cat <<'EOF' | tr a-z A-Z\nabc\nEOF\n", "ABC\n").await;
    check("cat /dev/stdin <<'EOF'\nabc\nEOF", "abc\n").await;
    let unfinished = place.run("cat <<'EOF'\nno end").await;
    assert_eq!(unfinished["stdout"], "no end\n");
    assert!(unfinished["stderr"].as_str().unwrap().contains("delimited by end-of-file"), "{unfinished}");
}

#[tokio::test]
async fn a_large_here_document_works_where_nothing_but_the_temporary_directory_can_be_written() {
    let place = place(json!({ "sandbox": "read_only", "sandbox_required": true })).await;
    let text = "0123456789abcde\n".repeat(20_000);
    let result =
        place.run(&format!("touch /tmp/x 2>/dev/null && echo written; wc -c <<'EOF'\n{text}EOF\n")).await;
    assert_eq!(result["output"], format!("{}\n", text.len()), "{result}");
}

#[tokio::test]
async fn a_command_of_any_length_is_run_as_it_is() {
    let place = place(json!({})).await;
    for length in [100_000, 131_071, 131_072, 400_000, 3_000_000] {
        let text: String = (0..length / 10).map(|number| format!("{number:09}\n")).collect();
        let command = format!("wc -c <<'EOF'\n{text}EOF\nexit 5");
        let result = place.run(&command).await;
        assert_eq!(
            (&result["output"], &result["exit_code"]),
            (&json!(format!("{}\n", text.len())), &json!(5)),
            "{length}"
        );
    }
}

#[tokio::test]
async fn output_beyond_the_quota_gives_way_in_the_middle_and_says_so() {
    let place = place(json!({ "spill_quota_bytes": 200_000 })).await;
    let result = place.run("seq 1 200000").await;
    assert!(result["output"].as_str().unwrap().ends_with("\n199999\n200000\n"));
    let folder = std::path::Path::new(result["spill_path"].as_str().unwrap()).parent().unwrap().to_owned();
    let files = std::fs::read_dir(folder).unwrap().filter_map(Result::ok);
    let kept: u64 = files
        .filter(|file| file.path().extension().is_some())
        .map(|file| file.metadata().unwrap().len())
        .sum();
    assert!(kept <= 200_000, "{kept}");
    assert!(notes(&result).iter().any(|note| note.contains("are not kept")), "{result}");
}
