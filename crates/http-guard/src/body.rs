//! What comes after the head: piece by piece, within limits, and kept as far as it came.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::client::Limits;
use crate::decode::{self, Bounds, Encoding, Finish, Piece};
use crate::exchange::Connection;

/// How a body ended. Whatever came before is good to use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyEnd {
    /// It is whole.
    Complete,
    /// It is longer than the limit, which was reached.
    Capped,
    /// Little data became far too much: it was meant to do harm.
    Swollen,
    /// The connection broke, or what came was not HTTP.
    BrokenOff(String),
    /// It could not be decoded from here on.
    Damaged(String),
    /// A time limit ran out.
    TimedOut,
}

/// The body of a response.
///
/// ```no_run
/// # async fn demo(mut response: http_guard::Response) {
/// while let Some(piece) = response.body.next().await {
///     println!("{} bytes", piece.len());
/// }
/// println!("{:?}", response.body.end());
/// # }
/// ```
#[derive(Debug)]
pub struct Body {
    source: Source,
    left: u64,
    end: Option<BodyEnd>,
    notes: Vec<String>,
}

/// A body that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// The bytes, decoded.
    pub bytes: Vec<u8>,
    /// How it ended.
    pub end: BodyEnd,
    /// What was odd about it, in sentences.
    pub notes: Vec<String>,
}

#[derive(Debug)]
enum Source {
    Empty,
    Plain(Raw),
    Decoding(Decoding),
}

impl Body {
    /// A body that there is none of: the answer to HEAD, 204, 304.
    pub(crate) fn empty() -> Self {
        Self { source: Source::Empty, left: 0, end: None, notes: Vec::new() }
    }

    pub(crate) fn new(
        incoming: Incoming,
        connection: Connection,
        headers: &HeaderMap,
        limits: &Limits,
        deadline: Instant,
    ) -> Self {
        let raw =
            Raw { incoming, _connection: connection, idle: limits.idle, deadline, left: limits.max_wire };
        let mut notes = Vec::new();
        let named = headers.get_all(CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        let encodings = decode::encodings(named).unwrap_or_else(|unknown| {
            notes.push(format!("the body's encoding ({unknown}) is not understood; it is left as it is"));
            Vec::new()
        });
        let source = if encodings.is_empty() {
            Source::Plain(raw)
        } else {
            Source::Decoding(Decoding::start(raw, encodings, limits))
        };
        Self { source, left: limits.max_body, end: None, notes }
    }

    /// The next piece; `None` at the end, which [`Self::end`] then tells about.
    pub async fn next(&mut self) -> Option<Bytes> {
        if self.end.is_some() {
            return None;
        }
        let next = match &mut self.source {
            Source::Empty => Err(BodyEnd::Complete),
            Source::Plain(raw) => raw.next().await,
            Source::Decoding(decoding) => decoding.next(&mut self.notes).await,
        };
        match next {
            Err(end) => {
                self.finish(end);
                None
            }
            Ok(piece) if piece.len() as u64 > self.left => {
                // Here it fits: it is less than the piece.
                let kept = piece.slice(..usize::try_from(self.left).unwrap_or(0));
                self.finish(BodyEnd::Capped);
                (!kept.is_empty()).then_some(kept)
            }
            Ok(piece) => {
                self.left -= piece.len() as u64;
                Some(piece)
            }
        }
    }

    /// The connection is closed with the end.
    fn finish(&mut self, end: BodyEnd) {
        self.source = Source::Empty;
        self.end = Some(end);
    }

    /// How it ended, once it has.
    pub fn end(&self) -> Option<&BodyEnd> {
        self.end.as_ref()
    }

    /// What has been odd about it until now, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Reads it to its end. What came is kept whatever happens.
    pub async fn collect(mut self) -> Collected {
        let mut bytes = Vec::new();
        while let Some(piece) = self.next().await {
            bytes.extend_from_slice(&piece);
        }
        Collected { bytes, end: self.end.unwrap_or(BodyEnd::Complete), notes: self.notes }
    }
}

/// The body as it comes over the wire.
#[derive(Debug)]
struct Raw {
    incoming: Incoming,
    /// Ends with the body.
    _connection: Connection,
    idle: Duration,
    deadline: Instant,
    left: u64,
}

impl Raw {
    /// The next bytes. Dropped before it is ready, it has taken nothing.
    async fn next(&mut self) -> Result<Bytes, BodyEnd> {
        loop {
            let until = self.deadline.min(Instant::now() + self.idle);
            let frame = tokio::time::timeout_at(until, self.incoming.frame()).await;
            let data = match frame.map_err(|_| BodyEnd::TimedOut)? {
                None => return Err(BodyEnd::Complete),
                Some(Err(error)) => return Err(BodyEnd::BrokenOff(crate::exchange::reason(&error))),
                Some(Ok(frame)) => frame.into_data(),
            };
            // Trailers say nothing that is needed.
            let Ok(data) = data else { continue };
            if data.is_empty() {
                continue;
            }
            if self.left == 0 {
                return Err(BodyEnd::Capped);
            }
            let kept = data.slice(..data.len().min(usize::try_from(self.left).unwrap_or(usize::MAX)));
            self.left -= kept.len() as u64;
            return Ok(kept);
        }
    }
}

/// A body between the wire and the thread that decodes it.
#[derive(Debug)]
struct Decoding {
    raw: Raw,
    /// Where the thread gets its bytes from; gone with their end.
    feed: Option<mpsc::Sender<Bytes>>,
    pieces: mpsc::Receiver<Piece>,
    raw_end: Option<BodyEnd>,
}

impl Decoding {
    fn start(raw: Raw, encodings: Vec<Encoding>, limits: &Limits) -> Self {
        let (feed, from_wire) = mpsc::channel(2);
        let (to, pieces) = mpsc::channel(2);
        let bounds =
            Bounds { between: limits.max_body.saturating_add(limits.max_wire), ratio: limits.max_ratio };
        tokio::task::spawn_blocking(move || decode::run(&encodings, from_wire, &to, bounds));
        Self { raw, feed: Some(feed), pieces, raw_end: None }
    }

    async fn next(&mut self, notes: &mut Vec<String>) -> Result<Bytes, BodyEnd> {
        let deadline = self.raw.deadline;
        loop {
            tokio::select! {
                biased;
                piece = self.pieces.recv() => match piece {
                    Some(Piece::Data(bytes)) => return Ok(bytes),
                    Some(Piece::Unencoded(encoding)) => notes.push(format!(
                        "the server says that the body is encoded with {}, but it is not; it is left as it is",
                        encoding.name()
                    )),
                    Some(Piece::End(finish)) => return Err(self.end(finish)),
                    None => return Err(BodyEnd::Damaged("the decoder failed".to_owned())),
                },
                () = feed(&mut self.raw, &mut self.feed, &mut self.raw_end), if self.feed.is_some() => {}
                () = tokio::time::sleep_until(deadline) => return Err(BodyEnd::TimedOut),
            }
        }
    }

    fn end(&mut self, finish: Finish) -> BodyEnd {
        match (finish, self.raw_end.take()) {
            (Finish::Swollen, _) => BodyEnd::Swollen,
            (Finish::Clean, end) => end.unwrap_or(BodyEnd::Complete),
            // The damage is the cut.
            (Finish::Damaged(_), Some(cut)) if cut != BodyEnd::Complete => cut,
            (Finish::Damaged(reason), _) => BodyEnd::Damaged(reason),
        }
    }
}

/// Hands one chunk of the wire to the decoding thread. Dropped before it is ready, it has lost nothing.
async fn feed(raw: &mut Raw, feed: &mut Option<mpsc::Sender<Bytes>>, raw_end: &mut Option<BodyEnd>) {
    let Some(sender) = feed.as_ref() else { return };
    let sent = match sender.reserve().await {
        // The thread has ended; it says why.
        Err(_) => false,
        Ok(permit) => match raw.next().await {
            Ok(bytes) => {
                permit.send(bytes);
                true
            }
            Err(end) => {
                *raw_end = Some(end);
                false
            }
        },
    };
    if !sent {
        *feed = None;
    }
}
