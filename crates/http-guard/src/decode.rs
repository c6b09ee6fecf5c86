//! Content encodings: nested ones too, none of them trusted. Everything here blocks and runs on a thread of its own.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use bytes::Bytes;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use tokio::sync::mpsc;

/// How much is handed on at once.
const PIECE: usize = 32 * 1024;
/// The largest window that zstd may need, which is what HTTP allows (RFC 9659).
const LARGEST_WINDOW: u64 = 8 * 1024 * 1024;
/// The most encodings of one body.
const DEEPEST: usize = 4;
/// Below this size no ratio is suspicious.
const RATIO_MATTERS_FROM: u64 = 1024 * 1024;
/// As many bytes of text in the place of compressed data are no accident.
const SURELY_TEXT: usize = 24;

/// A content encoding that is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Encoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Whether data that begins like this can be of this encoding.
    fn fits(self, start: &[u8]) -> bool {
        match self {
            Self::Gzip => start.starts_with(&[0x1f, 0x8b]),
            Self::Zstd => is_zstd(start),
            // These have no mark; compressed data is never text for long.
            Self::Deflate | Self::Brotli => !(start.len() >= SURELY_TEXT && is_text(start)),
        }
    }
}

fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
        || (start.len() >= 4 && start[0] & 0xf0 == 0x50 && start[1..4] == [0x2a, 0x4d, 0x18])
}

fn is_text(start: &[u8]) -> bool {
    let valid = match std::str::from_utf8(start) {
        Ok(_) => start.len(),
        // The last character may be cut.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return false,
    };
    start[..valid].iter().all(|byte| *byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r'))
}

/// The encodings of a body, in the order in which they were applied.
///
/// # Errors
/// The name of one that is not understood, or a sentence about too many.
pub(crate) fn encodings<'a>(header: impl Iterator<Item = &'a str>) -> Result<Vec<Encoding>, String> {
    let mut encodings = Vec::new();
    for name in header.flat_map(|value| value.split(',')).map(str::trim) {
        match name.to_ascii_lowercase().as_str() {
            "" | "identity" => {}
            "gzip" | "x-gzip" => encodings.push(Encoding::Gzip),
            "deflate" => encodings.push(Encoding::Deflate),
            "br" => encodings.push(Encoding::Brotli),
            "zstd" => encodings.push(Encoding::Zstd),
            other => return Err(other.chars().take(40).collect()),
        }
    }
    if encodings.len() > DEEPEST {
        Err(format!("{} encodings at once", encodings.len()))
    } else {
        Ok(encodings)
    }
}

/// What the decoding thread hands on.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Decoded bytes.
    Data(Bytes),
    /// The body is not of this encoding and was left as it is.
    Unencoded(Encoding),
    /// There is no more, and why.
    End(Finish),
}

/// How decoding ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// With the data.
    Clean,
    /// Data that cannot be decoded.
    Damaged(String),
    /// Little data that becomes far too much.
    Swollen,
}

/// What is decoded at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Of what lies between two encodings, in bytes.
    pub(crate) between: u64,
    /// How many times larger data may become.
    pub(crate) ratio: u64,
}

/// Decodes what comes from `raw` until it ends, is damaged, is too much, or nobody wants more.
pub(crate) fn run(
    encodings: &[Encoding],
    raw: mpsc::Receiver<Bytes>,
    to: &mpsc::Sender<Piece>,
    bounds: Bounds,
) {
    let taken = Rc::new(Cell::new(0));
    let mut reader: Box<dyn Read> = Box::new(Raw { raw, rest: Bytes::new(), taken: taken.clone() });
    for (index, encoding) in encodings.iter().rev().enumerate() {
        if index > 0 {
            reader = Box::new(Bounded { inner: reader, left: bounds.between });
        }
        reader = Box::new(Layer { encoding: *encoding, state: State::Unopened(reader), to: to.clone() });
    }
    let finish = pump(&mut *reader, &taken, to, bounds.ratio);
    // Nobody may be there any more.
    let _ = to.blocking_send(Piece::End(finish));
}

fn pump(reader: &mut dyn Read, taken: &Cell<u64>, to: &mpsc::Sender<Piece>, ratio: u64) -> Finish {
    let (mut piece, mut total) = (vec![0; PIECE], 0_u64);
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Finish::Clean,
            Ok(count) => {
                total += count as u64;
                if to.blocking_send(Piece::Data(Bytes::copy_from_slice(&piece[..count]))).is_err() {
                    return Finish::Clean;
                }
                if total > RATIO_MATTERS_FROM && total / ratio.max(1) > taken.get() {
                    return Finish::Swollen;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Finish::Swollen,
            Err(error) => return Finish::Damaged(error.to_string()),
        }
    }
}

/// The body as it comes over the wire.
struct Raw {
    raw: mpsc::Receiver<Bytes>,
    rest: Bytes,
    taken: Rc<Cell<u64>>,
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.raw.blocking_recv() {
                Some(bytes) => self.rest = bytes,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.rest.len());
        buffer[..count].copy_from_slice(&self.rest.split_to(count));
        self.taken.set(self.taken.get() + count as u64);
        Ok(count)
    }
}

/// What one encoding hands to the next, within a limit: a bomb inside a bomb costs time even if nothing comes out.
struct Bounded {
    inner: Box<dyn Read>,
    left: u64,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(count)
    }
}

/// One encoding, opened when its first bytes are there.
struct Layer {
    encoding: Encoding,
    state: State,
    to: mpsc::Sender<Piece>,
}

enum State {
    Unopened(Box<dyn Read>),
    Open(Box<dyn Read>),
    Ended,
}

impl Read for Layer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let State::Unopened(_) = self.state
            && let State::Unopened(inner) = std::mem::replace(&mut self.state, State::Ended)
        {
            self.state = State::Open(self.open(inner)?);
        }
        match &mut self.state {
            State::Open(reader) => reader.read(buffer),
            State::Unopened(_) | State::Ended => Ok(0),
        }
    }
}

impl Layer {
    fn open(&self, mut inner: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
        let mut start = [0; SURELY_TEXT * 2];
        let length = fill(&mut *inner, &mut start)?;
        let start = &start[..length];
        let whole = io::Cursor::new(start.to_vec()).chain(inner);
        if start.is_empty() {
            return Ok(Box::new(whole));
        }
        if !self.encoding.fits(start) {
            let _ = self.to.blocking_send(Piece::Unencoded(self.encoding));
            return Ok(Box::new(whole));
        }
        let whole = BufReader::with_capacity(PIECE, whole);
        Ok(match self.encoding {
            Encoding::Gzip => Box::new(Members::Between(whole)),
            Encoding::Deflate if is_zlib(start) => Box::new(flate2::bufread::ZlibDecoder::new(whole)),
            // What some servers understand by deflate.
            Encoding::Deflate => Box::new(flate2::bufread::DeflateDecoder::new(whole)),
            // The head of a "large window", which HTTP does not have and the decoder would allocate.
            Encoding::Brotli if start[0] & 0x7f == 0x11 => {
                return Err(io::Error::other("it needs more memory than is given to brotli"));
            }
            Encoding::Brotli => Box::new(brotli_decompressor::Decompressor::new(whole, PIECE)),
            Encoding::Zstd => Box::new(Frames::Between(whole)),
        })
    }
}

/// Reads until the buffer is full or there is no more.
fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

fn is_zlib(start: &[u8]) -> bool {
    match start {
        [method, flags, ..] => {
            method & 0x0f == 8 && method >> 4 <= 7 && u16::from_be_bytes([*method, *flags]) % 31 == 0
        }
        _ => false,
    }
}

/// The members of a gzip file, one after another. What follows the last one and is none is left out, as browsers do.
enum Members<R: BufRead> {
    Between(R),
    Inside(flate2::bufread::GzDecoder<R>),
    Ended,
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Self::Ended) {
                Self::Ended => return Ok(0),
                Self::Between(mut inner) => {
                    let start = inner.fill_buf()?;
                    if start.first() == Some(&0x1f) {
                        *self = Self::Inside(flate2::bufread::GzDecoder::new(inner));
                    }
                }
                Self::Inside(mut member) => match member.read(buffer)? {
                    0 => *self = Self::Between(member.into_inner()),
                    count => {
                        *self = Self::Inside(member);
                        return Ok(count);
                    }
                },
            }
        }
    }
}

/// The frames of zstd data, one after another, each with a window within bounds. The decoder would allocate whatever a
/// frame asks for.
enum Frames<R: BufRead> {
    Between(R),
    Inside(Box<Frame<R>>),
    Ended,
}

type Frame<R> = StreamingDecoder<Blocks<R>, FrameDecoder>;

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Self::Ended) {
                Self::Ended => return Ok(0),
                Self::Between(inner) => *self = next_frame(inner)?,
                Self::Inside(mut frame) => match frame.read(buffer)? {
                    0 => *self = Self::Between(frame.into_inner().end()?),
                    count => {
                        *self = Self::Inside(frame);
                        return Ok(count);
                    }
                },
            }
        }
    }
}

fn next_frame<R: BufRead>(mut inner: R) -> io::Result<Frames<R>> {
    let mut magic = [0; 4];
    let length = fill(&mut inner, &mut magic)?;
    if !is_zstd(&magic[..length]) {
        return Ok(Frames::Ended);
    }
    if magic[0] & 0xf0 == 0x50 {
        return skipped(inner).map(Frames::Between);
    }
    let mut head = magic.to_vec();
    if window(&mut inner, &mut head)? > LARGEST_WINDOW {
        return Err(io::Error::other("it needs more memory than is given to zstd"));
    }
    let is_checked = head[4] & 4 != 0;
    let blocks = Blocks { inner, pending: io::Cursor::new(head), is_checked, is_last: false, is_cut: false };
    let frame = StreamingDecoder::new(blocks).map_err(io::Error::other)?;
    Ok(Frames::Inside(Box::new(frame)))
}

/// Reads the head of a frame, adding it to `head`, for the window that the frame needs (RFC 8878, 3.1.1.1).
fn window(inner: &mut impl Read, head: &mut Vec<u8>) -> io::Result<u64> {
    let mut more = |count: usize| {
        let start = head.len();
        head.resize(start + count, 0);
        inner.read_exact(&mut head[start..])?;
        Ok::<_, io::Error>(head[start..].to_vec())
    };
    let descriptor = more(1)?[0];
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment {
        let window = more(1)?[0];
        let base = 1_u64 << (10 + (window >> 3));
        return Ok(base + base / 8 * u64::from(window & 7));
    }
    more([0, 1, 2, 4][usize::from(descriptor & 3)])?;
    let size = more([1, 2, 4, 8][usize::from(descriptor >> 6)])?;
    let little_endian = size.iter().rev().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
    Ok(little_endian + if size.len() == 2 { 256 } else { 0 })
}

/// The blocks of one frame, each whole. The decoder keeps a window's worth of data to itself until the frame ends, so a
/// frame that is cut off is given an end: what came before it is not lost.
struct Blocks<R> {
    inner: R,
    pending: io::Cursor<Vec<u8>>,
    is_checked: bool,
    is_last: bool,
    is_cut: bool,
}

/// The largest block (RFC 8878, 3.1.1.2.4).
const LARGEST_BLOCK: u32 = 128 * 1024;
/// The last block, of nothing, and a checksum that the decoder does not compare.
const END: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl<R: BufRead> Read for Blocks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.pending.read(buffer)? {
                0 if self.is_last => return Ok(0),
                0 => self.pending = io::Cursor::new(self.next_block()?),
                count => return Ok(count),
            }
        }
    }
}

impl<R: BufRead> Blocks<R> {
    fn next_block(&mut self) -> io::Result<Vec<u8>> {
        match self.whole_block() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                (self.is_cut, self.is_last) = (true, true);
                Ok(END[..if self.is_checked { 7 } else { 3 }].to_vec())
            }
            block => block,
        }
    }

    fn whole_block(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 3];
        self.inner.read_exact(&mut head)?;
        let head_number = u32::from_le_bytes([head[0], head[1], head[2], 0]);
        let (is_last, is_repeat, size) = (head_number & 1 == 1, head_number >> 1 & 3 == 1, head_number >> 3);
        if size > LARGEST_BLOCK {
            return Err(io::Error::other("a block is larger than blocks are"));
        }
        let checksum = if is_last && self.is_checked { 4 } else { 0 };
        let length = if is_repeat { 1 } else { size as usize };
        let mut block = head.to_vec();
        block.resize(3 + length + checksum, 0);
        self.inner.read_exact(&mut block[3..])?;
        self.is_last = is_last;
        Ok(block)
    }

    /// What follows the frame.
    fn end(self) -> io::Result<R> {
        if self.is_cut {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is cut off"))
        } else {
            Ok(self.inner)
        }
    }
}

fn skipped<R: BufRead>(mut inner: R) -> io::Result<R> {
    let mut size = [0; 4];
    inner.read_exact(&mut size)?;
    io::copy(&mut inner.by_ref().take(u32::from_le_bytes(size).into()), &mut io::sink())?;
    Ok(inner)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &str = "Nothing here is compressed, and it is long enough to be sure of that. ";
    const BOUNDS: Bounds = Bounds { between: 1 << 20, ratio: 100 };

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(data: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(data, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn brotli(data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        brotli::CompressorWriter::new(&mut out, 4096, 1, 22).write_all(data).unwrap();
        out
    }

    /// What a body becomes when it comes in chunks of `chunk` bytes, which encodings it did not have, and how it ended.
    fn decoded(encodings: &[Encoding], body: &[u8], chunk: usize) -> (Vec<u8>, Vec<Encoding>, Finish) {
        let (to_thread, raw) = mpsc::channel(2);
        let (to, mut pieces) = mpsc::channel(2);
        let chunks: Vec<Bytes> = body.chunks(chunk).map(Bytes::copy_from_slice).collect();
        let owned = encodings.to_vec();
        std::thread::scope(|scope| {
            scope.spawn(move || chunks.into_iter().try_for_each(|chunk| to_thread.blocking_send(chunk)));
            scope.spawn(move || run(&owned, raw, &to, BOUNDS));
            let (mut data, mut unencoded) = (Vec::new(), Vec::new());
            while let Some(piece) = pieces.blocking_recv() {
                match piece {
                    Piece::Data(bytes) => data.extend(bytes),
                    Piece::Unencoded(encoding) => unencoded.push(encoding),
                    Piece::End(finish) => return (data, unencoded, finish),
                }
            }
            panic!("decoding has no end");
        })
    }

    #[test]
    fn every_encoding_is_undone_however_it_is_cut() {
        let text = TEXT.repeat(500);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(text.as_bytes()).unwrap();
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        deflate.write_all(text.as_bytes()).unwrap();
        let halves = text.as_bytes().split_at(1000);
        let cases = [
            (vec![Encoding::Gzip], gzip(text.as_bytes())),
            (vec![Encoding::Gzip], [gzip(halves.0), gzip(halves.1)].concat()),
            (vec![Encoding::Gzip], [gzip(text.as_bytes()), b"padding".to_vec()].concat()),
            (vec![Encoding::Deflate], zlib.finish().unwrap()),
            (vec![Encoding::Deflate], deflate.finish().unwrap()),
            (vec![Encoding::Brotli], brotli(text.as_bytes())),
            (vec![Encoding::Zstd], zstd(text.as_bytes())),
            (
                vec![Encoding::Zstd],
                [zstd(halves.0), vec![0x52, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9], zstd(halves.1)].concat(),
            ),
            (vec![Encoding::Gzip, Encoding::Gzip], gzip(&gzip(text.as_bytes()))),
            (vec![Encoding::Gzip, Encoding::Brotli], brotli(&gzip(text.as_bytes()))),
        ];
        for (encodings, body) in cases {
            for chunk in [1, 7, 100_000] {
                let (data, unencoded, finish) = decoded(&encodings, &body, chunk);
                assert!(data == text.as_bytes(), "{encodings:?} in {chunk}: {} bytes", data.len());
                assert_eq!((unencoded, finish), (vec![], Finish::Clean), "{encodings:?}");
            }
        }
    }

    #[test]
    fn a_body_that_is_not_encoded_is_left_as_it_is() {
        for encoding in [Encoding::Gzip, Encoding::Deflate, Encoding::Brotli, Encoding::Zstd] {
            let (data, unencoded, finish) = decoded(&[encoding], TEXT.as_bytes(), 10);
            assert_eq!(String::from_utf8(data).unwrap(), TEXT);
            assert_eq!((unencoded, finish), (vec![encoding], Finish::Clean));
        }
        let (data, unencoded, _) = decoded(&[Encoding::Gzip, Encoding::Gzip], &gzip(TEXT.as_bytes()), 10);
        assert_eq!((data.as_slice(), unencoded), (TEXT.as_bytes(), vec![Encoding::Gzip]));
        assert_eq!(decoded(&[Encoding::Gzip], b"", 1), (vec![], vec![], Finish::Clean));
    }

    #[test]
    fn what_came_before_the_damage_is_kept() {
        // Data that does not compress, so that half of the body is half of the text.
        let text: Vec<u8> =
            (0..80_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
        for (encoding, body) in
            [(Encoding::Gzip, gzip(&text)), (Encoding::Brotli, brotli(&text)), (Encoding::Zstd, zstd(&text))]
        {
            let (data, _, finish) = decoded(&[encoding], &body[..body.len() / 2], 1_000);
            assert!(data.len() > text.len() / 4 && text.starts_with(&data), "{encoding:?}: {}", data.len());
            assert!(matches!(finish, Finish::Damaged(_)), "{encoding:?}: {finish:?}");
        }
    }

    #[test]
    fn a_brotli_window_beyond_what_http_has_is_refused() {
        let (data, _, finish) = decoded(&[Encoding::Brotli], b"\x11\x1e\x03\xff\x00\xff\x00\xff", 10);
        assert!(data.is_empty() && matches!(finish, Finish::Damaged(_)), "{finish:?}");
    }

    #[test]
    fn bombs_are_put_out() {
        let zeros = gzip(&vec![0; 1 << 20]).repeat(16);
        let (data, _, finish) = decoded(&[Encoding::Gzip], &zeros, 10_000);
        assert_eq!(finish, Finish::Swollen);
        assert!(data.len() < 8 << 20, "{}", data.len());
        let (data, _, finish) = decoded(&[Encoding::Gzip, Encoding::Gzip], &gzip(&zeros), 10_000);
        assert_eq!(finish, Finish::Swollen);
        assert!(data.len() < 8 << 20, "{}", data.len());
        // Two megabytes between the encodings, of which nothing comes out.
        let empty = gzip(b"").repeat(100_000);
        assert_eq!(decoded(&[Encoding::Gzip, Encoding::Gzip], &gzip(&empty), 10_000).2, Finish::Swollen);
    }

    #[test]
    fn a_frame_gets_no_window_beyond_bounds() {
        // 2^40 bytes, and a single segment of 9 MiB.
        for head in [vec![0x00, 0xf0], [vec![0xa0], (9_u32 << 20).to_le_bytes().to_vec()].concat()] {
            let body = [vec![0x28, 0xb5, 0x2f, 0xfd], head, vec![0; 64]].concat();
            let (data, _, finish) = decoded(&[Encoding::Zstd], &body, 100);
            assert!(
                data.is_empty() && matches!(&finish, Finish::Damaged(why) if why.contains("memory")),
                "{finish:?}"
            );
        }
    }

    #[test]
    fn headers_are_lists_of_names() {
        let read = |values: &[&'static str]| encodings(values.iter().copied());
        assert_eq!(read(&["GZIP, identity", "br"]), Ok(vec![Encoding::Gzip, Encoding::Brotli]));
        assert_eq!(read(&["compress"]), Err("compress".to_owned()));
        assert!(read(&["gzip,gzip,gzip,gzip,gzip"]).is_err());
        assert_eq!(read(&[]), Ok(vec![]));
    }
}
