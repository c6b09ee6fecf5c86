//! What to do about mistakes that are made again and again.

/// Adds to a syntax error what was probably meant.
pub(super) fn for_syntax(message: String, code: &str) -> String {
    let hint = if lines(code).any(|line| line.starts_with("import ") || line.starts_with("export ")) {
        "there are no modules here: leave import and export out, everything a program can use is in `tools`"
    } else if looks_like_shell(code) {
        SHELL
    } else if has_types(code) {
        "a program is JavaScript: leave TypeScript types out"
    } else {
        return message;
    };
    format!("{message}; {hint}")
}

/// Adds to what a program threw why a name is not there.
pub(super) fn for_thrown(message: String) -> String {
    let Some(name) =
        message.strip_prefix("ReferenceError: ").and_then(|rest| rest.strip_suffix(" is not defined"))
    else {
        return message;
    };
    let hint = match name {
        "require" | "module" | "exports" => {
            "there are no modules here: everything a program can use is in `tools`"
        }
        "fetch" | "XMLHttpRequest" | "process" | "Deno" | "Bun" | "Buffer" | "fs" | "os" | "window"
        | "document" => "a program has the JavaScript language and `tools`, nothing else",
        "setTimeout" | "setInterval" | "setImmediate" | "queueMicrotask" => {
            "there are no timers here: await a tool instead"
        }
        "Intl" | "structuredClone" | "btoa" | "atob" | "URL" | "TextEncoder" | "TextDecoder"
        | "performance" => "this is no part of the JavaScript language, and not here",
        command if COMMANDS.contains(&command) => SHELL,
        _ => return message,
    };
    format!("{message}; {hint}")
}

fn lines(code: &str) -> impl Iterator<Item = &str> {
    code.lines().map(str::trim_start)
}

const SHELL: &str = "this looks like a shell command; a program is JavaScript and calls tools";

/// Programs that are run from a shell.
const COMMANDS: [&str; 16] = [
    "ls",
    "cd",
    "cat",
    "git",
    "npm",
    "npx",
    "cargo",
    "grep",
    "rg",
    "curl",
    "mkdir",
    "rm",
    "python",
    "python3",
    "sed",
    "#!/bin/sh",
];

fn looks_like_shell(code: &str) -> bool {
    let mut words = code.split_whitespace();
    let first = words.next().unwrap_or_default();
    let second = words.next().unwrap_or_default();
    COMMANDS.contains(&first) && !second.starts_with(['=', '(', '.', ','])
}

fn has_types(code: &str) -> bool {
    const TYPES: [&str; 8] =
        [": string", ": number", ": boolean", ": any", ": unknown", ": void", ": Record<", " as const"];
    TYPES.iter().any(|kind| code.contains(kind))
        || lines(code).any(|line| line.starts_with("interface ") || line.starts_with("type "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &str, expected: &str) {
        let message = for_syntax("E".to_owned(), code);
        assert!(message.contains(expected) && (expected.is_empty() == (message == "E")), "{message}");
    }

    #[test]
    fn common_mistakes_are_recognised() {
        check("import fs from 'fs'", "no modules");
        check("const x: string = 'a'", "TypeScript");
        check("ls -la /tmp", "shell");
        check("ls = 1 +", "");
        check("return (", "");
    }

    #[test]
    fn names_that_are_not_here_are_explained() {
        let explained = |name: &str| for_thrown(format!("ReferenceError: {name} is not defined"));
        assert!(explained("require").contains("no modules"));
        assert!(explained("setTimeout").contains("no timers"));
        assert_eq!(explained("foo"), "ReferenceError: foo is not defined");
    }
}
