//! A worker in the hands of one call.

use std::io;

use futures::channel::oneshot;
use rustix::process::WaitStatus;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use toolshelf_core::call::RunEnd;
use toolshelf_core::limits::WASM_CHILD_MAX_STDOUT_BYTES;

use super::COMPILED_MAX_BYTES;
use super::isolation::Isolation;
use super::keeper::{Process, Worker};
use super::wire::{GO, JobHeader, SAID_HEADER, Said};

/// A worker that works for one call. Dropping it ends the process.
#[derive(Debug)]
pub(super) struct Lease {
    /// Buffered on the way in: a greeting and a short answer are read at once.
    stream: BufReader<UnixStream>,
    process: Process,
    /// What the worker said of itself.
    pub(super) isolation: Option<Isolation>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// More was announced than a worker may hand back.
    #[error("the worker announced {0} bytes, above its stdout bound of {1}")]
    Flood(usize, usize),
    /// It ended, or closed its output, in the middle.
    #[error("{0}")]
    Ended(io::Error),
    /// It said something that no worker says.
    #[error("the worker's answer has no form that is known")]
    Unknown,
}

impl Lease {
    /// The worker that was ordered from the keeper.
    pub(super) async fn started(ordered: oneshot::Receiver<io::Result<Worker>>) -> io::Result<Self> {
        let started = ordered.await.map_err(|_| io::Error::other("nobody starts workers any more"));
        started.flatten().and_then(Self::new)
    }

    fn new(worker: Worker) -> io::Result<Self> {
        let (stream, process) = worker.into_parts();
        let stream = BufReader::new(UnixStream::from_std(stream)?);
        Ok(Self { stream, process, isolation: None })
    }

    /// Hands the job over. A worker that had ended before shows here; it has run nothing.
    pub(super) async fn give(
        &mut self,
        header: JobHeader,
        inputs: &[Vec<u8>],
        code: &[u8],
    ) -> io::Result<()> {
        // One system call for all that is small, and none of the larger part is copied.
        let mut front = header.write().to_vec();
        inputs.iter().for_each(|input| front.extend_from_slice(input));
        self.stream.write_all(&front).await?;
        self.stream.write_all(code).await
    }

    /// Says the word on which the worker runs.
    pub(super) async fn go(&mut self) -> io::Result<()> {
        self.stream.write_all(&[GO]).await
    }

    /// Waits for the answer.
    pub(super) async fn answer(&mut self) -> Result<Said, NoAnswer> {
        loop {
            match self.said().await? {
                Said::Hello(bits) => self.isolation = Some(Isolation { bits }),
                answer => return Ok(answer),
            }
        }
    }

    async fn said(&mut self) -> Result<Said, NoAnswer> {
        let mut header = [0; SAID_HEADER];
        self.stream.read_exact(&mut header).await.map_err(NoAnswer::Ended)?;
        let (kind, length) = Said::header(header);
        let (length, bound) = (length as usize, bound_of(kind));
        // Before anything is allocated for it.
        if length > bound {
            return Err(NoAnswer::Flood(length, bound));
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.map_err(NoAnswer::Ended)?;
        Said::read(kind, body).ok_or(NoAnswer::Unknown)
    }

    /// Names the end of a worker that gave no answer (reference facts, A2): one that ended as if all were well was
    /// silent; one that was ended by a signal or by itself has used up what it was given.
    pub(super) async fn end_without(self, why: NoAnswer) -> RunEnd {
        match why {
            NoAnswer::Flood(..) => RunEnd::Exceeded(why.to_string()),
            NoAnswer::Unknown => RunEnd::Silent(why.to_string()),
            NoAnswer::Ended(err) => match self.process.end().await {
                Some(status) if status.exit_status() == Some(0) => {
                    RunEnd::Silent("it ended as if all were well".to_owned())
                }
                Some(status) => RunEnd::Exceeded(format!("the worker was ended: {}", shown(status))),
                None => RunEnd::Silent(err.to_string()),
            },
        }
    }
}

fn bound_of(kind: u8) -> usize {
    if kind == b'C' { COMPILED_MAX_BYTES } else { WASM_CHILD_MAX_STDOUT_BYTES }
}

fn shown(status: WaitStatus) -> String {
    match (status.terminating_signal(), status.exit_status()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "nobody knows how".to_owned(),
    }
}
