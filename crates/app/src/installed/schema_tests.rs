//! Forms out of schemas, and arguments out of forms.

use serde_json::json;

use super::*;

/// What is typed into fields, by their names; a name of a group's field has the group's in front.
fn typed<'a>(fields: &'a [Field], given: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> String + 'a {
    fn name_of(fields: &[Field], id: &str, above: &str) -> Option<String> {
        fields.iter().find_map(|field| {
            let name = format!("{above}{}", field.name);
            match &field.kind {
                Kind::Group(below) => name_of(below, id, &format!("{name}.")),
                _ => (field.id == id).then_some(name),
            }
        })
    }
    move |id| {
        let name = name_of(fields, id, "").unwrap();
        given.iter().find(|given| given.0 == name).map(|given| given.1.to_owned()).unwrap_or_default()
    }
}

fn filled(schema: &Value, given: &[(&str, &str)]) -> Result<Value, Vec<String>> {
    let fields = fields(schema).unwrap();
    let arguments = arguments(&fields, &typed(&fields, given));
    arguments.map(Value::from).map_err(|faults| faults.into_iter().map(|fault| fault.why).collect())
}

fn note() -> Value {
    json!({
        "type": "object",
        "properties": {
            "sentences": {"type": "integer", "minimum": 1, "maximum": 10, "default": 2},
            "entity": {"type": "string", "description": "Whose note"},
        },
        "required": ["entity"],
    })
}

#[test]
fn the_fields_of_the_example_are_made_and_filled() {
    let fields = fields(&note()).unwrap();
    let shown: Vec<_> = fields.iter().map(|field| (&*field.name, field.is_required, hint(field))).collect();
    assert_eq!(
        shown,
        [
            ("entity", true, String::new()),
            ("sentences", false, "whole number, 1 to 10, 2 where it is left out".into())
        ]
    );
    assert_eq!(fields[0].about, "Whose note");
    assert_eq!(filled(&note(), &[("entity", "notes::1")]), Ok(json!({"entity": "notes::1"})));
    let both = [("entity", " notes::1"), ("sentences", " 3 ")];
    assert_eq!(filled(&note(), &both), Ok(json!({"entity": " notes::1", "sentences": 3})));
    assert_eq!(filled(&note(), &[]), Err(vec!["This is needed.".into()]));
    for (sentences, why) in [
        ("0", "At least 1."),
        ("11", "At most 10."),
        ("2.5", "This is no whole number."),
        ("x", "This is no whole number."),
    ] {
        let given = [("entity", "e"), ("sentences", sentences)];
        assert_eq!(filled(&note(), &given), Err(vec![why.into()]), "{sentences}");
    }
}

#[test]
fn every_kind_of_value_has_its_bounds() {
    let one = |schema: Value| json!({"properties": {"x": schema}, "required": ["x"]});
    for (schema, text, value) in [
        (json!({"type": "string"}), "7", json!("7")),
        (json!({"type": "string"}), "  ", json!("  ")),
        (json!({"type": ["string", "null"]}), "a", json!("a")),
        (json!({"type": "number"}), "2.5", json!(2.5)),
        (json!({"type": "number", "exclusiveMinimum": 0}), "1e-3", json!(0.001)),
        (json!({"type": "integer"}), "-9007199254740993", json!(-9_007_199_254_740_993_i64)),
        (json!({"type": "boolean"}), "true", json!(true)),
        (json!({"enum": ["a", 1, null, true]}), "1", json!(1)),
        (json!({"enum": ["a", 1, null, true]}), "null", json!(null)),
        (json!({"const": "only"}), "only", json!("only")),
        (json!({"type": "array", "items": {"type": "integer"}}), "1\n\n 2 \n", json!([1, 2])),
        (json!({"type": "array", "items": {"enum": ["a", "b"]}}), "b\na", json!(["b", "a"])),
        (json!({"type": "array", "items": {"type": "string"}}), "", json!([])),
        (json!({"type": "array", "items": {"type": "object"}}), "[{\"a\": 1}]", json!([{"a": 1}])),
        (json!({"anyOf": [{"type": "string"}, {"type": "number"}]}), "7", json!(7)),
        (json!({"type": "object"}), "{}", json!({})),
        (json!(true), "[null]", json!([null])),
    ] {
        assert_eq!(filled(&one(schema.clone()), &[("x", text)]), Ok(json!({ "x": value })), "{schema}");
    }
    for (schema, text, why) in [
        (json!({"type": "string", "minLength": 2}), "é", "At least 2 characters."),
        (json!({"type": "string", "maxLength": 2}), "abc", "At most 2 characters; these are 3."),
        (json!({"type": "number"}), "nan", "This is no number."),
        (json!({"type": "number"}), "inf", "This is no number."),
        (json!({"type": "number", "exclusiveMinimum": 0}), "0", "More than 0."),
        (json!({"type": "number", "exclusiveMaximum": 1.5}), "1.5", "Less than 1.5."),
        (json!({"type": "boolean"}), "", "This is needed."),
        (json!({"enum": ["a", "b"]}), "c", "One of a, b."),
        (
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 1}),
            "",
            "At least 1, one in each line.",
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}, "maxItems": 1}),
            "1\n2",
            "At most 1, one in each line.",
        ),
        (json!({"type": "array", "items": {"type": "integer"}}), "1\nb", "Line 2: This is no whole number."),
    ] {
        assert_eq!(filled(&one(schema.clone()), &[("x", text)]), Err(vec![why.into()]), "{schema}");
    }
    let why = filled(&one(json!({})), &[("x", "{")]).unwrap_err();
    assert!(why[0].starts_with("This is no JSON: ") && why[0].contains("line 1"), "{why:?}");
}

#[test]
fn groups_are_there_or_left_out_as_a_whole() {
    let schema = json!({"type": "object", "properties": {"range": {
        "type": "object", "required": ["from"],
        "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}, "how": {
            "type": "object", "properties": {"fast": {"type": "boolean"}, "deep": {
                "type": "object", "properties": {"deeper": {"type": "string"}}}}}},
    }}});
    assert_eq!(filled(&schema, &[]), Ok(json!({})));
    let given = [("range.from", "1"), ("range.how.fast", "false"), ("range.how.deep", "{\"deeper\": \"x\"}")];
    let whole = json!({"range": {"from": 1, "how": {"fast": false, "deep": {"deeper": "x"}}}});
    assert_eq!(filled(&schema, &given), Ok(whole));
    // One that is begun has to be whole.
    assert_eq!(filled(&schema, &[("range.to", "2")]), Err(vec!["This is needed.".into()]));
    let ids: Vec<_> = fields(&schema).unwrap().iter().map(|field| field.id.clone()).collect();
    assert_eq!(ids, ["0"]);
}

#[test]
fn what_makes_no_form_is_written_as_json() {
    for schema in
        [json!({}), json!(true), json!({"type": "array"}), json!({"properties": 7}), json!({"$ref": "#"})]
    {
        assert_eq!(fields(&schema), None, "{schema}");
    }
    let many: Map<String, Value> = (0..65).map(|at| (format!("f{at}"), json!({"type": "string"}))).collect();
    assert_eq!(fields(&json!({ "properties": many })), None);
    assert_eq!(fields(&json!({"type": "object", "properties": {}})), Some(Vec::new()));
}
