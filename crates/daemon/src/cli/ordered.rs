//! JSON whose keys stay in their order: a manifest that is pinned must read as its author wrote it.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    /// An object, in its order.
    Object(Vec<(String, Node)>),
    /// An array.
    Array(Vec<Node>),
    /// Anything else.
    Plain(Value),
}

impl Node {
    /// A text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Plain(Value::String(text.into()))
    }

    /// Sets a field of an object: in its place where it has one, else at the end.
    pub(crate) fn set(&mut self, key: &str, value: Node) {
        let Self::Object(fields) = self else { return };
        match fields.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => fields.push((key.to_owned(), value)),
        }
    }

    /// A field of an object.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match self {
            Self::Object(fields) => fields.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Takes a field out of an object.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Self> {
        let Self::Object(fields) = self else { return None };
        let at = fields.iter().position(|(name, _)| name == key)?;
        Some(fields.remove(at).1)
    }

    /// The entries of a manifest, in any of its three forms.
    pub(crate) fn entries(&mut self) -> Vec<&mut Self> {
        if let Self::Object(fields) = self {
            let Some(at) = fields.iter().position(|(name, _)| name == "tools") else { return vec![self] };
            return self.field(at).map(Self::entries).unwrap_or_default();
        }
        match self {
            Self::Array(entries) => entries.iter_mut().collect(),
            _ => Vec::new(),
        }
    }

    fn field(&mut self, at: usize) -> Option<&mut Self> {
        match self {
            Self::Object(fields) => fields.get_mut(at).map(|(_, value)| value),
            _ => None,
        }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(value) => value.serialize(serializer),
            Self::Array(values) => {
                let mut array = serializer.serialize_seq(Some(values.len()))?;
                values.iter().try_for_each(|value| array.serialize_element(value))?;
                array.end()
            }
            Self::Object(fields) => {
                let mut object = serializer.serialize_map(Some(fields.len()))?;
                fields.iter().try_for_each(|(key, value)| object.serialize_entry(key, value))?;
                object.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut fields: Vec<(String, Node)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Node>()? {
                    // The last of two wins, as it does for everyone who reads the manifest.
                    fields.retain(|(name, _)| *name != key);
                    fields.push((key, value));
                }
                Ok(Node::Object(fields))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element()? {
                    values.push(value);
                }
                Ok(Node::Array(values))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Plain(value.into()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
                Ok(Node::Plain(value.into()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
                Ok(Node::Plain(value.into()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
                Ok(Node::Plain(value.into()))
            }
            fn visit_str<E>(self, value: &str) -> Result<Node, E> {
                Ok(Node::text(value))
            }
            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Plain(Value::Null))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_in_their_order_and_new_ones_come_last() {
        let text = r#"{"z":1,"a":[true,null,-2,1.5,"x"],"m":{}}"#;
        let mut node: Node = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&node).unwrap(), text);
        node.set("a", Node::text("y"));
        node.set("b", Node::text("z"));
        assert_eq!(serde_json::to_string(&node).unwrap(), r#"{"z":1,"a":"y","m":{},"b":"z"}"#);
    }
}
