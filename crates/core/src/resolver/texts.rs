//! Finding the texts that a person meant in what was typed.

/// Words around texts that are no part of them.
const AROUND: [&str; 27] = [
    "these",
    "those",
    "this",
    "the",
    "two",
    "both",
    "texts",
    "text",
    "strings",
    "string",
    "lines",
    "files",
    "of",
    "and",
    "with",
    "to",
    "from",
    "against",
    "vs",
    "vs.",
    "between",
    "in",
    "is",
    "for",
    "me",
    "please",
    "following",
];
/// Words between two texts.
const BETWEEN: [&str; 6] = ["and", "with", "to", "against", "vs", "vs."];
const FENCE: &str = "```";

/// The one text: fenced, quoted, or all of it; `None` where there is nothing.
pub(super) fn one(rest: &str) -> Option<String> {
    let rest = rest.trim();
    if rest.is_empty() {
        return None;
    }
    if let Some((fenced, outside)) = fenced(rest)
        && let [lines] = &fenced[..]
        && is_around(&outside)
    {
        return Some(lines.strip_suffix('\n').unwrap_or(lines).to_owned());
    }
    let (quoted, outside) = quoted(rest);
    match &quoted[..] {
        [text] if outside.trim().is_empty() => Some(text.clone()),
        _ => Some(rest.to_owned()),
    }
}

/// The two texts; `None` where there are not just two.
pub(super) fn two(rest: &str) -> Option<[String; 2]> {
    if let Some((fenced, outside)) = fenced(rest) {
        return <[String; 2]>::try_from(fenced).ok().filter(|_| is_around(&outside));
    }
    if let Some(divided) = divided(rest) {
        return divided;
    }
    let (quoted, outside) = quoted(rest);
    if !quoted.is_empty() {
        return <[String; 2]>::try_from(quoted).ok().filter(|_| is_around(&outside));
    }
    two_words(rest)
}

/// What stands between lines of three backticks, each a text of whole lines, and what stands outside. `None` where there
/// are no fences, or one is not closed.
fn fenced(rest: &str) -> Option<(Vec<String>, String)> {
    let (mut texts, mut outside) = (Vec::new(), String::new());
    let mut open: Option<String> = None;
    for line in rest.lines() {
        match &mut open {
            None => match line.find(FENCE) {
                // What follows the fence on its line names a language.
                Some(at) => {
                    outside.push_str(&line[..at]);
                    open = Some(String::new());
                }
                None => {
                    outside.push_str(line);
                    outside.push('\n');
                }
            },
            Some(text) if line.trim() == FENCE => {
                texts.push(std::mem::take(text));
                open = None;
            }
            Some(text) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    (open.is_none() && !texts.is_empty()).then_some((texts, outside))
}

/// Two texts with one line of dashes between them. The outer `None` means that there is no such line, the inner one that
/// there are several.
fn divided(rest: &str) -> Option<Option<[String; 2]>> {
    let lines: Vec<&str> = rest.lines().collect();
    let is_divider = |line: &&str| line.len() >= 3 && line.bytes().all(|byte| byte == b'-');
    let mut dividers = lines.iter().enumerate().filter(|(_, line)| is_divider(line)).map(|(at, _)| at);
    let at = dividers.next()?;
    if dividers.next().is_some() {
        return Some(None);
    }
    let mut before = &lines[..at];
    if let [first, others @ ..] = before
        && is_around(first)
    {
        before = others;
    }
    let whole = |lines: &[&str]| {
        let text = lines.join("\n");
        let text = text.trim_matches('\n');
        if text.is_empty() { String::new() } else { [text.trim_start(), "\n"].concat() }
    };
    Some(Some([whole(before), whole(&lines[at + 1..])]))
}

/// The quoted texts, and what stands outside of them. In double quotes `\n`, `\t`, `\"` and `\\` are read as in JSON. A
/// quote that is not closed is no quote.
fn quoted(rest: &str) -> (Vec<String>, String) {
    let (mut texts, mut outside) = (Vec::new(), String::new());
    let chars: Vec<char> = rest.chars().collect();
    let mut at = 0;
    // Once a kind of quote was not closed, it is not looked for again: the time stays linear.
    let mut unclosed = Vec::new();
    while let Some(&char) = chars.get(at) {
        let closer = match char {
            '"' => Some('"'),
            '“' => Some('”'),
            // An apostrophe inside of a word opens nothing.
            '\'' if at == 0 || !chars[at - 1].is_alphanumeric() => Some('\''),
            _ => None,
        };
        let closer = closer.filter(|closer| !unclosed.contains(closer));
        match closer.map(|closer| (closer, closed(&chars, at + 1, closer))) {
            Some((_, Some((text, end)))) => {
                texts.push(text);
                outside.push(' ');
                at = end;
            }
            Some((closer, None)) => {
                unclosed.push(closer);
                outside.push(char);
                at += 1;
            }
            None => {
                outside.push(char);
                at += 1;
            }
        }
    }
    (texts, outside)
}

/// The text up to `closer`, and where it goes on after that.
fn closed(chars: &[char], start: usize, closer: char) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut at = start;
    while let Some(&char) = chars.get(at) {
        let next = chars.get(at + 1).copied();
        if char == '\\' && closer == '"' && matches!(next, Some('n' | 't' | '"' | '\\')) {
            text.push(match next {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => char,
            });
            at += 2;
            continue;
        }
        // The apostrophe in "it's" closes nothing.
        if char == closer && !(closer == '\'' && next.is_some_and(char::is_alphanumeric)) {
            return Some((text, at + 1));
        }
        text.push(char);
        at += 1;
    }
    None
}

/// `A B`, `A with B`, `between A and B`.
fn two_words(rest: &str) -> Option<[String; 2]> {
    let mut words: Vec<&str> = rest.split_whitespace().collect();
    if let [first, others @ ..] = &words[..]
        && others.len() > 1
        && ["between", "from"].contains(first)
    {
        words = others.to_vec();
    }
    if let [a, between, b] = words[..]
        && BETWEEN.contains(&between)
    {
        words = vec![a, b];
    }
    match words[..] {
        [a, b] if !is_around(a) || !is_around(b) => Some([a.to_owned(), b.to_owned()]),
        _ => None,
    }
}

/// Whether this is nothing but words around texts.
fn is_around(outside: &str) -> bool {
    let words = outside.split(|char: char| char.is_whitespace() || [':', ',', ';'].contains(&char));
    words.filter(|word| !word.is_empty()).all(|word| AROUND.contains(&&*word.to_lowercase()))
}
