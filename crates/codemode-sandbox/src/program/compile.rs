//! From text to a function: an expression where it is one, else the body of an async function.
//!
//! A wrapper around text is only a function if the text cannot end it and begin something else. So the same text must
//! also compile in other wrappers, after whose end nothing may follow that may follow the first one's: a text that closes
//! its wrapper cannot go on in all of them. Nothing is evaluated before that is known.

use std::ffi::CString;

use rquickjs::{Ctx, Function, Value, qjs};

use super::options;

/// The name of the program in stacks.
const FILE: &str = "program.js";

/// How a place on the first line begins.
const FIRST_LINE: &str = "program.js:1:";

/// A function of no arguments that runs the program and answers a promise.
pub(super) struct Compiled<'js> {
    pub(super) program: Function<'js>,
    /// Whether the program is one expression; then a function that comes of it is what is meant.
    pub(super) is_expression: bool,
}

/// What stands before and after a text. The text begins on the first line, so that its lines keep their numbers; what
/// stands before is always [`BEFORE`] long, so that its columns can be put right.
struct Wrapper {
    before: &'static str,
    after: &'static str,
}

const BEFORE: usize = 31;

/// A body. The first wrapper is what is run. A method can only be followed by a member or the end of its class, an arrow
/// function in parentheses only by a comma or their end.
const BODY: [Wrapper; 3] = [
    Wrapper { before: "(async function () {           ", after: "\n})" },
    Wrapper { before: "(class { async method() {      ", after: "\n} })" },
    Wrapper { before: "(async () => {                 ", after: "\n})" },
];

/// An expression. What closes the first wrapper closes nothing in the second one.
const EXPRESSION: [Wrapper; 2] = [
    Wrapper { before: "(async function () { return (  ", after: "\n) })" },
    Wrapper { before: "(async function () { return `${", after: "\n}` })" },
];

/// Compiles a program.
///
/// # Errors
/// What the engine says of it as the body of a function: that is what most programs are.
pub(super) fn compile<'js>(ctx: &Ctx<'js>, code: &str) -> Result<Compiled<'js>, Value<'js>> {
    let code = without_fence(code);
    for expression in expressions(code) {
        if let Ok(program) = function(ctx, expression, &EXPRESSION) {
            return Ok(Compiled { program, is_expression: true });
        }
    }
    let program = function(ctx, code, &BODY)?;
    Ok(Compiled { program, is_expression: false })
}

fn function<'js, const N: usize>(
    ctx: &Ctx<'js>,
    text: &str,
    wrappers: &[Wrapper; N],
) -> Result<Function<'js>, Value<'js>> {
    let sources = wrappers.each_ref().map(|wrapper| [wrapper.before, text, wrapper.after].concat());
    for source in &sources {
        parse(ctx, source)?;
    }
    let [source, ..] = sources.as_slice() else { return Err(Value::new_undefined(ctx.clone())) };
    ctx.eval_with_options(source.as_str(), options(FILE)).map_err(|_| ctx.catch())
}

/// A stack with the columns that the program has: what stands before its first line is not its own.
pub(super) fn with_own_columns(stack: &str) -> String {
    let mut own = String::with_capacity(stack.len());
    let mut rest = stack;
    while let Some(at) = rest.find(FIRST_LINE) {
        let (before, column) = rest.split_at(at + FIRST_LINE.len());
        let digits = column.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = column[..digits].parse().unwrap_or_default();
        own.push_str(before);
        own.push_str(&number.saturating_sub(BEFORE).max(1).to_string());
        rest = &column[digits..];
    }
    own + rest
}

/// Compiles without evaluating.
#[allow(unsafe_code)] // The engine's safe interface always evaluates what it compiles.
fn parse<'js>(ctx: &Ctx<'js>, source: &str) -> Result<(), Value<'js>> {
    let no_text = |_| {
        let _ = rquickjs::Exception::throw_syntax(ctx, "a program is text without NUL characters");
        ctx.catch()
    };
    let (text, file) = (CString::new(source).map_err(no_text)?, CString::new(FILE).map_err(no_text)?);
    let flags = qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_STRICT | qjs::JS_EVAL_FLAG_COMPILE_ONLY;
    let length = source.len() as qjs::size_t;
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the context is alive and entered; both texts end in a zero and outlive the call, and what comes back is
    // freed at once.
    let failed = unsafe {
        let compiled = qjs::JS_Eval(raw, text.as_ptr(), length, file.as_ptr(), flags as i32);
        let failed = qjs::JS_IsException(compiled);
        qjs::JS_FreeValue(raw, compiled);
        failed
    };
    if failed { Err(ctx.catch()) } else { Ok(()) }
}

/// What may be meant as one expression: the text itself; and without a comment and semicolons at its end.
fn expressions(code: &str) -> impl Iterator<Item = &str> {
    let bare = |text: &'_ str| text.trim_end_matches(|end: char| end == ';' || end.is_whitespace()).len();
    let all = code.trim_end();
    let last_line = all.rfind('\n').map_or(0, |end| end + 1);
    let comment = all[last_line..].rfind("//").map(|at| last_line + at);
    let lengths = [Some(all.len()), Some(bare(all)), comment.map(|at| bare(&all[..at]))];
    let mut seen = usize::MAX;
    lengths
        .into_iter()
        .flatten()
        .filter(move |length| std::mem::replace(&mut seen, *length) != *length)
        .map(|length| &code[..length])
}

/// The text inside one Markdown fence, if that is all there is.
fn without_fence(code: &str) -> &str {
    let inner = || {
        let rest = code.trim().strip_prefix("```")?;
        let (language, rest) = rest.split_once('\n')?;
        let known = ["", "js", "javascript", "ts", "typescript", "mjs", "jsx"];
        let inner = rest.strip_suffix("```")?;
        (known.contains(&language.trim()) && !inner.contains("```")).then_some(inner)
    };
    inner().unwrap_or(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fence_is_taken_off() {
        assert_eq!(without_fence("```js\nreturn 1\n```\n"), "return 1\n");
        assert_eq!(without_fence("return `a`"), "return `a`");
        assert_eq!(without_fence("```python\nx\n```"), "```python\nx\n```");
    }

    #[test]
    fn columns_of_the_first_line_are_the_programs_own() {
        assert!(BODY.iter().chain(&EXPRESSION).all(|wrapper| wrapper.before.len() == BEFORE));
        let stack = "    at f (program.js:1:36)\n    at g (program.js:10:36)\n    at program.js:1:32";
        let own = "    at f (program.js:1:5)\n    at g (program.js:10:36)\n    at program.js:1:1";
        assert_eq!(with_own_columns(stack), own);
    }

    #[test]
    fn an_expression_may_end_like_a_statement() {
        let all = |code| expressions(code).collect::<Vec<_>>();
        assert_eq!(all("1+1"), ["1+1"]);
        assert_eq!(all("1+1; ;\n"), ["1+1; ;", "1+1"]);
        assert_eq!(all("1+1; // c"), ["1+1; // c", "1+1"]);
    }
}
