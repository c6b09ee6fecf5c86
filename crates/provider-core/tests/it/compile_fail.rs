//! Programs that must not compile, with what the compiler tells their authors.

#[test]
fn wrong_declarations_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/compile_fail/*.rs");
}
