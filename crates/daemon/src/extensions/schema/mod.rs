//! Arguments against a tool's `input_schema`, which a stranger wrote.
//!
//! A schema can be made so that checking a few bytes takes years. So before it is compiled its own size is bounded,
//! it may refer to nothing outside itself, its patterns are of the kind that is matched in linear time, and it is known
//! how many steps a check takes at most: each part of the schema is counted as often as references and alternatives
//! lead to it, for arguments as deeply nested as those at hand. What would take too many steps is refused.

mod graph;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use toolshelf_core::Digest;
use toolshelf_core::refusal::cut;

use self::graph::{DEPTH_MAX, Graph, measure};

/// Largest schema of a tool, in bytes.
pub(crate) const SCHEMA_MAX_BYTES: usize = 64 * 1024;
/// Most patterns in a schema.
pub(crate) const SCHEMA_MAX_PATTERNS: usize = 64;
/// Longest pattern, in bytes.
pub(crate) const PATTERN_MAX_BYTES: usize = 1024;
/// Most steps that a check may take. A step is about one comparison.
pub(crate) const CHECK_MAX_STEPS: u64 = 20_000_000;

/// Memory of a compiled pattern, in bytes.
const PATTERN_SIZE: usize = 256 * 1024;
/// Compiled schemas that are kept.
const KEPT_MAX: usize = 256;
const WHY_MAX_CHARS: usize = 300;

/// A schema, ready to check with.
struct Compiled {
    validator: Validator,
    /// Steps for arguments of each depth.
    steps: Vec<u64>,
}

/// Compiled schemas by the digest of their text.
#[derive(Default)]
pub(crate) struct Schemas {
    kept: Mutex<HashMap<Digest, Arc<Compiled>>>,
}

impl Schemas {
    /// Says whether a schema can be checked with.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn admit(&self, schema: &Value) -> Result<(), String> {
        self.compiled(schema).map(drop)
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// Where they do not match, and why; or why they are not checked.
    pub(crate) fn check(&self, schema: &Value, args: &Value) -> Result<(), String> {
        let compiled = self.compiled(schema)?;
        let (depth, size) = measure(args);
        let steps = compiled.steps[depth.min(DEPTH_MAX)].saturating_mul(size);
        if steps > CHECK_MAX_STEPS {
            return Err(format!("checking them would take more than {CHECK_MAX_STEPS} steps"));
        }
        compiled.validator.validate(args).map_err(|err| {
            let at = err.instance_path().to_string();
            let at = if at.is_empty() { "the arguments".to_owned() } else { format!("'{}'", cut(&at, 100)) };
            // What was given may be a secret, so it is not repeated.
            format!("{at}: {}", cut(&err.masked().to_string(), WHY_MAX_CHARS))
        })
    }

    fn compiled(&self, schema: &Value) -> Result<Arc<Compiled>, String> {
        let text = schema.to_string();
        if text.len() > SCHEMA_MAX_BYTES {
            return Err(format!("it has {} bytes, more than {SCHEMA_MAX_BYTES}", text.len()));
        }
        let digest = Digest::of(text.as_bytes());
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = kept().get(&digest) {
            return Ok(Arc::clone(compiled));
        }
        let compiled = Arc::new(compile(schema)?);
        let mut kept = kept();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(digest, Arc::clone(&compiled));
        Ok(compiled)
    }
}

impl std::fmt::Debug for Schemas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schemas").finish_non_exhaustive()
    }
}

fn compile(schema: &Value) -> Result<Compiled, String> {
    let steps = Graph::of(schema)?.steps()?;
    // Nested as the schema itself is: arguments that follow it are not nested much deeper.
    if steps[0] > CHECK_MAX_STEPS {
        return Err(format!("checking with it would take more than {CHECK_MAX_STEPS} steps"));
    }
    let validator = jsonschema::options()
        .offline()
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_SIZE))
        .build(schema)
        .map_err(|err| cut(&err.to_string(), WHY_MAX_CHARS))?;
    Ok(Compiled { validator, steps })
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn check(schema: &Value, args: &Value) -> Result<(), String> {
        Schemas::default().check(schema, args)
    }

    #[test]
    fn arguments_are_checked_and_the_fault_is_located() {
        let schema = json!({
            "type": "object",
            "properties": {"id": {"type": "string", "pattern": "^[a-z]+$"}, "n": {"type": "integer", "maximum": 9}},
            "required": ["id"],
            "additionalProperties": false,
        });
        assert_eq!(check(&schema, &json!({"id": "abc", "n": 3})), Ok(()));
        for (args, at) in [
            (json!({}), "the arguments: "),
            (json!({"id": 1}), "'/id': "),
            (json!({"id": "ABC-opensesame"}), "'/id': "),
            (json!({"id": "a", "n": 10}), "'/n': "),
            (json!({"id": "a", "x": 1}), "the arguments: "),
            (json!([]), "the arguments: "),
        ] {
            let why = check(&schema, &args).unwrap_err();
            assert!(why.starts_with(at) && !why.contains("opensesame"), "{args}: {why}");
        }
        assert_eq!(check(&json!(true), &json!([1])), Ok(()));
        assert!(check(&json!(false), &json!([1])).is_err());
    }

    #[test]
    fn recursion_into_values_works() {
        let tree = json!({
            "$defs": {"tree": {
                "type": "object",
                "properties": {"left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}},
                "additionalProperties": false,
            }},
            "$ref": "#/$defs/tree",
        });
        assert_eq!(check(&tree, &json!({"left": {"left": {}}, "right": {}})), Ok(()));
        assert!(check(&tree, &json!({"left": {"left": 1}})).is_err());
        let list = json!({"properties": {"next": {"$ref": "#"}}, "required": ["next"], "type": "object"});
        assert!(check(&list, &json!({"next": {"next": {}}})).unwrap_err().starts_with("'/next/next': "));
    }

    #[test]
    fn hostile_schemas_are_refused_before_they_are_compiled() {
        let mut doubling = Map::new();
        for number in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
            doubling.insert(format!("d{number}"), json!({"anyOf": [next, next]}));
        }
        doubling.insert("d40".to_owned(), json!({"type": "string"}));
        let patterns: Map<_, _> = (0..=SCHEMA_MAX_PATTERNS).map(|at| (format!("a{at}"), json!({}))).collect();
        let cases = [
            ("no schema", json!([])),
            ("a number", json!({"properties": {"a": 1}})),
            ("large", json!({"description": "x".repeat(SCHEMA_MAX_BYTES)})),
            ("remote", json!({"$ref": "https://example.com/schema.json"})),
            ("file", json!({"$ref": "file:///etc/passwd"})),
            ("relative", json!({"$ref": "other.json"})),
            ("nowhere", json!({"$ref": "#/$defs/a"})),
            ("escaped", json!({"$defs": {"a": {}}, "$ref": "#/%24defs/a"})),
            ("another base", json!({"properties": {"a": {"$id": "http://x.example/", "$ref": "#"}}})),
            ("dynamic", json!({"$dynamicRef": "#a"})),
            ("itself", json!({"$ref": "#"})),
            (
                "a circle",
                json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}},
                "$ref": "#/$defs/a"}),
            ),
            ("doubling", json!({"$defs": doubling, "$ref": "#/$defs/d0"})),
            ("patterns", json!({"patternProperties": patterns})),
            ("a long pattern", json!({"pattern": "a".repeat(PATTERN_MAX_BYTES + 1)})),
            ("a large pattern", json!({"pattern": "((a{1,1000}){1,1000}){1,1000}"})),
            ("a backward pattern", json!({"pattern": r"^(a+)\1$"})),
            ("a pattern that looks ahead", json!({"pattern": "^(?=a)"})),
            ("an unknown draft", json!({"$schema": "https://example.com/draft"})),
            ("a wrong keyword", json!({"type": "strong"})),
        ];
        for (name, schema) in cases {
            let why = Schemas::default().admit(&schema);
            assert!(why.as_ref().is_err_and(|why| why.len() < 1_000), "{name}: {why:?}");
        }
    }

    #[test]
    fn a_pattern_that_would_explode_is_matched_in_linear_time() {
        let schema = json!({"pattern": "^(a+)+$"});
        assert!(check(&schema, &json!(format!("{}!", "a".repeat(50_000)))).is_err());
    }

    #[test]
    fn arguments_that_would_take_too_long_are_refused() {
        // Each level asks two alternatives for the same values.
        let schema = json!({"$defs": {"a": {"anyOf": [
            {"properties": {"x": {"$ref": "#/$defs/a"}}, "required": ["l"]},
            {"properties": {"x": {"$ref": "#/$defs/a"}}, "required": ["r"]},
        ]}}, "$ref": "#/$defs/a"});
        let nested = |depth| (0..depth).fold(json!({"l": 1}), |inner, _| json!({"l": 1, "x": inner}));
        assert_eq!(check(&schema, &nested(5)), Ok(()));
        assert!(check(&schema, &nested(60)).unwrap_err().contains("steps"));
        let wide = json!({"items": {"enum": (0..1_000).collect::<Vec<_>>()}});
        assert!(check(&wide, &json!(vec![7; 30_000])).unwrap_err().contains("steps"));
    }

    #[test]
    fn definitions_that_double_inside_values_are_compiled_once_each() {
        let mut defs = Map::new();
        for number in 0..60 {
            let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
            defs.insert(format!("d{number}"), json!({"properties": {"l": next, "r": next}}));
        }
        defs.insert("d60".to_owned(), json!({"type": "string"}));
        let schema = json!({"$defs": defs, "$ref": "#/$defs/d0"});
        assert_eq!(check(&schema, &json!({"l": {"r": {"l": 1}}})), Ok(()));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let schemas = Schemas::default();
        for number in 0..KEPT_MAX + 10 {
            schemas.admit(&json!({ "const": number })).unwrap();
        }
        assert!(schemas.kept.lock().unwrap().len() <= KEPT_MAX);
    }
}
