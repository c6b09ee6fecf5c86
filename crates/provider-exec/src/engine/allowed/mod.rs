//! Which programs, with which options, only read: no way to write, to run another program, or to reach the network.
//!
//! What is not listed is refused. That is the first of two bars; the second is the sandbox that such a program runs in.

mod git;
mod options;
mod programs;

pub use git::{SAFE_SETTINGS, dangerous_value};
use programs::{PROGRAMS, Program};

/// What is allowed, as a page in Markdown without its heading.
pub fn page() -> String {
    format!(
        "\
`shell_read` starts one program without a shell. What is not in these lists is refused: no option of a listed program
writes, runs another program, or reaches the network. That is the first bar. The second is the sandbox: nothing but a
temporary directory can be written, there is no network, and where Landlock holds only the root, the programs of the
system and what they need can be read. A machine without such a sandbox has no `shell_read`.

Programs are found where the system keeps them (`/usr/local/bin`, `/usr/bin` and the like, then on the PATH), and never
below the root. They get HOME, USER, LOGNAME, LANG, LC_*, TZ and a fixed PATH, and nothing else of the environment.

## Programs

{programs}
## git

Before the command only `-C` and `--no-pager` are allowed. Options behind the command stand in this list in full:
abbreviations are refused, and so are a value that begins with a dash and stands apart from its option, and formats that
check signatures (`%G`, `%(signature)`).

{git}
These settings win over every configuration file. The names that a repository has chosen itself are asked for first, and
those that name a program (drivers for filters, differences and merges, textconv, aliases, pagers, helpers, transports)
are set to nothing as well. Submodules are not looked into, objects are not fetched, locks are not taken, and no hook runs.
",
        programs = programs::table(),
        git = git::documented(),
    )
}

/// Why a program is not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    /// There is no program.
    #[error("argv: it is empty; give a program and its arguments, for example [\"git\", \"status\"]")]
    Empty,
    /// An argument cannot be passed.
    #[error("argv: an argument contains a NUL character")]
    Nul,
    /// The program is not listed.
    #[error("argv: {name} is not one of the programs that only read ({}); run it with bash", names())]
    Program {
        /// Its name.
        name: String,
    },
    /// The program is not listed with this option or argument.
    #[error("argv: {name} is not allowed with {argument}: {why}; run it with bash")]
    Argument {
        /// The program.
        name: &'static str,
        /// The argument.
        argument: String,
        /// Why not, or what is allowed.
        why: String,
    },
}

/// The names of all programs, for the message.
fn names() -> String {
    PROGRAMS.iter().map(|program| program.name).collect::<Vec<_>>().join(", ")
}

/// What is run in place of an allowed argv: the same, with what keeps it from doing more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The program's name, without a directory.
    pub program: &'static str,
    /// Its arguments, without the program.
    pub arguments: Vec<String>,
    /// Whether it is git, whose configuration can name programs to run.
    pub is_git: bool,
}

/// Checks an argv.
///
/// # Errors
/// What is not allowed, and what to do.
pub fn check(argv: &[String]) -> Result<Allowed, NotAllowed> {
    let (name, arguments) = argv.split_first().ok_or(NotAllowed::Empty)?;
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err(NotAllowed::Nul);
    }
    // A path could name anything; these names are looked up where the system keeps its programs.
    let unknown = || NotAllowed::Program { name: name.clone() };
    let program: &Program = PROGRAMS.iter().find(|program| program.name == name).ok_or_else(unknown)?;
    let is_git = program.name == "git";
    let arguments = if is_git {
        git::check(arguments)?
    } else {
        options::check(program.name, &program.allowed, arguments)?;
        program.first.iter().map(|first| (*first).to_owned()).chain(arguments.iter().cloned()).collect()
    };
    Ok(Allowed { program: program.name, arguments, is_git })
}

#[cfg(test)]
mod tests {
    use super::check;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[track_caller]
    fn allowed(line: &str) {
        assert!(check(&argv(line)).is_ok(), "{line}: {}", check(&argv(line)).unwrap_err());
    }

    #[track_caller]
    fn refused(line: &str) {
        assert!(check(&argv(line)).is_err(), "{line}");
    }

    #[test]
    fn what_only_reads_is_allowed() {
        for line in [
            "ls -la src",
            "cat a b",
            "head -n 5 a",
            "tail -c +10 a",
            "wc -l a",
            "grep -rn pattern src",
            "find . -name *.rs -type f -print",
            "find . -newer a -not -path ./target/* -maxdepth 3",
            "sort -k2,2n -r -u a",
            "sed -n 1,5p a",
            "sed -e s/a/b/ a",
            "rg -n -g *.rs foo",
            "rg foo -A3 --type rust",
            "fd -e rs main",
            "tree -L 2",
            "diff -u a b",
            "uniq -c a",
            "date -u +%s",
            "file -b a",
            "du -sh .",
            "stat -c %s a",
            "jq .a b",
            "ps aux",
        ] {
            allowed(line);
        }
    }

    #[test]
    fn what_writes_is_refused() {
        for line in [
            "sort -o out a",
            "sort -oout a",
            "sort --output=out a",
            "sort --outp=out a",
            "sort -ru -o out a",
            "sort -ruoout a",
            "uniq a out",
            "tree -o out",
            "find . -delete",
            "find . -fprint out",
            "find . -fprintf out x",
            "find . -fls out",
            "sed -i s/a/b/ a",
            "sed -n -i s/a/b/ a",
            "sed -ni s/a/b/ a",
            "sed --in-place s/a/b/ a",
            "date 010203042026",
            "date -s 12:00",
            "date --set=12:00",
            "file -C",
            "tee a",
            "cp a b",
            "rm a",
            "touch a",
            "dd if=a of=b",
        ] {
            refused(line);
        }
    }

    #[test]
    fn what_runs_something_is_refused() {
        for line in [
            "find . -exec rm {} ;",
            "find . -execdir x ;",
            "find . -ok x ;",
            "find . -okdir x ;",
            "rg --pre x a",
            "rg --pre=x a",
            "rg --hostname-bin=x a",
            "rg -z a",
            "rg --search-zip a",
            "fd -x rm",
            "fd -X rm",
            "fd --exec rm",
            "fd --exec-batch=rm",
            "fd -Hx rm",
            "sort --compress-program=x a",
            "sort --compress-prog x a",
            "bash -c x",
            "env x",
            "xargs x",
            "sh",
            "awk x a",
            "sudo ls",
            "/bin/ls",
            "./ls",
            "diff --paginate a b",
            "diff -l a b",
        ] {
            refused(line);
        }
    }

    #[test]
    fn git_is_allowed_to_read() {
        for line in [
            "git status",
            "git status --short --branch",
            "git log --oneline -5",
            "git log -p -n 3 --stat -- src",
            "git log --format=%H%n%s --author=x --since=1.week main..HEAD",
            "git diff HEAD~1 -- a",
            "git diff --cached --name-only",
            "git show HEAD:src/a.rs",
            "git blame -L 1,5 a",
            "git ls-files -m",
            "git rev-parse --show-toplevel",
            "git branch -a -vv",
            "git branch --show-current",
            "git tag -l v*",
            "git remote -v",
            "git remote get-url origin",
            "git config --get user.name",
            "git config --list",
            "git config list",
            "git config get user.name",
            "git diff -U5 -M -- a",
            "git log --pretty=oneline --grep fix -n 5",
            "git stash list",
            "git stash show -p",
            "git grep -n foo",
            "git cat-file -p HEAD",
            "git -C sub log -1",
            "git --no-pager log",
            "git describe --tags",
            "git worktree list",
            "git reflog",
        ] {
            allowed(line);
        }
    }

    #[test]
    fn git_is_not_allowed_to_do_more() {
        for line in [
            "git",
            "git commit -m x",
            "git checkout main",
            "git push",
            "git fetch",
            "git pull",
            "git clone x",
            "git init",
            "git add a",
            "git -c core.pager=x log",
            "git --exec-path=x log",
            "git -p log",
            "git --paginate log",
            "git --git-dir=x log",
            "git --config-env=a=b log",
            "git log --output=x",
            "git log --output x",
            "git log -M --output=x",
            "git diff -U --output=x",
            "git diff --unified --output=x",
            "git log --pretty --output=x",
            "git log -C --ext-diff -p",
            "git diff --output=x",
            "git diff --outpu=x",
            "git log --ext-diff -p",
            "git diff --ext-diff",
            "git diff --textconv",
            "git show --textconv",
            "git log --show-signature",
            "git log --show-sig",
            "git log --format=%G?",
            "git log --pretty=format:%GS",
            "git show --pretty=%GK",
            "git grep -O foo",
            "git grep -Oless foo",
            "git grep --open-files-in-pager=x foo",
            "git grep --recurse-submodules foo",
            "git branch -d x",
            "git branch -D x",
            "git branch new",
            "git branch -m a b",
            "git branch --edit-description",
            "git branch -u x",
            "git tag v1",
            "git tag -d v1",
            "git tag -v v1",
            "git tag -a v1",
            "git remote add x y",
            "git remote show origin",
            "git remote update",
            "git config user.name x",
            "git config user.name list",
            "git config user.name get",
            "git config -- user.name --get",
            "git branch -- -l",
            "git config --unset a.b",
            "git config -e",
            "git config --edit",
            "git config --add a.b c",
            "git stash",
            "git stash pop",
            "git stash drop",
            "git stash push",
            "git cat-file --textconv HEAD:a",
            "git cat-file --filters HEAD:a",
            "git worktree add x",
            "git reflog expire --all",
            "git reflog delete x",
            "git submodule status",
            "git difftool",
            "git blame --textconv a",
            "git status --recurse-submodules",
            "git ls-files --recurse-submodules",
            "git diff --submodule=diff",
            "git ls-remote x",
            "git archive HEAD",
            "git alias",
            "git log --alternate-refs",
            "git for-each-ref --format=%(signature)",
            "git symbolic-ref HEAD refs/heads/x",
            "git help log",
            "git --html-path log",
            "git log --remerge-diff",
        ] {
            refused(line);
        }
    }

    #[test]
    fn git_is_kept_from_running_what_its_options_can_turn_off() {
        let check = |line: &str| check(&argv(line)).unwrap().arguments.join(" ");
        assert_eq!(
            check("git -C sub status -s"),
            "--no-pager --no-optional-locks -C sub status --ignore-submodules=all -s"
        );
        assert_eq!(
            check("git diff a -- b"),
            "--no-pager --no-optional-locks diff --no-ext-diff --no-textconv --ignore-submodules=all a -- b"
        );
        assert_eq!(check("git blame a"), "--no-pager --no-optional-locks blame --no-textconv a");
    }

    #[test]
    fn the_message_says_what_is_allowed() {
        let message = check(&argv("rm x")).unwrap_err().to_string();
        assert!(
            message.starts_with("argv: rm is not one of the programs that only read (")
                && message.ends_with("run it with bash"),
            "{message}"
        );
        let message = check(&argv("rg -e -x")).unwrap_err().to_string();
        assert_eq!(
            message,
            "argv: rg is not allowed with -x: a value that begins with a dash must be written right behind its option, as in --name=-x; run it with bash"
        );
        let message = check(&argv("date 0102")).unwrap_err().to_string();
        assert_eq!(message, "argv: date is not allowed with 0102: it must begin with +; run it with bash");
        let message = check(&argv("sort -o x")).unwrap_err().to_string();
        assert_eq!(
            message,
            "argv: sort is not allowed with -o: only -b -d -f -g -i -h -k -M -n -r -s -t -u -V -z -c -C -m and --key, --field-separator, --reverse, --unique, --numeric-sort, --human-numeric-sort, --version-sort, --stable, --ignore-case, --ignore-leading-blanks, --dictionary-order, --check, --zero-terminated, --help, --version are; run it with bash"
        );
    }

    #[test]
    fn every_program_is_on_the_page_once() {
        let page = super::page();
        let (programs, _) = page.split_once("\n## git\n").unwrap();
        for program in super::PROGRAMS {
            assert_eq!(programs.matches(&format!("\n| `{}` |", program.name)).count(), 1, "{}", program.name);
        }
    }
}
