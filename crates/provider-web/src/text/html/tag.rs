//! The elements whose meaning matters for reading, and what HTML says of each.

macro_rules! tags {
    ($($name:ident = $text:literal,)*) => {
        /// The name of an element.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Tag { $(#[doc = $text] $name,)* /// Any other element.
            Other }

        impl Tag {
            /// The element with this name in lower case.
            pub(super) fn of(name: &[u8]) -> Self {
                match std::str::from_utf8(name) {
                    $(Ok($text) => Self::$name,)*
                    _ => Self::Other,
                }
            }
        }
    };
}

tags! {
    A = "a", Abbr = "abbr", Address = "address", Annotation = "annotation", Area = "area", Article = "article",
    Aside = "aside", Audio = "audio", B = "b", Base = "base", Blockquote = "blockquote", Body = "body", Br = "br",
    Button = "button", Canvas = "canvas", Caption = "caption", Center = "center", Cite = "cite", Code = "code",
    Col = "col", Colgroup = "colgroup", Datalist = "datalist", Dd = "dd", Del = "del", Desc = "desc",
    Details = "details", Dialog = "dialog", Dir = "dir", Div = "div", Dl = "dl", Dt = "dt", Em = "em",
    Embed = "embed", Fieldset = "fieldset", Figcaption = "figcaption", Figure = "figure", Footer = "footer",
    ForeignObject = "foreignobject", Form = "form", Frame = "frame", Frameset = "frameset", H1 = "h1", H2 = "h2",
    H3 = "h3", H4 = "h4", H5 = "h5", H6 = "h6", Head = "head", Header = "header", Hgroup = "hgroup", Hr = "hr",
    Html = "html", I = "i", Iframe = "iframe", Img = "img", Input = "input", Kbd = "kbd", Legend = "legend",
    Li = "li", Link = "link", Main = "main", Math = "math", Menu = "menu", Meta = "meta", Nav = "nav",
    Noembed = "noembed", Noframes = "noframes", Noscript = "noscript", Object = "object", Ol = "ol",
    Optgroup = "optgroup", Option = "option", P = "p", Param = "param", Plaintext = "plaintext", Pre = "pre",
    Q = "q", Rp = "rp", Rt = "rt", S = "s", Samp = "samp", Script = "script", Search = "search",
    Section = "section", Select = "select", Source = "source", Span = "span", Strike = "strike",
    Strong = "strong", Style = "style", Sub = "sub", Summary = "summary", Sup = "sup", Svg = "svg",
    Table = "table", Tbody = "tbody", Td = "td", Template = "template", Textarea = "textarea", Tfoot = "tfoot",
    Th = "th", Thead = "thead", Title = "title", Tr = "tr", Track = "track", Tt = "tt", Ul = "ul", Var = "var",
    Video = "video", Wbr = "wbr", Xmp = "xmp",
}

/// How many tags there are.
pub(super) const TAGS: usize = Tag::Other as usize + 1;

impl Tag {
    /// An index for tables.
    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// An element without content, and without an end tag.
    pub(super) fn is_void(self) -> bool {
        use Tag::*;
        matches!(
            self,
            Area | Base
                | Br
                | Col
                | Embed
                | Frame
                | Hr
                | Img
                | Input
                | Link
                | Meta
                | Param
                | Source
                | Track
                | Wbr
        )
    }

    /// An element whose content is text that nobody reads: it is not even kept.
    pub(super) fn is_raw(self) -> bool {
        use Tag::*;
        matches!(self, Script | Style | Noembed | Noscript | Iframe | Textarea)
    }

    /// From 1 for `h1`.
    pub(super) fn heading_level(self) -> Option<usize> {
        use Tag::*;
        [H1, H2, H3, H4, H5, H6].iter().position(|heading| *heading == self).map(|at| at + 1)
    }

    /// An element that stands on lines of its own.
    pub(super) fn is_block(self) -> bool {
        use Tag::*;
        self.heading_level().is_some()
            || self.is_table_part()
            || matches!(
                self,
                Address
                    | Article
                    | Aside
                    | Blockquote
                    | Body
                    | Center
                    | Dd
                    | Details
                    | Dialog
                    | Dir
                    | Div
                    | Dl
                    | Dt
                    | Fieldset
                    | Figcaption
                    | Figure
                    | Footer
                    | Form
                    | Header
                    | Hgroup
                    | Hr
                    | Html
                    | Legend
                    | Li
                    | Main
                    | Menu
                    | Nav
                    | Ol
                    | P
                    | Plaintext
                    | Pre
                    | Search
                    | Section
                    | Summary
                    | Table
                    | Ul
                    | Xmp
            )
    }

    /// A part of a table.
    pub(super) fn is_table_part(self) -> bool {
        use Tag::*;
        matches!(self, Caption | Colgroup | Tbody | Td | Tfoot | Th | Thead | Tr)
    }

    /// Whether the start of this element ends an open paragraph.
    pub(super) fn ends_paragraph(self) -> bool {
        use Tag::*;
        self.is_block() && !self.is_table_part() && !matches!(self, Body | Html | Legend)
    }

    /// An element that an end tag inside it cannot reach out of.
    pub(super) fn is_boundary(self) -> bool {
        use Tag::*;
        matches!(self, Table | Td | Th | Caption | Template | Object | Svg | Math)
    }

    /// A list.
    pub(super) fn is_list(self) -> bool {
        matches!(self, Tag::Ul | Tag::Ol | Tag::Menu | Tag::Dir)
    }
}
