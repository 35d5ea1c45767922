//! Tools as another host tells of them: the other direction of their wire form.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{Admitted, Tool};
use crate::abi::Abi;
use crate::digest::Digest;
use crate::refusal::{Code, Refusal};

impl<'de> Deserialize<'de> for Tool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The row of an ABI. All but its name is the reading host's own knowledge.
        #[derive(Deserialize)]
        struct Row {
            abi: String,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            id: String,
            digest: Option<String>,
            admitted: bool,
            wasm_path: String,
            description: String,
            capability: String,
            abi: Option<Row>,
            #[serde(default)]
            bytes: u64,
            #[serde(default)]
            memory_pages: u64,
            #[serde(default)]
            memory_max_pages: u64,
            refused: Option<String>,
            #[serde(default)]
            why: String,
        }
        let wire = Wire::deserialize(deserializer)?;
        let verdict = if wire.admitted {
            let digest = wire.digest.as_deref().and_then(Digest::parse);
            Ok(Admitted {
                digest: digest.ok_or_else(|| D::Error::custom("an admitted tool without a digest"))?,
                // One that is not known here cannot be called from here either.
                abi: wire.abi.and_then(|row| Abi::named(&row.abi)),
                bytes: wire.bytes,
                memory_pages: wire.memory_pages,
                memory_max_pages: wire.memory_max_pages,
            })
        } else {
            let code = wire.refused.as_deref().and_then(Code::parse);
            let code = code.ok_or_else(|| D::Error::custom("a refused tool without a known code"))?;
            Err(Refusal::new(code, wire.why))
        };
        let Wire { id, digest, wasm_path, description, capability, .. } = wire;
        Ok(Self { id, digest, wasm_path, description, capability, verdict })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tool(id: &str, verdict: Result<Admitted, Refusal>) -> Tool {
        Tool {
            id: id.into(),
            digest: Some(Digest::of(b"m").to_string()),
            wasm_path: "m.wasm".into(),
            description: "what it does".into(),
            capability: "hash".into(),
            verdict,
        }
    }

    #[test]
    fn a_tool_is_read_back_as_it_was_told() {
        let admitted = |abi| Admitted {
            digest: Digest::of(b"m"),
            abi,
            bytes: 312,
            memory_pages: 2,
            memory_max_pages: 1_024,
        };
        let told = [
            tool("hash", Ok(admitted(Some(Abi::Buffer1)))),
            tool("diff", Ok(admitted(Some(Abi::Diff)))),
            tool("shown", Ok(admitted(None))),
            tool("bad", Err(Refusal::new(Code::DigestMismatch, "they differ"))),
            Tool { digest: None, ..tool("(unnamed)", Err(Refusal::new(Code::UnderDeclared, "no id"))) },
        ];
        let wire = serde_json::to_string(&told).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Tool>>(&wire).unwrap(), told);
    }

    #[test]
    fn what_contradicts_itself_is_not_read() {
        let good = serde_json::to_value(tool("bad", Err(Refusal::new(Code::OverBudget, "large")))).unwrap();
        assert!(serde_json::from_value::<Tool>(good.clone()).is_ok());
        let with = |key: &str, value: Value| {
            let mut changed = good.clone();
            changed[key] = value;
            serde_json::from_value::<Tool>(changed)
        };
        assert!(with("refused", json!("made-up")).is_err());
        assert!(with("refused", json!(null)).is_err());
        assert!(with("id", json!(7)).is_err());
        assert!(with("admitted", json!(true)).is_ok_and(|tool| tool.verdict.is_ok()));
        let mut unpinned = good.clone();
        unpinned["admitted"] = true.into();
        unpinned["digest"] = "0F".into();
        assert!(serde_json::from_value::<Tool>(unpinned).is_err());
    }
}
