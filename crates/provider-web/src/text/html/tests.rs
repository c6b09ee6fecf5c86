//! Pages and what they become.

use super::*;

fn page(html: &str) -> Page {
    let url = Url::parse("https://docs.example/guide/page.html").unwrap();
    read(html, Some(&url), true)
}

#[track_caller]
fn check(html: &str, expected: &str) {
    let text = page(html).text;
    assert_eq!(text, expected, "\n--- got\n{text}\n--- wanted\n{expected}\n---");
}

#[track_caller]
fn check_plain(html: &str, expected: &str) {
    assert_eq!(read(html, None, false).text, expected);
}

#[test]
fn headings_and_paragraphs() {
    check(
        "<h1>One</h1><p>First\n  line.<p>Second <b>bold </b>word, <i> slanted</i>.",
        "# One\n\nFirst line.\n\nSecond **bold** word, *slanted*.",
    );
    check("<h2><a href=#x class=headerlink>¶</a>Two<br>lines</h2>text", "## Two lines\n\ntext");
    check("<h3><a href='#3-1'>3.1</a> <strong>Strong</strong></h3>", "### 3.1 Strong");
    check("a<br>b<hr>c", "a  \nb\n\n---\n\nc");
    check("<p><b></b> <i> </i></p>x", "x");
    check("<div>a</div><div>b</div>c", "a\n\nb\n\nc");
    check("1. not a list<p># no heading<p>- no item", "1\\. not a list\n\n\\# no heading\n\n\\- no item");
    check("<h2>1. Introduction</h2>", "## 1. Introduction");
}

#[test]
fn emphasis_stays_inside_its_block() {
    check("<b>a<p>b</p>c</b>d", "a\n\nb\n\ncd");
    check(
        "x<sup>2</sup> H<sub>2</sub>O <del>old</del> <q>said</q>",
        "x<sup>2</sup> H<sub>2</sub>O ~~old~~ “said”",
    );
    check("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>", "漢(kan)");
}

#[test]
fn lists_are_nested_and_numbered() {
    check("<ul><li>a<li>b<ul><li>c</li><li>d</ul><li>e</ul>f", "- a\n- b\n  - c\n  - d\n- e\n\nf");
    check("<ol start=9><li>i<li>j<p>more</p><li value=20>k</ol>", "9. i\n10. j\n\n    more\n\n20. k");
    check("<ol><li><p>only</p></li> <li><p>this</p></li></ol>", "1. only\n2. this");
    check(
        "<ul><li><input type=checkbox checked> done<li><input type=checkbox>open</ul>",
        "- [x] done\n- [ ] open",
    );
    check("<ul><li>code<pre>a\n  b</pre></ul>", "- code\n\n  ```\n  a\n    b\n  ```");
    check("<ul><li></li><li>x</ul>", "- x");
    check("<li>stray", "- stray");
}

#[test]
fn quotations_are_marked() {
    check("<blockquote><p>a<p>b<blockquote>c</blockquote></blockquote>d", "> a\n>\n> b\n>\n> > c\n\nd");
}

#[test]
fn definitions_follow_their_terms() {
    check(
        "<dl><dt>a<dt>b<dd><p>first</p><p>second</p><dt><code>c</code><dd>third</dl>",
        "a\nb\n: first\n\n  second\n\n`c`\n: third",
    );
}

#[test]
fn code_keeps_every_blank() {
    check(
        "<pre><code class='language-python'>def f():\n    if x:\n\treturn  1\n\n\n    y\n</code></pre>",
        "```python\ndef f():\n    if x:\n\treturn  1\n\n\n    y\n```",
    );
    check("<pre>\n  first is indented</pre>", "```\n  first is indented\n```");
    check("<pre>a<br>b&lt;c&gt; &amp;&nbsp;d</pre>", "```\na\nb<c> & d\n```");
    check("<pre>has ``` in it</pre>", "````\nhas ``` in it\n````");
    check("<pre><div>line 1</div><div>line 2</div></pre>", "```\nline 1\nline 2\n```");
    check("<p><code>a  `b`\n c</code>", "``a `b` c``");
    check("<code><a href=x>Vec</a>&lt;T&gt;</code>", "`Vec<T>`");
}

#[test]
fn code_has_the_language_the_page_says() {
    for (html, language) in [
        ("<pre class='rust rust-example-rendered'><code>x</code></pre>", "rust"),
        (
            "<div class='highlight-python3 notranslate'><div class=highlight><pre>x</pre></div></div>",
            "python",
        ),
        ("<div class='highlight highlight-source-shell'><pre>x</pre></div>", "shell"),
        ("<pre><code class='hljs javascript'>x</code></pre>", "javascript"),
        ("<pre data-lang=go>x</pre>", "go"),
        ("<div class=sourceCode><pre class='sourceCode haskell'>x</pre></div>", "haskell"),
        ("<pre class='brush: js;'>x</pre>", "js"),
        (
            "<div class='language-ruby highlighter-rouge'><div class=highlight><pre><code>x</code></pre></div></div>",
            "ruby",
        ),
        ("<div class=highlight-default><pre>x</pre></div>", ""),
        ("<pre class=screen>x</pre>", ""),
    ] {
        check(html, &format!("```{language}\nx\n```"));
    }
}

#[test]
fn line_numbers_and_buttons_are_no_code() {
    check(
        "<table class=highlighttable><tr><td class=linenos><pre>1\n2</pre></td><td class=code><div><pre>a\nb</pre></div></td></tr></table>",
        "```\na\nb\n```",
    );
    check("<pre><code class=js>x</code><button>Copy</button></pre>", "```\nx\n```");
}

#[test]
fn tables_of_data() {
    check(
        "<table><caption>Sizes</caption><thead><tr><th>Name<th>Size</thead><tbody><tr><td>a|b<td><code>x|y</code></tr><tr><td>one<br>two<td></table>",
        "Sizes\n\n| Name | Size |\n| --- | --- |\n| a\\|b | `x\\|y` |\n| one<br>two | |",
    );
    check("<table><tr><td>a<td>b<tr><td>c<td>d</table>", "| | |\n| --- | --- |\n| a | b |\n| c | d |");
    check(
        "<table><tr><th>k<th colspan=2>v<tr><td rowspan=2>r<td>1<td>2<tr><td>3<td>4</table>",
        "| k | v | |\n| --- | --- | --- |\n| r | 1 | 2 |\n| r | 3 | 4 |",
    );
    check(
        "<table><tr><th>x<th>y<tr><td><ul><li>a<li>b</ul><td><p>c<p>d</table>",
        "| x | y |\n| --- | --- |\n| a<br>b | c<br>d |",
    );
    check(
        "<table><tr><th>k<th>v<tr><td><a href=/x|y><div>one</div></a><td>2</table>",
        "| k | v |\n| --- | --- |\n| [one](https://docs.example/x%7Cy) | 2 |",
    );
    check_plain("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a\tb\n1\t2");
}

#[test]
fn tables_that_only_arrange() {
    check("<table><tr><td><h1>T</h1><td><p>side<pre>c</pre></table>", "# T\n\nside\n\n```\nc\n```");
    check("<table><tr><td>a<tr><td>b</table>", "a\n\nb");
    check("<table role=presentation><tr><td>a<td>b</table>", "a\n\nb");
    check(
        "<table><tr><td><table><tr><th>x<th>y<tr><td>1<td>2</table><td>z</table>",
        "| x | y |\n| --- | --- |\n| 1 | 2 |\n\nz",
    );
}

#[test]
fn links_and_pictures() {
    check("<a href='../x.html?a=1&amp;b=2#c'>to\n x</a>", "[to x](https://docs.example/x.html?a=1&b=2#c)");
    check("<a href='javascript:x()'>no</a> <a>none</a> <a href=y></a>", "no none");
    check("<a href='https://a.example/'>https://a.example/</a>", "<https://a.example/>");
    check("<base href=/v2/><a href=x>y</a>", "[y](https://docs.example/v2/x)");
    check("<a href=x>a [b] c</a>", "[a \\[b\\] c](https://docs.example/guide/x)");
    check("<a href=x><h3>Card</h3><p>Words</p></a>", "### [Card](https://docs.example/guide/x)\n\nWords");
    check(
        "<img src=p.png alt='A  picture'><img src=d.png alt=''><img src='data:x' data-src=q.png>",
        "![A picture](https://docs.example/guide/p.png)![](https://docs.example/guide/q.png)",
    );
    check(
        "<a href=x><img src=p.png alt=P></a>",
        "[![P](https://docs.example/guide/p.png)](https://docs.example/guide/x)",
    );
    check("<video><source src=v.mp4></video>", "[video](https://docs.example/guide/v.mp4)");
    check_plain(
        "<p>to <a href=x>x</a> <img src=a alt=pic> <b>b</b><pre>  c</pre><h1># h</h1>",
        "to x pic b\n\n  c\n\n# h",
    );
}

#[test]
fn formulas_are_tex() {
    check(
        "<math><semantics><mi>x</mi><annotation encoding='application/x-tex'>x^2</annotation></semantics></math>",
        "$x^2$",
    );
    check("<math><mi>x</mi><mo>+</mo><mn>1</mn></math>", "x+1");
}

#[test]
fn what_nobody_sees_is_left_out() {
    check(
        "<style>p{}</style><script>x</script><p hidden>a<p aria-hidden=true>b<p style='color:red; DISPLAY : none'>c<p class=sr-only>d</p><template>e</template><svg><title>f</title><text>g</text></svg><noscript>h</noscript><select><option>i</select><button>j</button><!-- k -->l",
        "l",
    );
    check("<h2><button>Question</button></h2><p>Answer", "## Question\n\nAnswer");
    check("<h2>Title<button>Copy</button></h2>", "## Title");
    check("soft\u{ad}hyphen\u{200b} and&nbsp;blank", "softhyphen and blank");
}

/// Words enough that what stands around them can be done without.
fn long(words: &str) -> String {
    format!("<p>{}</p>", format!("{words} goes on with words that make a paragraph long enough. ").repeat(12))
}

#[test]
fn what_stands_around_the_content_is_left_out() {
    let around = "<header><a href=/>Site</a></header><nav><a href=a>A</a></nav>";
    let html = format!(
        "<title> The\n title </title>{around}<div class=breadcrumbs>Home</div><h1>Head</h1>{}<aside>Ad</aside><footer>Foot</footer>",
        long("Body")
    );
    let page = page(&html);
    assert_eq!(page.title.as_deref(), Some("The title"));
    assert!(page.text.starts_with("# Head\n\nBody goes on"), "{}", page.text);
    for left_out in ["Site", "[A]", "Home", "Ad", "Foot"] {
        assert!(!page.text.contains(left_out), "{left_out}: {}", page.text);
    }
}

#[test]
fn the_main_part_is_taken_and_the_heading_kept() {
    let html = format!(
        "<h1>Outer</h1><div>{}</div><main><header><p>By line</p></header>{}<aside class=note>Mind the gap.</aside></main>",
        "<p>Teaser of something else.".repeat(5),
        long("Story")
    );
    let page = page(&html);
    assert!(page.text.starts_with("# Outer\n\nBy line\n\nStory goes on"), "{}", page.text);
    assert!(page.text.contains("Mind the gap.") && !page.text.contains("Teaser"), "{}", page.text);
}

#[test]
fn code_that_is_most_of_a_page_does_not_take_its_heading_away() {
    let code = "a();\n".repeat(200);
    let html = format!(
        "<div class=section><h3>Example</h3><p>A short word about it.<div class=example><div><pre>{code}</pre></div></div></div>"
    );
    let text = page(&html).text;
    assert!(text.starts_with("### Example\n\nA short word about it.\n\n```\na();"), "{text}");
}

#[test]
fn a_page_of_nothing_but_navigation_is_shown_whole() {
    check(
        "<nav><ul><li><a href=a>A</a><li><a href=b>B</a></ul></nav>",
        "- [A](https://docs.example/guide/a)\n- [B](https://docs.example/guide/b)",
    );
    // A main element that is nearly empty is not the content.
    let html = format!("<main><p>Loading</p></main><div>{}</div>", long("Elsewhere"));
    assert!(page(&html).text.contains("Elsewhere"));
}

#[test]
fn a_page_made_by_scripts_says_so() {
    let page = page("<div id=app></div><script>render()</script>");
    assert_eq!(page.text, "");
    assert_eq!(page.notes, ["the page has hardly any text without running its scripts, which is not done"]);
}

#[test]
fn titles() {
    for (html, title) in [
        ("<svg><title>no</title></svg><title>yes</title>", Some("yes")),
        ("<meta property='og:title' content='Of a card'><h1>h</h1>", Some("Of a card")),
        ("<h1>Of a <b>heading</b></h1>", Some("Of a heading")),
        ("<title>A &amp; B &lt;c></title>", Some("A & B <c>")),
        ("text", None),
    ] {
        assert_eq!(page(html).title.as_deref(), title, "{html}");
    }
}

#[test]
fn tags_that_are_never_closed_end_where_others_begin() {
    check(
        "<p>a<ul><li>b<p>c</ul><table><tr><td>1<td>2<tr><td>3</table>",
        "a\n\n- b\n\n  c\n\n| | |\n| --- | --- |\n| 1 | 2 |\n| 3 |",
    );
    check("<b><i>x</b>y</i>z", "***x***yz");
    check("a</div></p></td></table>b", "ab");
    check("<svg><path d=x><p>out of the drawing", "out of the drawing");
    check(
        "x<a href=1>one<a href=2>two",
        "x[one](https://docs.example/guide/1)[two](https://docs.example/guide/2)",
    );
}

#[test]
fn hostile_pages_come_to_an_end_on_a_small_stack() {
    // What a worker thread has.
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        for (name, html) in super::hostile::pages(200_000) {
            let text = page(&html).text;
            assert!(text.len() <= 4 * html.len() + (128 << 10), "{name}: {} of {}", text.len(), html.len());
        }
        let deep = "<div>".repeat(100_000) + "deep" + &"</div>".repeat(100_000) + "<h2>after</h2>";
        check(&deep, "deep\n\n## after");
        let styled =
            format!("<style>{}</style><p>{}", "a { color: red }\n".repeat(60_000), "text ".repeat(400));
        assert!(page(&styled).text.starts_with("text text"));
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn any_cut_of_a_page_is_read() {
    let html = "<!doctype html><title>t</title><main><h1 class=\"x\">H &amp; h</h1><table><tr><td>a</td></tr></table><pre>c</pre><!-- c --><a href='x'>é</a></main>";
    for end in (0..=html.len()).filter(|end| html.is_char_boundary(*end)) {
        page(&html[..end]);
    }
}
