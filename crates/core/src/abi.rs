//! The two buffer ABIs: where a module's inputs and output lie in its linear memory, and which export is called.
//!
//! Source: the tool shelf seed, section 2, and the reference facts, A3. These are host constants: a manifest names an
//! ABI, it cannot describe one.

use serde_json::{Value, json};

use crate::limits::WASM_PAGE_BYTES;
use crate::refusal::{Code, Refusal};

/// A calling convention of the shelf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Abi {
    /// `buffer-abi/1`: one input buffer, 32 bytes of output.
    Buffer1,
    /// `buffer-abi/diff`: two input buffers, a diff script as output.
    Diff,
}

/// One input buffer and the names under which a caller gives its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    /// Key of the buffer in the ABI's row.
    pub name: &'static str,
    /// Names of the argument, most preferred first.
    pub arguments: &'static [&'static str],
    /// What the argument is, for a form or a model.
    pub description: &'static str,
    /// Offset of the buffer in linear memory, in bytes.
    pub addr: u32,
    /// Size of the buffer, in bytes; an input of exactly this size fits.
    pub max_bytes: u32,
}

/// The output buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Offset of the buffer in linear memory, in bytes.
    pub addr: u32,
    /// Size of the buffer, in bytes.
    pub max_bytes: u32,
    /// Whether the whole buffer is the output, whatever the export returns; otherwise the return value is its length.
    pub fixed: bool,
}

/// The host's table row of an ABI.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name of the ABI as a manifest writes it.
    pub name: &'static str,
    /// The input buffers, in the order of the export's parameters: one `i32` length each.
    pub inputs: &'static [Input],
    /// The output buffer.
    pub output: Output,
    /// The function that is called: `(i32 length, ...) -> i32`.
    pub export: &'static str,
}

static BUFFER_1: Layout = Layout {
    name: "buffer-abi/1",
    inputs: &[Input {
        name: "input",
        arguments: &["input"],
        description: "input text to compute over",
        addr: 0x400,
        max_bytes: 8_192,
    }],
    output: Output { addr: 0x2400, max_bytes: 32, fixed: true },
    export: "sha256",
};

static DIFF: Layout = Layout {
    name: "buffer-abi/diff",
    inputs: &[
        Input {
            name: "inputA",
            arguments: &["a", "inputA", "oldText"],
            description: "old text",
            addr: 0x1_0000,
            max_bytes: 65_536,
        },
        Input {
            name: "inputB",
            arguments: &["b", "inputB", "newText"],
            description: "new text",
            addr: 0x2_0000,
            max_bytes: 65_536,
        },
    ],
    output: Output { addr: 0x3_0000, max_bytes: 262_144, fixed: false },
    export: "diff",
};

impl Abi {
    /// Every ABI that the host drives.
    pub const ALL: [Self; 2] = [Self::Buffer1, Self::Diff];

    /// The host's row for this ABI.
    #[must_use]
    pub fn layout(self) -> &'static Layout {
        match self {
            Self::Buffer1 => &BUFFER_1,
            Self::Diff => &DIFF,
        }
    }

    /// The ABI of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|abi| abi.layout().name == name)
    }

    /// The ABI of an entry that names none: the host's table of well-known ids.
    #[must_use]
    pub fn of_known_id(id: &str) -> Option<Self> {
        match id {
            "hash" => Some(Self::Buffer1),
            "diff" => Some(Self::Diff),
            _ => None,
        }
    }

    /// Bytes of linear memory that a module of this ABI must have at least.
    #[must_use]
    pub fn memory_required(self) -> u64 {
        let layout = self.layout();
        let end_of_inputs =
            layout.inputs.iter().map(|input| u64::from(input.addr) + u64::from(input.max_bytes));
        let end_of_output = u64::from(layout.output.addr) + u64::from(layout.output.max_bytes);
        end_of_inputs.fold(end_of_output, u64::max)
    }

    /// [`memory_required`](Self::memory_required) in whole pages.
    #[must_use]
    pub fn pages_required(self) -> u64 {
        self.memory_required().div_ceil(WASM_PAGE_BYTES)
    }

    /// The row as the wire shows it: `{abi, input | inputA + inputB, output, call}`.
    #[must_use]
    pub fn row(self) -> Value {
        let layout = self.layout();
        let size = if layout.output.fixed { "bytes" } else { "maxBytes" };
        let mut row = json!({
            "abi": layout.name,
            "output": { "addr": layout.output.addr, size: layout.output.max_bytes },
            "call": { "export": layout.export },
        });
        for input in layout.inputs {
            row[input.name] = json!({ "addr": input.addr, "maxBytes": input.max_bytes });
        }
        row
    }

    /// Takes a call's inputs, in the order of the buffers.
    ///
    /// `argument` gives the bytes of the argument of that name, or `None` when the caller left it out; a missing
    /// argument is empty.
    ///
    /// # Errors
    /// [`Code::OverBudget`] for an input that is larger than its buffer.
    pub fn inputs(self, mut argument: impl FnMut(&str) -> Option<Vec<u8>>) -> Result<Vec<Vec<u8>>, Refusal> {
        let layout = self.layout();
        layout
            .inputs
            .iter()
            .map(|input| {
                let bytes = input.arguments.iter().find_map(|name| argument(name)).unwrap_or_default();
                input.check_size(bytes.len() as u64)?;
                Ok(bytes)
            })
            .collect()
    }
}

impl Input {
    /// Checks the size of what is to be put into this buffer, before it is read where that is possible.
    ///
    /// # Errors
    /// [`Code::OverBudget`] when `bytes` is more than the buffer holds.
    pub fn check_size(&self, bytes: u64) -> Result<(), Refusal> {
        if bytes <= u64::from(self.max_bytes) {
            return Ok(());
        }
        let Self { arguments, max_bytes, .. } = self;
        let why = format!(
            "argument `{}` is {bytes} bytes; the ABI's buffer holds at most {max_bytes}",
            arguments[0]
        );
        Err(Refusal::new(Code::OverBudget, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_that_an_abi_needs_covers_all_its_buffers() {
        assert_eq!((Abi::Buffer1.memory_required(), Abi::Buffer1.pages_required()), (9_248, 1));
        assert_eq!((Abi::Diff.memory_required(), Abi::Diff.pages_required()), (458_752, 7));
    }

    #[test]
    fn buffers_do_not_overlap() {
        for abi in Abi::ALL {
            let Layout { inputs, output, .. } = abi.layout();
            let mut buffers: Vec<_> = inputs.iter().map(|input| (input.addr, input.max_bytes)).collect();
            buffers.push((output.addr, output.max_bytes));
            buffers.sort_unstable();
            assert!(buffers.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{abi:?}");
        }
    }

    #[test]
    fn rows_have_the_wire_shape() {
        assert_eq!(
            Abi::Buffer1.row(),
            json!({"abi": "buffer-abi/1", "input": {"addr": 0x400, "maxBytes": 8192},
                   "output": {"addr": 0x2400, "bytes": 32}, "call": {"export": "sha256"}})
        );
        assert_eq!(
            Abi::Diff.row(),
            json!({"abi": "buffer-abi/diff", "inputA": {"addr": 0x10000, "maxBytes": 65536},
                   "inputB": {"addr": 0x20000, "maxBytes": 65536},
                   "output": {"addr": 0x30000, "maxBytes": 262144}, "call": {"export": "diff"}})
        );
    }

    #[test]
    fn an_argument_is_found_under_each_of_its_names_and_may_be_missing() {
        let given = |wanted: &'static str| move |name: &str| (name == wanted).then(|| b"x".to_vec());
        for name in ["a", "inputA", "oldText"] {
            assert_eq!(Abi::Diff.inputs(given(name)).unwrap(), [b"x".to_vec(), vec![]], "{name}");
        }
        for name in ["b", "inputB", "newText"] {
            assert_eq!(Abi::Diff.inputs(given(name)).unwrap(), [vec![], b"x".to_vec()], "{name}");
        }
        assert_eq!(Abi::Buffer1.inputs(|_| None).unwrap(), [Vec::<u8>::new()]);
    }

    #[test]
    fn one_byte_too_long_is_refused_with_both_sizes() {
        let of = |size: usize| move |name: &str| (name == "input").then(|| vec![0; size]);
        assert!(Abi::Buffer1.inputs(of(8_192)).is_ok());
        let refusal = Abi::Buffer1.inputs(of(8_193)).unwrap_err();
        assert_eq!(refusal.code, Code::OverBudget);
        assert!(refusal.why.contains("8193") && refusal.why.contains("8192"), "{}", refusal.why);
    }
}
