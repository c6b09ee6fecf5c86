use super::{Context, scan};

/// The commands as `depth context: words`.
fn check(text: &str, expected: &[&str]) {
    let found = scan(text).simple;
    let lines: Vec<String> = found
        .iter()
        .map(|simple| {
            let context = match &simple.context {
                Context::Plain => String::new(),
                other => format!("{other:?} "),
            };
            let assignments =
                simple.assignments.iter().map(|(name, value)| format!("{name}={}", value.shown()));
            let words = simple.words.iter().map(|word| word.shown().to_owned());
            let redirections = simple
                .redirections
                .iter()
                .map(|redirection| format!("{}{}", redirection.operator, redirection.target.shown()));
            let all: Vec<String> = assignments.chain(words).chain(redirections).collect();
            let background = if simple.background { " &" } else { "" };
            format!("{context}{}{background}", all.join(" "))
        })
        .collect();
    assert_eq!(lines, expected, "{text}");
}

#[test]
fn simple_commands_are_told_apart() {
    check("cd a && make -j4; ls | wc -l || true", &["cd a", "make -j4", "ls", "wc -l", "true"]);
    check("sleep 5 & echo done", &["sleep 5 &", "echo done"]);
    check("a \\\n b # comment; c\nd", &["a b", "d"]);
    check("A=1 B='x y' env -i C=2 prog", &["A=1 B=x y env -i C=2 prog"]);
}

#[test]
fn quotes_are_taken_off_where_that_is_certain() {
    check(r#"'r'm "a b" c\ d $'e\'f' "g$h" ~/x"#, &["rm a b c d e'f \"g$h\" ~/x"]);
    check(r#"echo "it's \"$HOME\" \$x" '`no`'"#, &[r#"echo "it's \"$HOME\" \$x" `no`"#]);
}

#[test]
fn redirections_are_no_arguments() {
    check(
        "make >out 2>&1 <in >>log 2> \"e f\" &>all <<<text",
        &["make >out 2>&1 <in >>log 2>e f &>all <<<text"],
    );
    check("a 2 >b", &["a 2 >b"]);
}

#[test]
fn commands_within_words_are_read() {
    check(
        "echo $(date +%s) `who` \"x $(a; b)\"",
        &[
            "echo $(date +%s) `who` \"x $(a; b)\"",
            "Substitution date +%s",
            "Substitution who",
            "Substitution a",
            "Substitution b",
        ],
    );
    check("diff <(sort a) >(tee b)", &["diff <(sort a) >(tee b)", "Process sort a", "Process tee b"]);
    check(
        "echo ${x:-$(rm y)} $((1 + $(n)))",
        &["echo ${x:-$(rm y)} $((1 + $(n)))", "Substitution rm y", "Substitution n"],
    );
}

#[test]
fn grammar_is_no_command() {
    check("if [ -f a ]; then rm a; else touch b; fi", &["[ -f a ]", "rm a", "touch b"]);
    check("for f in *.txt $(ls); do cat \"$f\"; done", &["Substitution ls", "cat \"$f\""]);
    check("while read -r x; do echo $x; done < in", &["read -r x", "echo $x", "<in"]);
    check("case $x in a|b) rm c;; *) ls;; esac; pwd", &["rm c", "ls", "pwd"]);
    check("[[ $a < b && -f c ]] && d", &["d"]);
    check("(cd x; rm y); { a; b; }", &["Subshell cd x", "Subshell rm y", "a", "b"]);
    check("! a; time b; (( i++ )); c", &["a", "b", "c"]);
}

#[test]
fn functions_are_read() {
    check("f() { rm x; }; f", &["Function(\"f\") rm x", "f"]);
    check(":(){ :|:& };:", &["Function(\":\") : &", "Function(\":\") : &", ":"]);
}

#[test]
fn here_documents_are_text_unless_a_shell_reads_them() {
    check("cat <<EOF\nrm x; $(date)\nEOF\nls", &["cat", "Substitution date", "ls"]);
    check("cat <<'EOF' > f\n$(date)\nEOF\n", &["cat >f"]);
    check("bash <<-EOF\n\trm x\n\tEOF\nls", &["bash", "Text rm x", "ls"]);
    check("cat <<A; b <<B\n1\nA\n2\nB\nc", &["cat", "b", "c"]);
}

#[test]
fn the_text_for_another_shell_is_read() {
    check("bash -lc 'rm x; ls'", &["bash -lc rm x; ls", "Text rm x", "Text ls"]);
    check("eval 'a' b", &["eval a b", "Text a b"]);
    check("sh -c \"$x\"", &["sh -c \"$x\""]);
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(pieces in proptest::collection::vec(proptest::sample::select(PIECES.to_vec()), 0..60)) {
        let text = pieces.concat();
        let found = scan(&text);
        for word in found.simple.iter().flat_map(|simple| &simple.words) {
            proptest::prop_assert!(word.commands.iter().all(|index| *index < found.simple.len()), "{}", text);
        }
    }
}

const PIECES: &[&str] = &[
    "a",
    " ",
    " ",
    "\n",
    ";",
    "&",
    "|",
    "&&",
    "(",
    ")",
    "{",
    "}",
    "$(",
    "`",
    "${",
    "$((",
    "))",
    "'",
    "\"",
    "\\",
    "$x",
    "<",
    ">",
    ">>",
    "<<E",
    "\nE\n",
    "<(",
    "case x in ",
    "esac",
    "for i in ",
    "do ",
    "done",
    "if ",
    "then ",
    "fi",
    "f() {",
    "[[ ",
    " ]]",
    "#",
    "é",
    "A=",
    "bash -c ",
    "eval ",
    "2>&1",
    "<<<",
    "$'",
    "((",
    ";;",
];

#[test]
fn nothing_stops_the_reading() {
    for text in [
        "'", "\"", "$(", "`", "((", "${", "<<", "case", "for", "f(", ")", "))", "(", "{", "[[", "a <(", "$'",
        ";;", "&", "|", "\\",
    ] {
        let _ = scan(text);
        let _ = scan(&format!("a {text} b"));
        let _ = scan(&text.repeat(5_000));
    }
    assert!(scan(&"$(".repeat(1_000)).unclear.is_some());
    assert!(scan(&"a;".repeat(1_000)).unclear.is_some());
}
