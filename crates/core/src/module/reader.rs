//! A cursor over the bytes of a module that never reads past its end and never allocates by what it reads.

use super::ModuleFault;

/// The cursor. Offsets in faults count from the start of the file.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of `bytes` in the file.
    base: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, at: 0, base }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Offset of the next byte in the file.
    pub(super) fn offset(&self) -> usize {
        self.base + self.at
    }

    pub(super) fn fault(&self, what: &'static str) -> ModuleFault {
        ModuleFault::Malformed { what, offset: self.offset() }
    }

    pub(super) fn byte(&mut self) -> Result<u8, ModuleFault> {
        let byte = *self.bytes.get(self.at).ok_or_else(|| self.fault("unexpected end"))?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn take(&mut self, length: u32) -> Result<&'a [u8], ModuleFault> {
        let end = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        let taken =
            end.and_then(|end| self.bytes.get(self.at..end)).ok_or_else(|| self.fault("unexpected end"))?;
        self.at += taken.len();
        Ok(taken)
    }

    /// An unsigned LEB128 number of at most 32 bits.
    pub(super) fn u32(&mut self) -> Result<u32, ModuleFault> {
        let wide = self.leb(5)?;
        u32::try_from(wide).map_err(|_| self.fault("number out of range"))
    }

    /// An unsigned LEB128 number of at most 64 bits.
    pub(super) fn u64(&mut self) -> Result<u64, ModuleFault> {
        self.leb(10)
    }

    fn leb(&mut self, max_bytes: u32) -> Result<u64, ModuleFault> {
        let mut value = 0u64;
        for index in 0..max_bytes {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let shift = 7 * index;
            if shift == 63 && bits > 1 {
                return Err(self.fault("number out of range"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.fault("number too long"))
    }

    pub(super) fn name(&mut self) -> Result<&'a str, ModuleFault> {
        let length = self.u32()?;
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map_err(|_| self.fault("name is not UTF-8"))
    }
}

/// Appends `value` as unsigned LEB128.
pub(super) fn write_leb(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}
