//! What goes over the socket between this process and a worker: one job in, a greeting and one answer out.
//!
//! Binary, with every length in front, so that nothing is encoded, and nothing is read that was not announced and
//! found to be within its bound. Numbers are little-endian.

use toolshelf_core::abi::Abi;
use toolshelf_core::call::RunEnd;

/// Bytes of a job's header.
pub(super) const JOB_HEADER: usize = 16;
/// Bytes of the header of what a worker says.
pub(super) const SAID_HEADER: usize = 5;
/// The word on which a prepared worker begins to run.
pub(super) const GO: u8 = b'G';
/// Most inputs that an ABI has.
const INPUTS_MAX: usize = 2;

/// The header of a job. The inputs follow it, then the module or its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JobHeader {
    /// What is to be done.
    pub(super) what: What,
    /// Bytes of the module, or of its compiled code.
    pub(super) code_bytes: u32,
    /// Bytes of each input.
    pub(super) input_bytes: [u32; INPUTS_MAX],
}

/// What a worker is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Compile a module.
    Compile,
    /// Run compiled code to no end but to have run once; nothing is answered, and a job follows.
    Trial,
    /// Run compiled code. A module that `starts` by itself is not instantiated before the word.
    Run { abi: Abi, starts: bool },
}

impl JobHeader {
    /// A header for these inputs and `code`, or nothing where a length does not fit.
    pub(super) fn new(what: What, inputs: &[Vec<u8>], code: &[u8]) -> Option<Self> {
        let mut input_bytes = [0; INPUTS_MAX];
        for (index, input) in inputs.iter().enumerate() {
            *input_bytes.get_mut(index)? = u32::try_from(input.len()).ok()?;
        }
        Some(Self { what, code_bytes: u32::try_from(code.len()).ok()?, input_bytes })
    }

    pub(super) fn write(self) -> [u8; JOB_HEADER] {
        let mut bytes = [0; JOB_HEADER];
        let kind = match self.what {
            What::Compile => [b'C', 0, 0],
            What::Trial => [b'T', 0, 0],
            What::Run { abi, starts } => [b'R', abi_number(abi), u8::from(starts)],
        };
        bytes[..3].copy_from_slice(&kind);
        bytes[4..8].copy_from_slice(&self.code_bytes.to_le_bytes());
        for (place, length) in bytes[8..].chunks_exact_mut(4).zip(self.input_bytes) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        bytes
    }

    pub(super) fn read(bytes: [u8; JOB_HEADER]) -> Option<Self> {
        let number = |from: usize| {
            u32::from_le_bytes([bytes[from], bytes[from + 1], bytes[from + 2], bytes[from + 3]])
        };
        let what = match bytes[0] {
            b'C' => What::Compile,
            b'T' => What::Trial,
            b'R' => What::Run { abi: *Abi::ALL.get(usize::from(bytes[1]))?, starts: bytes[2] != 0 },
            _ => return None,
        };
        Some(Self { what, code_bytes: number(4), input_bytes: [number(8), number(12)] })
    }
}

fn abi_number(abi: Abi) -> u8 {
    Abi::ALL.iter().position(|known| *known == abi).unwrap_or_default() as u8
}

/// What a worker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// It has shut itself in as far as these bits say, and waits.
    Hello(u8),
    /// How the run ended.
    Ended(RunEnd),
    /// Compiled code.
    Code(Vec<u8>),
    /// The module is invalid, and why.
    Invalid(String),
}

impl Said {
    /// The bytes to send.
    pub(super) fn write(&self) -> Vec<u8> {
        let (kind, head, body): (u8, &[u8], &[u8]) = match self {
            Self::Hello(bits) => (b'H', &[*bits], &[]),
            Self::Code(code) => (b'C', &[], code),
            Self::Invalid(why) => (b'I', &[], why.as_bytes()),
            Self::Ended(RunEnd::Returned { returned, output }) => (b'R', &returned.to_le_bytes(), output),
            Self::Ended(RunEnd::Unfit(why)) => (b'U', &[], why.as_bytes()),
            Self::Ended(RunEnd::Trapped(why)) => (b'T', &[], why.as_bytes()),
            Self::Ended(RunEnd::OutOfMemory(why)) => (b'M', &[], why.as_bytes()),
            Self::Ended(RunEnd::Silent(why)) => (b'S', &[], why.as_bytes()),
            // Those are seen from outside, and never said.
            Self::Ended(RunEnd::DeadlinePassed | RunEnd::Exceeded(_)) => (b'S', &[], &[]),
        };
        let length = (head.len() + body.len()) as u32;
        [&[kind][..], &length.to_le_bytes(), head, body].concat()
    }

    /// Kind and length of what follows a header.
    pub(super) fn header(bytes: [u8; SAID_HEADER]) -> (u8, u32) {
        (bytes[0], u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]))
    }

    /// Reads what was said; `None` for what no worker says.
    pub(super) fn read(kind: u8, mut body: Vec<u8>) -> Option<Self> {
        if kind == b'C' {
            return Some(Self::Code(body));
        }
        let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
        Some(match kind {
            b'H' => Self::Hello(*body.first()?),
            b'I' => Self::Invalid(text(&body)),
            b'R' => {
                let returned = i32::from_le_bytes(body.get(..4)?.try_into().ok()?);
                Self::Ended(RunEnd::Returned { returned, output: body.split_off(4) })
            }
            b'U' => Self::Ended(RunEnd::Unfit(text(&body))),
            b'T' => Self::Ended(RunEnd::Trapped(text(&body))),
            b'M' => Self::Ended(RunEnd::OutOfMemory(text(&body))),
            b'S' => Self::Ended(RunEnd::Silent(text(&body))),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_back(said: &Said) -> Option<Said> {
        let bytes = said.write();
        let (header, body) = bytes.split_at(SAID_HEADER);
        let (kind, length) = Said::header(header.try_into().unwrap());
        assert_eq!(length as usize, body.len());
        Said::read(kind, body.to_vec())
    }

    #[test]
    fn what_is_said_is_what_is_heard() {
        for said in [
            Said::Hello(7),
            Said::Code(vec![1, 2, 3]),
            Said::Invalid("bad".into()),
            Said::Ended(RunEnd::Returned { returned: -1, output: vec![9; 40] }),
            Said::Ended(RunEnd::Unfit("u".into())),
            Said::Ended(RunEnd::Trapped("é".into())),
            Said::Ended(RunEnd::OutOfMemory(String::new())),
            Said::Ended(RunEnd::Silent("s".into())),
        ] {
            assert_eq!(read_back(&said), Some(said));
        }
        assert_eq!(Said::read(b'R', vec![1, 2, 3]), None);
        assert_eq!(Said::read(b'?', vec![]), None);
    }

    #[test]
    fn a_job_is_the_one_that_was_given() {
        for what in [
            What::Compile,
            What::Trial,
            What::Run { abi: Abi::Buffer1, starts: true },
            What::Run { abi: Abi::Diff, starts: false },
        ] {
            let header = JobHeader::new(what, &[vec![0; 300], vec![0; 70_000]], &[0; 9]).unwrap();
            assert_eq!(JobHeader::read(header.write()), Some(header));
        }
        assert_eq!(JobHeader::new(What::Compile, &[vec![], vec![], vec![]], &[]), None);
        assert_eq!(JobHeader::read([0xff; JOB_HEADER]), None);
    }
}
