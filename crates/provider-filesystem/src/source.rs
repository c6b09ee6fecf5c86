//! A file that is being read.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use provider_core::jail::{JailPath, OpenFile};
use provider_core::prelude::{Cx, Silent, ToolError};

use crate::cancellable::Cancellable;
use crate::engine::window::{Reading, Request, read_window};
use crate::memory::LARGEST_CONTENT;

/// An open file, with its content where it is small.
pub(crate) struct Source {
    file: File,
    pub(crate) size: u64,
    modified: SystemTime,
    /// Where the file really is.
    pub(crate) real_path: PathBuf,
    pub(crate) content: Option<Arc<[u8]>>,
}

impl Source {
    pub(crate) fn of(open: OpenFile, cx: &Cx<Silent>) -> io::Result<Self> {
        let (size, modified) = (open.metadata().size, open.metadata().modified);
        let real_path = open.resolved().absolute();
        let mut source = Self { file: open.into_file(), size, modified, real_path, content: None };
        if size <= LARGEST_CONTENT as u64 {
            source.content = Some(source.head(size, cx)?.into());
        }
        Ok(source)
    }

    /// The first `bytes` of the file.
    pub(crate) fn head(&mut self, bytes: u64, cx: &Cx<Silent>) -> io::Result<Vec<u8>> {
        // One byte more, so that the end is found without growing.
        let mut head = Vec::with_capacity(usize::try_from(bytes.min(self.size)).unwrap_or(0) + 1);
        self.file.seek(SeekFrom::Start(0))?;
        Cancellable::new(&mut self.file, cx).take(bytes).read_to_end(&mut head)?;
        Ok(head)
    }

    pub(crate) fn window(&mut self, request: &Request, cx: &Cx<Silent>) -> io::Result<Reading> {
        match &self.content {
            Some(content) => read_window(&mut Cursor::new(&**content), content.len() as u64, request),
            None => read_window(&mut Cancellable::new(&mut self.file, cx), self.size, request),
        }
    }

    /// Whether the file is no longer what it was when it was opened.
    pub(crate) fn changed(&self) -> bool {
        let grown = |size: u64| size != self.size;
        self.file
            .metadata()
            .is_ok_and(|now| grown(now.len()) || now.modified().is_ok_and(|time| time != self.modified))
    }
}

/// What a failed read means to the caller.
pub(crate) fn unreadable(cx: &Cx<Silent>, path: &JailPath, error: &io::Error) -> ToolError {
    Cancellable::<File, Silent>::error(cx, path, error)
}
