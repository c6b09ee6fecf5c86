//! What becomes of one entry: pattern first, then dots, then ignore files.

use provider_core::jail::FileKind;

use super::{Only, Pattern, Positions, Stride, Strides};
use crate::engine::ignore_rules::Verdict;

/// A pattern and what it may see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judge<'a> {
    pub(crate) pattern: &'a Pattern,
    /// Names that begin with a dot are as good as others.
    pub(crate) hidden: bool,
    /// Ignore files are not asked.
    pub(crate) ignored: bool,
}

/// Where a pattern stands in one directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Where ignore files hold.
    pub(crate) ruled: Positions,
    /// Where they do not: beneath an ignored directory that the pattern names.
    pub(crate) free: Positions,
}

/// The outcome for one entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// It is a result.
    pub(crate) hit: bool,
    /// Where the pattern goes on beneath; nowhere for what is no directory.
    pub(crate) beneath: Standing,
    /// The pattern would go on through it, but it is a symbolic link.
    pub(crate) link: bool,
    /// It, or something beneath, might have been a result but for this.
    pub(crate) lost: Option<Lost>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// An ignore file excludes it.
    Ignored,
    /// Its name begins with a dot.
    Hidden,
}

impl Standing {
    pub(crate) fn is_empty(self) -> bool {
        self.ruled.is_empty() && self.free.is_empty()
    }
}

impl<'a> Judge<'a> {
    /// Where matching starts. `free` says that the start itself lies beneath something ignored, and was named.
    pub(crate) fn start(&self, free: bool) -> Standing {
        let (start, nowhere) = (self.pattern.start(), Positions::default());
        match free || self.ignored {
            true => Standing { ruled: nowhere, free: start },
            false => Standing { ruled: start, free: nowhere },
        }
    }

    /// Judges the entry `name` of a directory. `rules` is only asked where it matters.
    pub(crate) fn judge(
        &self,
        standing: Standing,
        name: &[u8],
        kind: FileKind,
        rules: impl FnOnce() -> Verdict,
    ) -> Outcome {
        let ruled = self.pattern.stride(standing.ruled, name).useful_for(kind);
        let free = self.pattern.stride(standing.free, name).useful_for(kind);
        if ruled.is_nothing() && free.is_nothing() {
            return Outcome::default();
        }
        let dotted = name.first() == Some(&b'.') && !self.hidden;
        // The inside of a repository is of use to nobody who did not name it.
        let git = name == b".git" && !self.ignored;
        let verdict = match git {
            true => Verdict::Excluded,
            false if ruled.wild.is_nothing() && kind != FileKind::Directory => Verdict::Silent,
            false => rules(),
        };
        let (mut kept, mut freed, mut lost) = (ruled.explicit, free.explicit, None);
        if !ruled.wild.is_nothing() {
            match verdict {
                Verdict::Excluded => lost = Some(Lost::Ignored),
                Verdict::Silent if dotted => lost = Some(Lost::Hidden),
                Verdict::Silent | Verdict::Wanted => kept = kept.union(ruled.wild),
            }
        }
        match dotted || git {
            true if !free.wild.is_nothing() => lost = lost.or(Some(Lost::Hidden)),
            true => {}
            false => freed = freed.union(free.wild),
        }
        if verdict == Verdict::Excluded {
            // It was named all the same, so what is beneath is wanted too.
            freed = freed.union(std::mem::take(&mut kept));
        }
        let beneath = Standing { ruled: kept.beneath, free: freed.beneath };
        Outcome {
            hit: kept.union(freed).hit.is_some(),
            beneath: if kind == FileKind::Directory { beneath } else { Standing::default() },
            link: kind == FileKind::Symlink && !beneath.is_empty(),
            lost: lost.filter(|_| !git),
        }
    }
}

impl Strides {
    fn is_nothing(&self) -> bool {
        self.wild.is_nothing() && self.explicit.is_nothing()
    }

    /// Without what only a directory could be.
    fn useful_for(self, kind: FileKind) -> Self {
        let useful = |stride: Stride| match kind {
            FileKind::Directory => stride,
            _ => Stride {
                hit: stride.hit.filter(|only| *only == Only::Anything),
                beneath: if kind == FileKind::Symlink { stride.beneath } else { Positions::default() },
            },
        };
        Self { wild: useful(self.wild), explicit: useful(self.explicit) }
    }
}
