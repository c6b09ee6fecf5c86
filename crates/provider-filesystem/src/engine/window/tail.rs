//! Where the last lines of a file begin, found from its end.

use std::io::{self, Read, Seek, SeekFrom};

use memchr::memrchr_iter;

const BLOCK: u64 = 64 * 1024;

/// The position of the line that is the `count`-th from the end; 0 when there are fewer. `count` is at least 1.
pub(super) fn start_of_last_lines<R: Read + Seek>(source: &mut R, len: u64, count: u64) -> io::Result<u64> {
    let mut block = Vec::new();
    let mut end = len;
    let mut seen = 0;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        source.seek(SeekFrom::Start(start))?;
        block.clear();
        source.by_ref().take(end - start).read_to_end(&mut block)?;
        for newline in memrchr_iter(b'\n', &block) {
            let after = start + newline as u64 + 1;
            // A newline at the very end begins no line.
            if after < len {
                seen += 1;
                if seen == count {
                    return Ok(after);
                }
            }
        }
        end = start;
    }
    Ok(0)
}
