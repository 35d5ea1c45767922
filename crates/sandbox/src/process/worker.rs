//! The worker process itself: it shuts itself in, does one job and ends.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use rustix::stdio::{stdin, stdout};
use toolshelf_core::abi::Abi;
use toolshelf_core::call::RunEnd;

use super::Kind;
use super::isolation::Isolation;
use super::shut_in::{self, Filter};
use super::wire::{GO, JOB_HEADER, JobHeader, Said, What};
use crate::engine::{self, Instance, Start};
use crate::native;

/// The whole life of a worker. A program that starts itself as a worker calls this first of all when its first
/// argument is [`WORKER_COMMAND`](super::WORKER_COMMAND), with the arguments behind it.
///
/// The standard input and output are the socket to the process that started it.
#[must_use]
pub fn worker_main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut word = || arguments.next().and_then(|word| word.into_string().ok());
    let kind = word().and_then(|word| Kind::of_word(&word));
    let parent = word().and_then(|word| word.parse().ok());
    let Some(kind) = kind else { return ExitCode::from(2) };
    match work(kind, parent) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn work(kind: Kind, parent: Option<i32>) -> io::Result<()> {
    // The engine looks at the processor and the system, so it is made while that is still possible.
    let engine = match kind {
        Kind::Run | Kind::Nursery => engine::running(),
        Kind::Compile => engine::compiling(),
        #[cfg(feature = "wasm-extensions")]
        Kind::CompileExtension => crate::crux::engine::compiling(),
    };
    let engine = engine.map_err(io::Error::other)?;
    let (isolation, filter) = (shut_in::first(kind, parent)?, Filter::new());
    #[cfg(target_os = "linux")]
    if kind == Kind::Nursery && !super::nursery::is_copy_with_socket()? {
        return Ok(());
    }
    serve(kind, &engine, shut_in::last(kind, isolation, parent, &filter)?)
}

/// Greets, does one job, and answers.
fn serve(kind: Kind, engine: &wasmtime::Engine, isolation: Isolation) -> io::Result<()> {
    write(&Said::Hello(isolation.bits).write())?;
    let mut header = job()?;
    if header.what == What::Trial {
        // Everything that a call touches was touched once before the call comes.
        let start = Start { abi: Abi::Buffer1, inputs: vec![Vec::new()], code: body(header.code_bytes)? };
        let _ = engine::run(engine, &start);
        header = job()?;
    }
    // From here on somebody waits. A kernel's timer ends this process even while the module spins, and even if nobody
    // is left to do it.
    native::end_in(kind.watchdog_seconds());
    let [first, second] = header.input_bytes.map(body);
    let (first, second, code) = (first?, second?, body(header.code_bytes)?);
    let answer = match header.what {
        What::Compile => match engine::compile(engine, &code) {
            Ok(code) => Said::Code(code),
            Err(err) => Said::Invalid(format!("{err:#}")),
        },
        What::Trial => return Err(io::ErrorKind::InvalidData.into()),
        What::Run { abi, starts } => {
            let mut inputs = vec![first, second];
            inputs.truncate(abi.layout().inputs.len());
            Said::Ended(run(engine, &Start { abi, inputs, code }, starts)?)
        }
    };
    write(&answer.write())
}

/// A module that has no start function runs nothing when it is instantiated, so that much is done before the word.
fn run(engine: &wasmtime::Engine, start: &Start, starts: bool) -> io::Result<RunEnd> {
    let ahead = (!starts).then(|| Instance::new(engine, start));
    let mut word = [0];
    read(&mut word)?;
    if word != [GO] {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let ready = ahead.unwrap_or_else(|| Instance::new(engine, start));
    Ok(ready.map_or_else(|end| end, |instance| instance.call(start)))
}

fn job() -> io::Result<JobHeader> {
    let mut header = [0; JOB_HEADER];
    read(&mut header)?;
    JobHeader::read(header).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn body(bytes: u32) -> io::Result<Vec<u8>> {
    let mut body = vec![0; bytes as usize];
    read(&mut body)?;
    Ok(body)
}

/// Fills `buffer`. An input that ends before is nobody's job: the process that started this one is gone.
fn read(mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match rustix::io::read(stdin(), &mut *buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer = &mut buffer[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
    }
    Ok(())
}

fn write(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(stdout(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
    }
    Ok(())
}
