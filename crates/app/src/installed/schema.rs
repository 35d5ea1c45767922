//! The fields of a form, from the JSON Schema of a tool's arguments; and the arguments, from what is in the fields.
//!
//! A field takes a text, a number, a choice, some of these one below the other, or a group of fields. Everything that is
//! none of this is written as JSON. The companion checks the arguments against the whole schema; what is checked here
//! is what a person is better told while they type.

use serde_json::{Map, Number, Value};

/// Most fields of a form; a schema with more is written as JSON.
const FIELDS_MAX: usize = 64;
/// Deepest group.
const DEPTH_MAX: usize = 3;
/// Most options of a choice; with more it is a text.
const CHOICES_MAX: usize = 200;

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// Its place in the form, such as `2` or `2-0`: unlike its name it can be an id.
    pub(crate) id: String,
    /// The argument's name.
    pub(crate) name: String,
    /// What it is, in the words of the schema.
    pub(crate) about: String,
    /// Whether it must be there.
    pub(crate) is_required: bool,
    /// What holds where it is left out, as a text.
    pub(crate) default: Option<String>,
    /// What it takes.
    pub(crate) kind: Kind,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// One value.
    One(Scalar),
    /// Values, one in each line.
    Many {
        /// What each is.
        item: Scalar,
        /// Fewest.
        fewest: u64,
        /// Most.
        most: Option<u64>,
    },
    /// Fields of an object.
    Group(Vec<Field>),
    /// Anything, as JSON.
    Json,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    /// A text of so many characters.
    Text {
        /// Fewest.
        shortest: u64,
        /// Most.
        longest: Option<u64>,
    },
    /// A number.
    Number {
        /// Whether it has no fraction.
        is_whole: bool,
        /// The least.
        least: Option<Bound>,
        /// The largest.
        largest: Option<Bound>,
    },
    /// Yes or no.
    Flag,
    /// One of these.
    Choice(Vec<Value>),
}

/// A bound of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bound {
    /// The number.
    pub(crate) at: f64,
    /// Whether the number itself is outside.
    pub(crate) is_outside: bool,
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The field.
    pub(crate) id: String,
    /// What is wrong, as a sentence.
    pub(crate) why: String,
}

/// The fields of a schema; nothing where the arguments have to be written as JSON.
pub(crate) fn fields(schema: &Value) -> Option<Vec<Field>> {
    let mut count = 0;
    group(schema, "", 0, &mut count).filter(|_| count <= FIELDS_MAX)
}

fn group(schema: &Value, above: &str, depth: usize, count: &mut usize) -> Option<Vec<Field>> {
    let properties = schema.get("properties")?.as_object()?;
    *count += properties.len();
    if *count > FIELDS_MAX || !matches!(type_of(schema), Some("object") | None) {
        return None;
    }
    let required: Vec<_> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut fields = Vec::new();
    for (at, (name, schema)) in properties.iter().enumerate() {
        let id = if above.is_empty() { at.to_string() } else { [above, "-", &at.to_string()].concat() };
        let words = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
        let about = [words("title"), words("description")].into_iter().filter(|text| !text.is_empty());
        fields.push(Field {
            about: about.collect::<Vec<_>>().join(" · "),
            is_required: required.contains(&name.as_str()),
            default: schema.get("default").map(plain),
            kind: kind(schema, &id, depth, count),
            name: name.clone(),
            id,
        });
    }
    // What must be there comes first; both parts keep their order.
    fields.sort_by_key(|field| !field.is_required);
    Some(fields)
}

fn kind(schema: &Value, id: &str, depth: usize, count: &mut usize) -> Kind {
    if let Some(scalar) = scalar(schema) {
        return Kind::One(scalar);
    }
    let whole = |key: &str| schema.get(key).and_then(Value::as_u64);
    match type_of(schema) {
        Some("array") => match schema.get("items").and_then(scalar) {
            Some(item) => {
                Kind::Many { item, fewest: whole("minItems").unwrap_or(0), most: whole("maxItems") }
            }
            None => Kind::Json,
        },
        Some("object") if depth + 1 < DEPTH_MAX => group(schema, id, depth + 1, count)
            .filter(|fields| !fields.is_empty())
            .map_or(Kind::Json, Kind::Group),
        _ => Kind::Json,
    }
}

/// One value; nothing for what takes more than one kind of value.
fn scalar(schema: &Value) -> Option<Scalar> {
    let is_scalar = |value: &Value| !value.is_array() && !value.is_object();
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let fits = !choices.is_empty() && choices.len() <= CHOICES_MAX && choices.iter().all(is_scalar);
        return fits.then(|| Scalar::Choice(choices.clone()));
    }
    if let Some(only) = schema.get("const").filter(|only| is_scalar(only)) {
        return Some(Scalar::Choice(vec![only.clone()]));
    }
    let whole = |key: &str| schema.get(key).and_then(Value::as_u64);
    match type_of(schema)? {
        "string" => {
            Some(Scalar::Text { shortest: whole("minLength").unwrap_or(0), longest: whole("maxLength") })
        }
        kind @ ("number" | "integer") => Some(Scalar::Number {
            is_whole: kind == "integer",
            least: bound(schema, "minimum", "exclusiveMinimum"),
            largest: bound(schema, "maximum", "exclusiveMaximum"),
        }),
        "boolean" => Some(Scalar::Flag),
        _ => None,
    }
}

fn bound(schema: &Value, inside: &str, outside: &str) -> Option<Bound> {
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    let outside = number(outside).map(|at| Bound { at, is_outside: true });
    outside.or_else(|| number(inside).map(|at| Bound { at, is_outside: false }))
}

/// The one kind of value that a schema names; `null` beside it does not count, a field that is left out stands for that.
fn type_of(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            let first = kinds.next()?;
            kinds.next().is_none().then_some(first)
        }
        _ => None,
    }
}

/// A value as it is typed: a text without quotes, all else as JSON.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The arguments. `typed` gives what is in the field of an id.
///
/// # Errors
/// What is wrong with each field that has something wrong.
pub(crate) fn arguments(
    fields: &[Field],
    typed: &dyn Fn(&str) -> String,
) -> Result<Map<String, Value>, Vec<Fault>> {
    let mut faults = Vec::new();
    let arguments = object(fields, typed, &mut faults);
    if faults.is_empty() { Ok(arguments) } else { Err(faults) }
}

fn object(fields: &[Field], typed: &dyn Fn(&str) -> String, faults: &mut Vec<Fault>) -> Map<String, Value> {
    let mut object = Map::new();
    for field in fields {
        match value(field, typed, faults) {
            Ok(Some(value)) => drop(object.insert(field.name.clone(), value)),
            Ok(None) => {}
            Err(why) => faults.push(Fault { id: field.id.clone(), why }),
        }
    }
    object
}

/// The value of a field; nothing for one that is left out.
fn value(
    field: &Field,
    typed: &dyn Fn(&str) -> String,
    faults: &mut Vec<Fault>,
) -> Result<Option<Value>, String> {
    if let Kind::Group(fields) = &field.kind {
        if !field.is_required && fields.iter().all(|field| is_untouched(field, typed)) {
            return Ok(None);
        }
        return Ok(Some(object(fields, typed, faults).into()));
    }
    let text = typed(&field.id);
    match &field.kind {
        Kind::Many { item, fewest, most } => many(item, *fewest, *most, &text, field.is_required),
        _ if text.trim().is_empty() => match (&field.kind, field.is_required) {
            (_, false) => Ok(None),
            // A text may be made of blanks alone.
            (Kind::One(Scalar::Text { shortest, .. }), true)
                if !text.is_empty() && *shortest <= text.len() as u64 =>
            {
                Ok(Some(text.into()))
            }
            (_, true) => Err("This is needed.".to_owned()),
        },
        Kind::One(scalar) => one(scalar, &text).map(Some),
        Kind::Json => json(&text).map(Some),
        Kind::Group(_) => Ok(None),
    }
}

fn is_untouched(field: &Field, typed: &dyn Fn(&str) -> String) -> bool {
    match &field.kind {
        Kind::Group(fields) => fields.iter().all(|field| is_untouched(field, typed)),
        _ => typed(&field.id).trim().is_empty(),
    }
}

fn many(
    item: &Scalar,
    fewest: u64,
    most: Option<u64>,
    text: &str,
    is_required: bool,
) -> Result<Option<Value>, String> {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() && !is_required {
        return Ok(None);
    }
    let count = lines.len() as u64;
    if count < fewest {
        return Err(["At least ", &fewest.to_string(), ", one in each line."].concat());
    }
    if let Some(most) = most.filter(|most| count > *most) {
        return Err(["At most ", &most.to_string(), ", one in each line."].concat());
    }
    let value = |(at, line): (usize, &&str)| {
        one(item, line).map_err(|why| ["Line ", &(at + 1).to_string(), ": ", &why].concat())
    };
    lines.iter().enumerate().map(value).collect::<Result<Vec<_>, _>>().map(|values| Some(values.into()))
}

fn one(scalar: &Scalar, text: &str) -> Result<Value, String> {
    match scalar {
        Scalar::Text { shortest, longest } => {
            let length = text.chars().count() as u64;
            if length < *shortest {
                return Err(["At least ", &shortest.to_string(), " characters."].concat());
            }
            match longest.filter(|longest| length > *longest) {
                Some(longest) => Err([
                    "At most ",
                    &longest.to_string(),
                    " characters; these are ",
                    &length.to_string(),
                    ".",
                ]
                .concat()),
                None => Ok(text.into()),
            }
        }
        Scalar::Number { is_whole, least, largest } => number(text.trim(), *is_whole, *least, *largest),
        Scalar::Flag => match text {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            _ => Err("Yes or no.".to_owned()),
        },
        Scalar::Choice(choices) => {
            choices.iter().find(|choice| plain(choice) == text).cloned().ok_or_else(|| {
                let choices: Vec<_> = choices.iter().take(10).map(plain).collect();
                ["One of ", &choices.join(", "), "."].concat()
            })
        }
    }
}

fn number(text: &str, is_whole: bool, least: Option<Bound>, largest: Option<Bound>) -> Result<Value, String> {
    let number = match (is_whole, text.parse::<i64>(), text.parse::<f64>()) {
        (_, Ok(whole), _) => Number::from(whole),
        (false, _, Ok(number)) if number.is_finite() => {
            Number::from_f64(number).ok_or_else(|| "This is no number.".to_owned())?
        }
        (true, ..) => return Err("This is no whole number.".to_owned()),
        (false, ..) => return Err("This is no number.".to_owned()),
    };
    let value = number.as_f64().unwrap_or_default();
    let words = |bound: Bound, beyond: &str, at: &str| {
        [if bound.is_outside { beyond } else { at }, &short(bound.at), "."].concat()
    };
    if let Some(bound) = least.filter(|bound| value < bound.at || (bound.is_outside && value <= bound.at)) {
        return Err(words(bound, "More than ", "At least "));
    }
    if let Some(bound) = largest.filter(|bound| value > bound.at || (bound.is_outside && value >= bound.at)) {
        return Err(words(bound, "Less than ", "At most "));
    }
    Ok(number.into())
}

/// A number as JSON writes it, and without a fraction where it has none.
fn short(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return (number as i64).to_string();
    }
    Number::from_f64(number).map(|number| number.to_string()).unwrap_or_default()
}

/// Reads JSON that a person has written.
///
/// # Errors
/// A sentence that says where it ends to be JSON.
pub(crate) fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|err| ["This is no JSON: ", &err.to_string(), "."].concat())
}

/// What a field takes, in a few words.
pub(crate) fn hint(field: &Field) -> String {
    let mut parts = Vec::new();
    match &field.kind {
        Kind::One(scalar) => parts.extend(scalar_hint(scalar)),
        Kind::Many { item, fewest, most } => {
            parts.push("one in each line".to_owned());
            parts.extend(scalar_hint(item));
            match (fewest, most) {
                (0, None) => {}
                (fewest, Some(most)) => parts.push([&fewest.to_string(), " to ", &most.to_string()].concat()),
                (fewest, None) => parts.push(["at least ", &fewest.to_string()].concat()),
            }
        }
        Kind::Json => parts.push("JSON".to_owned()),
        Kind::Group(_) => {}
    }
    if let Some(default) = field.default.as_ref().filter(|_| !field.is_required) {
        let default: String = default.chars().take(40).collect();
        let default = if default.is_empty() { "empty" } else { &default };
        parts.push([default, " where it is left out"].concat());
    }
    parts.join(", ")
}

fn scalar_hint(scalar: &Scalar) -> Option<String> {
    match scalar {
        Scalar::Text { shortest: 0, longest: None } | Scalar::Flag | Scalar::Choice(_) => None,
        Scalar::Text { shortest, longest: Some(longest) } => {
            Some([&shortest.to_string(), " to ", &longest.to_string(), " characters"].concat())
        }
        Scalar::Text { shortest, longest: None } => {
            Some(["at least ", &shortest.to_string(), " characters"].concat())
        }
        Scalar::Number { is_whole, least, largest } => {
            let kind = if *is_whole { "whole number" } else { "number" };
            let at = |bound: &Bound| short(bound.at);
            Some(match (least, largest) {
                (Some(least), Some(largest)) => [kind, ", ", &at(least), " to ", &at(largest)].concat(),
                (Some(least), None) => [kind, " from ", &at(least)].concat(),
                (None, Some(largest)) => [kind, " up to ", &at(largest)].concat(),
                (None, None) => kind.to_owned(),
            })
        }
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
