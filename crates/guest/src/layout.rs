//! Where the two buffer ABIs keep input and output in linear memory.

/// `buffer-abi/1`: one input, a fixed number of bytes as output.
pub mod hash {
    /// Address of the input.
    pub const INPUT: usize = 0x400;
    /// The most bytes an input has.
    pub const INPUT_MAX_BYTES: usize = 8192;
    /// Address of the output.
    pub const OUTPUT: usize = 0x2400;
    /// Bytes of an output.
    pub const OUTPUT_BYTES: usize = 32;
}

/// `buffer-abi/diff`: two texts as input, an edit script as output.
pub mod diff {
    /// Address of the old text.
    pub const INPUT_A: usize = 0x1_0000;
    /// Address of the new text.
    pub const INPUT_B: usize = 0x2_0000;
    /// The most bytes either text has.
    pub const INPUT_MAX_BYTES: usize = 65_536;
    /// Address of the edit script.
    pub const OUTPUT: usize = 0x3_0000;
    /// The most bytes an edit script has, its terminator included.
    pub const OUTPUT_MAX_BYTES: usize = 262_144;
    /// Bytes of a block of an edit script.
    pub const BLOCK_BYTES: usize = 17;
    /// The one byte that follows the last block.
    pub const TERMINATOR: u8 = 255;
}

// The outputs begin where the inputs end, so that one range covers all buffers of an ABI.
const _: () = assert!(hash::INPUT + hash::INPUT_MAX_BYTES == hash::OUTPUT);
const _: () = assert!(diff::INPUT_A + diff::INPUT_MAX_BYTES == diff::INPUT_B);
const _: () = assert!(diff::INPUT_B + diff::INPUT_MAX_BYTES == diff::OUTPUT);
