//! Pages that make a careless reader take quadratic time, or its stack overflow: for tests, and to measure.

/// Pages of about `size` bytes, each with a name.
#[must_use]
pub fn pages(size: usize) -> Vec<(&'static str, String)> {
    let times = |unit: &str| unit.repeat(size / unit.len());
    vec![
        ("open blocks", times("<div>x")),
        (
            "blanks around buttons",
            format!("<h1>{}{}", " <html id=x>".repeat(size / 24), "<button></button>".repeat(size / 34)),
        ),
        ("one wide row", format!("<table><tr>{}", times("<td rowspan=9 colspan=99>x"))),
        ("open quotations", times("<blockquote>x")),
        ("open lists", times("<ul><li>x")),
        ("open tables", times("<table><tr><td>x")),
        ("open emphasis", times("<b>x")),
        ("open links", times("<a href=x>y")),
        ("pairs", times("<b>x</b>")),
        ("end tags", times("</div></b>")),
        ("blocks in open fonts", times("<font><div>x</div>")),
        ("lines in quotations", "<blockquote>".repeat(200) + &times("x<br>")),
        ("one row", format!("<table><tr>{}", times("<td>x"))),
        (
            "one long cell",
            format!("<table><tr><td>{}<td>b{}", "y".repeat(size / 2), "<tr><td>x<td>y".repeat(size / 30)),
        ),
        ("spans", format!("<table>{}", times("<tr><td rowspan=99 colspan=99>x</td></tr>"))),
        ("a large table", format!("<table>{}", times("<tr><td>cell<td>another</tr>"))),
        (
            "attributes",
            format!("<div {}>x", (0..size / 9).map(|number| format!("a{number}=b ")).collect::<String>()),
        ),
        ("one attribute", format!("<div {}>x", times("class=b "))),
        ("a long attribute", format!("<div class='{}'>x", times("b "))),
        ("entities", times("&amp;&lt;&nGt;&notanentity")),
        ("ampersands", times("&")),
        ("angles", times("<")),
        ("comments", times("<!--")),
        ("blanks", times("   \n")),
        ("style", format!("<style>{}</style><p>text", times("a{b:c}"))),
        (
            "long base",
            format!("<base href='https://docs.example/{}'>{}", "x".repeat(3_000), times("<a href=x>y</a>")),
        ),
        ("marks", times("<a href=#><div>")),
        ("a long name", format!("<{}>", times("a"))),
        ("spans in a cell in a paragraph", format!("<p><table><td>{}{}", times("<span>"), times("<div>"))),
    ]
}
