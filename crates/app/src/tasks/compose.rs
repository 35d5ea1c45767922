//! The text of a task, from what is in the form.

/// What is given for one argument.
pub(super) struct Argument {
    /// Its name.
    pub(super) name: &'static str,
    /// The text, or the path of the file.
    pub(super) text: String,
    /// Whether it is a file.
    pub(super) is_file: bool,
}

/// The task for a tool: plain text where that says it all, otherwise a JSON object of its arguments.
pub(super) fn for_tool(arguments: &[Argument], out: &str) -> String {
    match arguments {
        // A text that could be read as an object of arguments, or as no text at all, is quoted.
        [Argument { text, is_file: false, .. }]
            if out.is_empty() && !text.trim().is_empty() && !text.trim_start().starts_with('{') =>
        {
            text.clone()
        }
        _ => object(arguments, out),
    }
}

fn object(arguments: &[Argument], out: &str) -> String {
    let mut json = String::from("{");
    for Argument { name, text, is_file } in arguments {
        if json.len() > 1 {
            json.push_str(", ");
        }
        json.extend(["\"", name, if *is_file { "\": {\"file\": " } else { "\": " }]);
        quote(text, &mut json);
        if *is_file {
            json.push('}');
        }
    }
    if !out.is_empty() {
        json.push_str(if json.len() > 1 { ", \"out\": " } else { "\"out\": " });
        quote(out, &mut json);
    }
    json.push('}');
    json
}

fn quote(text: &str, json: &mut String) {
    json.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => json.extend(['\\', letter]),
            '\n' => json.push_str("\\n"),
            '\0'..' ' => {
                let code = u32::from(letter);
                json.push_str("\\u00");
                json.extend(
                    [code >> 4, code & 15].into_iter().filter_map(|digit| char::from_digit(digit, 16)),
                );
            }
            letter => json.push(letter),
        }
    }
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &'static str, text: &str) -> Argument {
        Argument { name, text: text.to_owned(), is_file: false }
    }

    fn file(name: &'static str, path: &str) -> Argument {
        Argument { name, text: path.to_owned(), is_file: true }
    }

    #[test]
    fn plain_text_stays_plain_where_nothing_else_could_be_meant() {
        let one = |input: &str, out: &str| for_tool(&[text("input", input)], out);
        assert_eq!(one("abc", ""), "abc");
        assert_eq!(one("[1]", ""), "[1]");
        assert_eq!(one("", ""), r#"{"input": ""}"#);
        assert_eq!(one(r#" {"a":1}"#, ""), r#"{"input": " {\"a\":1}"}"#);
        assert_eq!(one("abc", "o.txt"), r#"{"input": "abc", "out": "o.txt"}"#);
    }

    #[test]
    fn files_and_several_arguments_make_an_object() {
        assert_eq!(for_tool(&[file("input", "n/a.txt")], ""), r#"{"input": {"file": "n/a.txt"}}"#);
        let both = [text("a", "x\ny\u{1}\u{1f}é\\"), file("b", "n\".txt")];
        let expected = r#"{"a": "x\ny\u0001\u001fé\\", "b": {"file": "n\".txt"}, "out": "o"}"#;
        assert_eq!(for_tool(&both, "o"), expected);
    }
}
