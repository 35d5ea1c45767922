//! A process that has the engine ready and makes copies of itself.
//!
//! Starting a program costs more than a call: the system maps it, links it and touches its pages. A copy of a process
//! that has done so starts in a fraction of that time. It is as fresh: the process that is copied never sees a module
//! nor an input, only sockets to hand on. Every copy is a child of the process that keeps the workers (`CLONE_PARENT`),
//! dies with it and is waited for by it, as if it had been started in full.

use std::io::{self, IoSlice, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::Pid;
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};

use crate::native;

/// How long the process that keeps the workers waits for the id of a copy. Then it does without this nursery.
const PATIENCE: Duration = Duration::from_millis(1_000);

/// Makes copies until nobody asks for one any more, and says `false` then. In each copy it says `true`; the copy's
/// standard input and output are the socket that was sent for it.
pub(super) fn is_copy_with_socket() -> io::Result<bool> {
    rustix::process::setpgid(None, None)?;
    while let Some(socket) = received()? {
        let Some(id) = native::copy_for_parent()? else {
            dup2_stdin(&socket)?;
            dup2_stdout(&socket)?;
            drop(socket);
            // A name of its own in lists of processes.
            rustix::thread::set_name(c"toolshelf-call")?;
            return Ok(true);
        };
        rustix::io::write(stdout(), &id.to_le_bytes())?;
    }
    Ok(false)
}

fn received() -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut sent = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let message = recvmsg(stdin(), &mut [IoSliceMut::new(&mut byte)], &mut sent, RecvFlags::CMSG_CLOEXEC)?;
    if message.bytes == 0 {
        return Ok(None);
    }
    let mut sockets = sent.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
        _ => None,
    });
    let socket = sockets.next().and_then(|mut sockets| sockets.next());
    socket.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Asks the nursery at the other end of `nursery` for a copy that has `socket`. Gives its id.
///
/// # Errors
/// When the nursery is gone, or does not answer soon.
pub(super) fn ask(mut nursery: &UnixStream, socket: &OwnedFd) -> io::Result<Pid> {
    nursery.set_read_timeout(Some(PATIENCE))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let sockets = [socket.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&sockets));
    // A nursery that is gone must not end this process with a signal.
    sendmsg(nursery, &[IoSlice::new(&[1])], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    let mut id = [0; 4];
    nursery.read_exact(&mut id)?;
    Pid::from_raw(i32::from_le_bytes(id)).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
