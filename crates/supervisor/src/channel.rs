//! Messages between a host and a guard: packets on a socket pair, with open files beside them.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// No message is longer. Job descriptions are, so they travel as files.
pub(crate) const LONGEST: usize = 64 * 1024;
/// Most open files with one message.
const MOST_FILES: usize = 8;

/// What came over a channel.
pub(crate) struct Received<T> {
    pub(crate) message: T,
    pub(crate) files: Vec<OwnedFd>,
}

/// Sends one message. Fails instead of raising SIGPIPE when the other side is gone.
pub(crate) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    files: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let bytes = serde_json::to_vec(message).map_err(|_| Errno::INVAL)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(Errno::INVAL);
    }
    rustix::io::retry_on_intr(|| {
        sendmsg(&socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)
    })?;
    Ok(())
}

/// Receives one message; `None` when the other side is gone. `buffer` is room for [`LONGEST`] bytes.
pub(crate) fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
    buffer: &mut [u8],
) -> Result<Option<Received<T>>, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let length = rustix::io::retry_on_intr(|| {
        recvmsg(&socket, &mut [IoSliceMut::new(buffer)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    });
    let length = match length {
        Ok(message) => message.bytes,
        // The other side died with something unread.
        Err(Errno::CONNRESET) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            files.extend(received);
        }
    }
    if length == 0 {
        return Ok(None);
    }
    let message = serde_json::from_slice(&buffer[..length]).map_err(|_| Errno::BADMSG)?;
    Ok(Some(Received { message, files }))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    #[test]
    fn a_message_arrives_with_its_files_and_an_end_is_told_from_it() {
        let (here, there) = pair();
        let (reader, writer) = std::io::pipe().unwrap();
        send(&here, &"text", &[writer.as_fd()]).unwrap();
        drop((here, writer));
        let mut buffer = vec![0; LONGEST];
        let received: Received<String> = receive(&there, &mut buffer).unwrap().unwrap();
        assert_eq!(received.message, "text");
        let mut file = std::fs::File::from(received.files.into_iter().next().unwrap());
        file.write_all(b"through").unwrap();
        drop(file);
        let mut text = String::new();
        { reader }.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        assert!(receive::<String>(&there, &mut buffer).unwrap().is_none());
    }
}
