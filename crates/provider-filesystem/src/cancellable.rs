//! Reading that stops between two chunks once its call has been given up.

use std::io::{self, Read, Seek, SeekFrom};

use provider_core::jail::JailPath;
use provider_core::{Cx, Stream, ToolError};

use crate::engine::patience;

/// Does blocking work that ends early once its call has been given up, wherever it is.
pub(crate) async fn patient<T: Send + 'static, S: Stream>(
    cx: &Cx<S>,
    work: impl FnOnce(&Cx<S>) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let context = cx.clone();
    cx.blocking(move || {
        let asked = context.clone();
        let outcome = patience::unless(move || asked.check_cancelled().is_err(), || work(&context));
        outcome.unwrap_or_else(|_| Err(ToolError::cancelled()))
    })
    .await
}

/// A reader that fails once the call it works for has been given up.
pub(crate) struct Cancellable<'a, R, S: Stream> {
    inner: R,
    cx: &'a Cx<S>,
}

impl<'a, R, S: Stream> Cancellable<'a, R, S> {
    pub(crate) fn new(inner: R, cx: &'a Cx<S>) -> Self {
        Self { inner, cx }
    }

    /// What a failed read means to the caller: that it gave up, or what the operating system said.
    pub(crate) fn error(cx: &Cx<S>, path: &JailPath, error: &io::Error) -> ToolError {
        let unreadable = || ToolError::execution_failed(format!("{path} cannot be read: {error}"));
        cx.check_cancelled().err().unwrap_or_else(unreadable)
    }
}

impl<R: Read, S: Stream> Read for Cancellable<'_, R, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.cx.check_cancelled().map_err(io::Error::other)?;
        self.inner.read(buffer)
    }
}

impl<R: Seek, S: Stream> Seek for Cancellable<'_, R, S> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}
