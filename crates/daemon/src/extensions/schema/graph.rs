//! How many steps a check takes at most, from the schema alone.

use std::collections::HashMap;

use serde_json::{Map, Value};
use toolshelf_core::refusal::cut;

use super::{PATTERN_MAX_BYTES, SCHEMA_MAX_PATTERNS};

/// No JSON that is read here is nested deeper.
pub(super) const DEPTH_MAX: usize = 128;
/// Bytes of a text that count as one step.
const TEXT_STEP_BYTES: usize = 32;

/// Depth of a value, and its size in steps.
pub(super) fn measure(value: &Value) -> (usize, u64) {
    let (mut deepest, mut size) = (0, 0_u64);
    let mut left = vec![(value, 0)];
    while let Some((value, depth)) = left.pop() {
        deepest = deepest.max(depth);
        size += 1;
        match value {
            Value::String(text) => size += (text.len() / TEXT_STEP_BYTES) as u64,
            Value::Array(items) => left.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(object) => {
                size += object.keys().map(|key| (key.len() / TEXT_STEP_BYTES) as u64).sum::<u64>();
                left.extend(object.values().map(|value| (value, depth + 1)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    (deepest, size)
}

/// How the parts of a schema lead to each other.
pub(super) struct Graph<'s> {
    root: &'s Value,
    ids: HashMap<*const Value, usize>,
    parts: Vec<Part>,
    patterns: usize,
}

/// One schema in the schema.
#[derive(Default)]
struct Part {
    /// Steps of its own keywords.
    own: u64,
    /// Schemas that look at the same value.
    same: Vec<usize>,
    /// Schemas that look at the values inside it.
    inside: Vec<usize>,
    /// How often the first kind is looked at.
    repeats: u64,
}

impl<'s> Graph<'s> {
    pub(super) fn of(root: &'s Value) -> Result<Self, String> {
        let mut graph = Self { root, ids: HashMap::new(), parts: Vec::new(), patterns: 0 };
        let mut left = Vec::new();
        graph.id(root, &mut left);
        while let Some((id, schema)) = left.pop() {
            graph.parts[id] = match schema {
                Value::Bool(_) => Part { own: 1, repeats: 1, ..Part::default() },
                Value::Object(object) => graph.part(object, std::ptr::eq(schema, root), &mut left)?,
                _ => return Err("a schema is an object, true or false".to_owned()),
            };
        }
        Ok(graph)
    }

    fn id(&mut self, schema: &'s Value, left: &mut Vec<(usize, &'s Value)>) -> usize {
        let next = self.parts.len();
        let id = *self.ids.entry(std::ptr::from_ref(schema)).or_insert(next);
        if id == next {
            self.parts.push(Part::default());
            left.push((id, schema));
        }
        id
    }

    fn part(
        &mut self,
        object: &'s Map<String, Value>,
        is_root: bool,
        left: &mut Vec<(usize, &'s Value)>,
    ) -> Result<Part, String> {
        let mut part = Part { own: 1, repeats: 1, ..Part::default() };
        for (keyword, value) in object {
            match keyword.as_str() {
                "$ref" => {
                    let target = self.target(value)?;
                    let id = self.id(target, left);
                    part.same.push(id);
                }
                "$dynamicRef" | "$recursiveRef" | "$dynamicAnchor" | "$recursiveAnchor" | "$vocabulary" => {
                    return Err(format!("'{keyword}' is not supported"));
                }
                "$id" | "id" if !is_root && value.is_string() => {
                    return Err("'$id' is supported at the beginning only".to_owned());
                }
                "not" | "if" | "then" | "else" => part.same.push(self.id(value, left)),
                "allOf" | "anyOf" | "oneOf" | "dependentSchemas" | "dependencies" => {
                    for schema in children(value).filter(|schema| schema.is_object() || schema.is_boolean()) {
                        part.same.push(self.id(schema, left));
                    }
                    part.own += size(value);
                }
                "additionalProperties"
                | "propertyNames"
                | "additionalItems"
                | "contains"
                | "contentSchema" => {
                    part.inside.push(self.id(value, left));
                }
                // What was looked at already is looked at again, to find what is left.
                "unevaluatedProperties" | "unevaluatedItems" => {
                    part.inside.push(self.id(value, left));
                    part.repeats = 2;
                }
                "items" if !value.is_array() => part.inside.push(self.id(value, left)),
                "items" | "prefixItems" | "properties" | "patternProperties" => {
                    if keyword == "patternProperties" {
                        let patterns = value.as_object().into_iter().flat_map(Map::keys);
                        patterns.into_iter().try_for_each(|pattern| self.count_pattern(pattern))?;
                    }
                    for schema in children(value) {
                        part.inside.push(self.id(schema, left));
                    }
                    part.own += 1;
                }
                "pattern" => {
                    self.count_pattern(value.as_str().unwrap_or_default())?;
                    part.own += 8;
                }
                // Reached by references only.
                "$defs" | "definitions" => {}
                _ => part.own += size(value),
            }
        }
        Ok(part)
    }

    fn count_pattern(&mut self, pattern: &str) -> Result<(), String> {
        self.patterns += 1;
        if self.patterns > SCHEMA_MAX_PATTERNS || pattern.len() > PATTERN_MAX_BYTES {
            return Err(format!(
                "it has more than {SCHEMA_MAX_PATTERNS} patterns, or one of more than {PATTERN_MAX_BYTES} bytes"
            ));
        }
        Ok(())
    }

    fn target(&self, reference: &Value) -> Result<&'s Value, String> {
        let text = reference.as_str().unwrap_or_default();
        let unsupported = || format!("'$ref' to '{}' leads to nothing inside the schema", cut(text, 100));
        let pointer = text.strip_prefix('#').ok_or_else(unsupported)?;
        // Names in a reference are written as in a URL; nobody needs that here, and it would be a second spelling.
        if pointer.contains('%') {
            return Err(unsupported());
        }
        self.root.pointer(pointer).ok_or_else(unsupported)
    }

    /// Steps of the whole schema, for arguments of each depth.
    pub(super) fn steps(&self) -> Result<Vec<u64>, String> {
        let order = self.order()?;
        let mut shallower: Vec<u64> = Vec::new();
        let mut steps = Vec::with_capacity(DEPTH_MAX + 1);
        for _ in 0..=DEPTH_MAX {
            let mut here = vec![0_u64; self.parts.len()];
            for id in &order {
                let part = &self.parts[*id];
                let sum =
                    |ids: &[usize], of: &[u64]| ids.iter().fold(0_u64, |sum, id| sum.saturating_add(of[*id]));
                let inside = if shallower.is_empty() { 0 } else { sum(&part.inside, &shallower) };
                let same = sum(&part.same, &here).saturating_mul(part.repeats);
                here[*id] = part.own.saturating_add(same).saturating_add(inside);
            }
            steps.push(here[0]);
            shallower = here;
        }
        Ok(steps)
    }

    /// The parts, each behind those that look at the same value as it does.
    fn order(&self) -> Result<Vec<usize>, String> {
        let mut waits = vec![0_usize; self.parts.len()];
        for part in &self.parts {
            part.same.iter().for_each(|id| waits[*id] += 1);
        }
        let mut order: Vec<usize> = (0..waits.len()).filter(|id| waits[*id] == 0).collect();
        let mut next = 0;
        while let Some(id) = order.get(next).copied() {
            next += 1;
            for id in &self.parts[id].same {
                waits[*id] -= 1;
                if waits[*id] == 0 {
                    order.push(*id);
                }
            }
        }
        if order.len() < waits.len() {
            return Err("a '$ref' leads back to itself without going into a value".to_owned());
        }
        order.reverse();
        Ok(order)
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(object) => Box::new(object.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Values in a value, itself included.
fn size(value: &Value) -> u64 {
    measure(value).1
}
