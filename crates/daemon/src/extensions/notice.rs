//! How those who watch the companion hear of a call of an extension. What it was asked and what it said stays between it
//! and its caller.

use toolshelf_core::live::{CallNotice, CallOrigin};

use super::dispatch::{Invocation, Outcome};
use super::error::InvokeError;
use super::{ExtError, Extensions};

impl Extensions {
    /// The notice of a call that has ended after `duration_ms` milliseconds; nothing for one of a tool that is not
    /// there, whose name is whatever its caller made up.
    pub(crate) fn notice(
        &self,
        call: &Invocation,
        end: &Result<Outcome, InvokeError>,
        duration_ms: f64,
        from: CallOrigin,
    ) -> Option<CallNotice> {
        let record = self.extension_record(&call.extension).ok()??;
        record.manifest.tool(&call.tool)?;
        let refused = end.as_ref().err().and_then(|err| match &*err.error {
            ExtError::Extension(error) => Some(error.code().as_str().to_owned()),
            _ => None,
        });
        Some(CallNotice {
            name: format!("{}/{}", call.extension, call.tool),
            ok: end.is_ok(),
            output: String::new(),
            duration_ms: duration_ms.max(0.0),
            from,
            digest: record.manifest.wasm_module_sha256,
            refused,
            why: None,
            session: None,
        })
    }
}
