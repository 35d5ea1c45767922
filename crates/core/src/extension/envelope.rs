//! What an extension is asked and what it answers, as JSON; the small replies of host functions.
//!
//! Source: the seed, sections 6.4 and 6.5, and the reference facts, C5. The order of keys is part of the contract.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest response, in bytes.
pub const RESPONSE_MAX_BYTES: u32 = 65_536;
/// Most facts that one query of a module answers.
pub const QUERY_TOP_K_MAX: usize = 256;

/// A call, in the order of its keys. An external tool and a module get the same.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ToolRequest<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub args: &'a Value,
    /// On whose behalf.
    pub calling_passport_id: &'a str,
    /// Names the call.
    pub request_id: &'a str,
}

impl ToolRequest<'_> {
    /// The request as it is written into the module's memory: JSON without white space.
    ///
    /// # Errors
    /// What the serialiser says; arguments that were read from JSON can always be written.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}

/// The id of the call that begins `unix_ns` nanoseconds after the beginning of 1970.
#[must_use]
pub fn request_id(unix_ns: u128) -> String {
    format!("req-{unix_ns}")
}

/// A fact that an answer proposes to write. Those of a module must be well formed, and are ignored: a module writes by
/// calling `store_fact`. Those of an external tool pass through the grant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactWrite {
    /// Of what.
    pub entity: String,
    /// Which property.
    pub key: String,
    /// The value.
    pub value: String,
    /// How sure it is, from 0 to 1.
    #[serde(default = "certain")]
    pub confidence: f64,
}

fn certain() -> f64 {
    1.0
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolResponse {
    /// What the tool says; any JSON, `null` as well, but it must be there.
    #[serde(deserialize_with = "Value::deserialize")]
    pub result: Value,
    /// What it proposes to write.
    #[serde(default)]
    pub fact_writes: Vec<FactWrite>,
}

/// Why an answer cannot be read.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ResponseFault {
    /// Not UTF-8.
    #[error("response is not valid utf-8")]
    NotUtf8,
    /// Not JSON, or not of the form of an answer.
    #[error("response is not valid JSON: {0}")]
    NotJson(String),
}

impl ToolResponse {
    /// Reads an answer.
    ///
    /// # Errors
    /// A [`ResponseFault`].
    pub fn read(bytes: &[u8]) -> Result<Self, ResponseFault> {
        let text = std::str::from_utf8(bytes).map_err(|_| ResponseFault::NotUtf8)?;
        // The fields of an object may be read from a list as well, which nobody has agreed upon.
        if text.trim_start().starts_with('[') {
            return Err(ResponseFault::NotJson("invalid type: sequence, expected an object".to_owned()));
        }
        serde_json::from_str(text).map_err(|err| ResponseFault::NotJson(err.to_string()))
    }
}

/// A fact as host functions answer it, in the order of its keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactReply {
    /// Its id.
    pub fact_id: String,
    /// Of what.
    pub entity: String,
    /// Which property.
    pub key: String,
    /// The value.
    pub value: String,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// When it was stored, in milliseconds since the beginning of 1970.
    pub stored_at_unix_ms: u64,
}

/// What `current_passport_json` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PassportReply<'a> {
    /// The passport that the call is bound to.
    pub calling_passport_id: &'a str,
}

/// A line that a module logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLogEntry {
    /// Free text.
    pub level: String,
    /// The message.
    pub message: String,
    /// When, in milliseconds since the beginning of 1970.
    pub at_unix_ms: u64,
}

/// What calling a module gives, in the order of its keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WasmDispatchOutcome {
    /// What the tool says.
    pub result: Value,
    /// How long the call took, in milliseconds.
    pub elapsed_ms: u64,
    /// How much fuel it used.
    pub fuel_consumed: u64,
    /// What it logged.
    pub log: Vec<HostLogEntry>,
    /// Names the call.
    pub request_id: String,
}

/// The confidence that crosses the boundary as thousandths, so that the ABI stays free of floats.
#[must_use]
pub fn confidence_of(thousandths: i32) -> f64 {
    f64::from(thousandths.clamp(0, 1_000)) / 1_000.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_has_its_keys_in_their_order_and_no_white_space() {
        let args = json!({"doc_id": "note-1"});
        let request = ToolRequest {
            tool: "ext.example.summarise.note",
            args: &args,
            calling_passport_id: "p_\"alice",
            request_id: &request_id(1_753_440_000_000_000_000),
        };
        assert_eq!(
            String::from_utf8(request.to_json().unwrap()).unwrap(),
            r#"{"tool":"ext.example.summarise.note","args":{"doc_id":"note-1"},"calling_passport_id":"p_\"alice","request_id":"req-1753440000000000000"}"#
        );
    }

    #[test]
    fn answers_are_read_and_faults_named() {
        let read = |text: &str| ToolResponse::read(text.as_bytes());
        assert_eq!(
            read(r#"{"result":null}"#).unwrap(),
            ToolResponse { result: json!(null), fact_writes: vec![] }
        );
        let response =
            read(r#"{"result":{"a":1},"fact_writes":[{"entity":"e","key":"k","value":"v"}],"x":0}"#).unwrap();
        assert_eq!(response.fact_writes[0].confidence, 1.0);
        assert_eq!(ToolResponse::read(b"\xff").unwrap_err().to_string(), "response is not valid utf-8");
        for bad in [
            "",
            "[]",
            "[1]",
            " [1, []]",
            "{}",
            r#"{"result":1,"fact_writes":[{}]}"#,
            r#"{"result":1} x"#,
            "nul",
        ] {
            let text = read(bad).unwrap_err().to_string();
            assert!(text.starts_with("response is not valid JSON: "), "{bad}: {text}");
        }
        assert!(read("{}").unwrap_err().to_string().contains("missing field `result`"));
        let deep = format!(r#"{{"result":{}1{}}}"#, "[".repeat(60_000), "]".repeat(60_000));
        assert!(matches!(read(&deep), Err(ResponseFault::NotJson(_))));
    }

    #[test]
    fn replies_have_their_keys_in_their_order() {
        let reply = FactReply {
            fact_id: "f".into(),
            entity: "e".into(),
            key: "k".into(),
            value: "v".into(),
            confidence: confidence_of(250),
            stored_at_unix_ms: 7,
        };
        assert_eq!(
            serde_json::to_string(&reply).unwrap(),
            r#"{"fact_id":"f","entity":"e","key":"k","value":"v","confidence":0.25,"stored_at_unix_ms":7}"#
        );
        let passport = PassportReply { calling_passport_id: "a\\\"\n" };
        assert_eq!(serde_json::to_string(&passport).unwrap(), r#"{"calling_passport_id":"a\\\"\n"}"#);
    }

    #[test]
    fn confidence_is_clamped() {
        for (thousandths, confidence) in
            [(i32::MIN, 0.0), (0, 0.0), (1, 0.001), (1_000, 1.0), (i32::MAX, 1.0)]
        {
            assert_eq!(confidence_of(thousandths), confidence);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
            let _ = ToolResponse::read(&bytes);
        }
    }
}
