//! Values that are given to a name: `name = value`, `name: value`, header lines, options and elements.

use std::ops::Range;

use super::REDACTED;
use super::rules::{ALNUM, DASH, DIGIT, DOT, NAME_ENDS, PLAIN_VALUES, RANDOM_MAX, UPPER, Wanted, class};
use super::scan::{Scanner, is_reference};

/// Blanks that may stand around an operator.
const BLANKS_MAX: usize = 64;
/// A name or a type may be so long.
const NAME_MAX: usize = 64;
/// What may stand around a value.
const QUOTES: &[u8] = b"\"'`";
/// What may stand before a literal, with nothing between.
const PREFIXES: [&str; 8] = ["b", "r", "f", "u", "c", "L", "rb", "br"];

impl Scanner<'_> {
    /// A value behind the `=` or `:` that the scanner stands on.
    pub(super) fn assignment(&mut self) -> Option<Range<usize>> {
        let operator = self.at;
        let (wanted, name) = self.name_before(operator, true)?;
        let colon = self.bytes[operator] == b':';
        let next = self.bytes.get(operator + 1);
        let (length, quoted_only) = match (colon, next) {
            (true, Some(b':')) => return None,
            (true, Some(b'=')) => (2, false),
            // Compared, or the arrow of a pair or a closure: then only a literal says anything.
            (false, Some(b'=')) => (if self.bytes.get(operator + 2) == Some(&b'=') { 3 } else { 2 }, true),
            (false, Some(b'>')) => (2, true),
            _ => (1, false),
        };
        let mut start = self.blanks(operator + length);
        while self.bytes.get(start) == Some(&b'*') && self.bytes.get(start + 1) == Some(&b'*') {
            start = self.blanks(start + 2);
        }
        if wanted == Wanted::Line {
            return if colon && length == 1 { self.line(start, name) } else { None };
        }
        if let Some(value) = self.quoted(start) {
            return self.fitting(value, wanted);
        }
        if quoted_only {
            return None;
        }
        self.unquoted(start, wanted, colon)
    }

    /// A value behind an option of a command: `--token value`. The scanner stands on the blank.
    pub(super) fn option(&mut self) -> Option<Range<usize>> {
        let (wanted, end) = self.name_before(self.at, false)?;
        let name = self.name_start(end, ALNUM | DASH);
        if wanted == Wanted::Line || !self.text_at(name, "--") {
            return None;
        }
        let start = self.blanks(self.at);
        if let Some(value) = self.quoted(start) {
            return self.fitting(value, wanted);
        }
        let value = start..self.run(start, usize::MAX, |byte| !ends_value(byte));
        self.fitting(value, Wanted::Random(6))
    }

    /// The text of an element that is named like a secret: `<password>value</password>`.
    pub(super) fn element(&mut self) -> Option<Range<usize>> {
        let (_, end) = self.name_before(self.at, false)?;
        let name = self.name_start(end, ALNUM | DASH | DOT);
        // `<key>` is how lists of properties and listings of stores name what is no secret.
        if name <= self.edge || self.bytes[name - 1] != b'<' || end - name <= 3 {
            return None;
        }
        let start = self.at + 1;
        let value = start..self.run(start, usize::MAX, |byte| byte != b'<' && !byte.is_ascii_whitespace());
        if self.text_at(value.end, "<") { self.fitting(value, Wanted::Any) } else { None }
    }

    /// What the name before `end` asks for, and where the name ends. Between the two may stand what belongs to a name
    /// in some language: blanks, a closing quote with its escapes, an index's bracket, a mark of optionality.
    fn name_before(&mut self, end: usize, loose: bool) -> Option<(Wanted, usize)> {
        let before = &self.bytes[self.edge..end];
        let back = |before: &[u8], max: usize, set: &[u8]| {
            before.len() - before.iter().rev().take(max).take_while(|byte| set.contains(byte)).count()
        };
        let mut length = before.len();
        if loose {
            length = back(&before[..length], BLANKS_MAX, b" \t");
            length = back(&before[..length], 4, b"?!*");
            length = back(&before[..length], 1, b"]");
            length = back(&before[..length], 1, b"[\"'`");
            length = back(&before[..length], 4, b"\\");
        }
        self.steps += before.len() - length + NAME_ENDS.len();
        let name = &before[..length];
        let last = name.last()?;
        if !last.is_ascii_alphabetic() {
            return None;
        }
        NAME_ENDS.iter().find_map(|(word, wanted)| {
            let start = name.len().checked_sub(word.len())?;
            let fits = name[start..].eq_ignore_ascii_case(word.as_bytes())
                && (!matches!(wanted, Wanted::Random(_)) || stands_alone(name, start));
            fits.then_some((*wanted, self.edge + length))
        })
    }

    fn blanks(&mut self, at: usize) -> usize {
        self.run(at, usize::MAX, |byte| byte == b' ' || byte == b'\t')
    }

    /// The value of a header: to the end of the line, or of the literal that it stands in.
    fn line(&mut self, start: usize, name_end: usize) -> Option<Range<usize>> {
        if let Some(value) = self.quoted(start) {
            return self.fitting(value, Wanted::Any);
        }
        let opener = self.name_start(name_end, ALNUM | DASH).checked_sub(1).map(|before| self.bytes[before]);
        let closed = self.bytes.get(name_end).is_some_and(|byte| opener == Some(*byte));
        let quote = opener.filter(|byte| QUOTES.contains(byte) && !closed);
        let mut end = start;
        while let Some(&byte) = self.bytes.get(end) {
            // A text inside of a literal writes its line ends as escapes.
            let escape = byte == b'\\'
                && (self.bytes.get(end + 1).is_some_and(|next| b"nr".contains(next))
                    || self.text_at(end + 1, REDACTED));
            if byte == b'\n' || byte == b'\r' || escape || Some(byte) == quote {
                break;
            }
            end += 1;
        }
        self.steps += end - start;
        let value = self.text[start..end].trim_end_matches(['\\', ' ', '\t']);
        self.fitting(start..start + value.len(), Wanted::Any)
    }

    /// Where the name that ends at `end` begins.
    fn name_start(&mut self, end: usize, set: u8) -> usize {
        let name = self.bytes[self.edge..end].iter().rev().take(NAME_MAX);
        end - name.take_while(|&&byte| class(byte) & set != 0).count()
    }

    /// What stands between the quotes at `at`, which may be escaped or tripled. A quote that is not closed on its line
    /// reaches to the end of it.
    fn quoted(&mut self, at: usize) -> Option<Range<usize>> {
        let open = self.run(at, 4, |byte| byte == b'\\');
        let escapes = open - at;
        if self.text_at(at, "&quot;") {
            let start = at + 6;
            return Some(
                start..self.run(start, usize::MAX, |byte| !byte.is_ascii_whitespace() && byte != b'&'),
            );
        }
        let quote = *self.bytes.get(open).filter(|byte| QUOTES.contains(byte))?;
        let start = open + 1;
        if escapes == 0 && self.bytes.get(start) == Some(&quote) && self.bytes.get(start + 1) == Some(&quote)
        {
            let start = start + 2;
            let triple = &self.text[open..start];
            let length = self.text[start..].find(triple).unwrap_or(self.text.len() - start);
            self.steps += length;
            return Some(start..start + length);
        }
        let (mut end, mut slashes) = (start, 0);
        while let Some(&byte) = self.bytes.get(end) {
            match byte {
                b'\n' | b'\r' => break,
                b'\\' => slashes += 1,
                _ if byte == quote && (if escapes == 0 { slashes % 2 == 0 } else { slashes <= escapes }) => {
                    end -= if escapes == 0 { 0 } else { slashes };
                    break;
                }
                _ => slashes = 0,
            }
            end += 1;
        }
        self.steps += end - start;
        Some(start..end.max(start))
    }

    /// A value without quotes: to a blank or the end of an item.
    fn unquoted(&mut self, start: usize, wanted: Wanted, colon: bool) -> Option<Range<usize>> {
        let mut from = start;
        if self.text_at(start, "{") {
            // `{SSHA}` and its like say how a password was hashed; anything else in braces is a structure.
            let scheme = self.run(start + 1, 16, |byte| class(byte) & (UPPER | DIGIT | DASH) != 0);
            if scheme == start + 1 || !self.text_at(scheme, "}") {
                return None;
            }
            from = scheme + 1;
        }
        let name = self.path(start);
        let opened = self.text_at(name, "(") || self.text_at(name, "[");
        // A literal behind its prefix, as in b"..." and r'...', or in the call that takes it.
        if (opened || PREFIXES.contains(&&self.text[start..name]))
            && self.bytes.get(name + usize::from(opened)).is_some_and(|byte| QUOTES.contains(byte))
        {
            let value = self.quoted(name + usize::from(opened))?;
            return self.fitting(value, wanted);
        }
        // A call is code, also when an earlier pass found a secret in its name.
        let call = self.text_at(name, "(")
            && (self.bytes[start].is_ascii_alphabetic() || self.text_at(start, REDACTED));
        if call || self.text_at(start, "${") || self.text_at(start, "$(") {
            return None;
        }
        let mut end = self.run(from, usize::MAX, |byte| !ends_value(byte));
        let value = &self.text[start..end];
        let plain = PLAIN_VALUES
            .iter()
            .any(|plain| plain.eq_ignore_ascii_case(value.trim_end_matches([')', ':', ']'])));
        if colon && (plain || value.is_empty()) {
            return self.typed(start);
        }
        if plain {
            return None;
        }
        if self.bytes.get(end).is_some_and(|byte| QUOTES.contains(byte)) {
            // The escapes belong to the quote.
            end = start + value.trim_end_matches('\\').len();
        }
        self.fitting(start..end, wanted)
    }

    /// End of the names that lead to a function, as in `a.b::c->d`.
    fn path(&mut self, start: usize) -> usize {
        let (mut end, mut left) = (start, NAME_MAX);
        while left > 0 {
            let next = self.run(end, left, |byte| byte.is_ascii_alphanumeric() || b"_.:>&-".contains(&byte));
            left -= next - end;
            end = next;
            if left == 0 || !self.text_at(end, REDACTED) {
                break;
            }
            left -= 1;
            end += REDACTED.len();
        }
        end
    }

    /// A literal behind the type of a variable: `token: &str = "..."`.
    fn typed(&mut self, start: usize) -> Option<Range<usize>> {
        let lead = ["&'static ", "&mut ", "&", "[]"].iter().find(|lead| self.text_at(start, lead));
        let start = start + lead.map_or(0, |lead| lead.len());
        let end = self.run(start, NAME_MAX, |byte| byte.is_ascii_alphanumeric() || b"<>".contains(&byte));
        let equals = self.blanks(end);
        if !self.text_at(equals, "=") {
            return None;
        }
        let start = self.blanks(equals + 1);
        let value = self.quoted(start)?;
        self.fitting(value, Wanted::Any)
    }

    /// `value`, when it is there, is not yet replaced, and looks as its name wants it.
    fn fitting(&mut self, value: Range<usize>, wanted: Wanted) -> Option<Range<usize>> {
        let text = &self.text[value.clone()];
        self.steps += text.len();
        let speaks = text.bytes().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
        let fits = match wanted {
            Wanted::Any | Wanted::Line => true,
            Wanted::Random(min) => is_random(text, min),
        };
        (speaks && fits && !self.is_redacted(&value) && !is_reference(text)).then_some(value)
    }
}

/// What ends a value without quotes.
fn ends_value(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b",;&\"'}".contains(&byte)
}

/// Is the end of `name` from `start` on a word of its own, and no end of a longer one?
fn stands_alone(name: &[u8], start: usize) -> bool {
    let Some(before) = start.checked_sub(1).map(|at| name[at]) else { return true };
    !before.is_ascii_alphabetic() || (before.is_ascii_lowercase() && name[start].is_ascii_uppercase())
}

/// Letters and digits, without blanks, and no path; or too long for anything else.
fn is_random(text: &str, min: usize) -> bool {
    let any = |test: fn(&u8) -> bool| text.bytes().any(|byte| test(&byte));
    let mixed = any(u8::is_ascii_digit)
        && any(u8::is_ascii_alphabetic)
        && !any(u8::is_ascii_whitespace)
        && !text.starts_with(['/', '.', '~', '-', '<', '$', '{'])
        && !text.contains(":\\");
    // What an earlier pass replaced a part of was judged then.
    text.len() >= min && (mixed || text.len() > RANDOM_MAX) && !text.contains(REDACTED)
}
