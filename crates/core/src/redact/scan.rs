//! One pass over a text, from left to right: what is replaced is never looked at again.
//!
//! A text that has been redacted before is scanned as it was then: `[redacted]` is stepped over as a whole, and what
//! stands before it counts for nothing behind it. So a second pass finds nothing that the first did not.

use std::ops::Range;

use super::REDACTED;
use super::rules::{
    ALNUM, BASE64, CHAINS, DOT, Part, RANDOM_MAX, SHAPES, Shape, TELEGRAM, TILDE, URL64, class,
};

/// The state of the pass.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    /// The byte that is looked at.
    pub(super) at: usize,
    /// End of what was replaced last; nothing before it is context.
    pub(super) edge: usize,
    /// A value that comes after words which are to be looked at first.
    later: Option<Range<usize>>,
    /// No JWT begins before this.
    no_jwt: usize,
    /// How often a byte was looked at, within a constant.
    pub(super) steps: usize,
}

/// Replaces everything that the tables know. `None` when there is nothing; the steps that it took come with it.
pub(super) fn scrub(text: &str) -> (Option<String>, usize) {
    let mut scanner =
        Scanner { text, bytes: text.as_bytes(), at: 0, edge: 0, later: None, no_jwt: 0, steps: 0 };
    let mut out = String::new();
    let mut copied = 0;
    while let Some(secret) = scanner.next_secret() {
        out.push_str(&text[copied..secret.start]);
        out.push_str(REDACTED);
        copied = secret.end;
    }
    ((copied > 0).then(|| out + &text[copied..]), scanner.steps)
}

impl Scanner<'_> {
    /// The next range to replace.
    fn next_secret(&mut self) -> Option<Range<usize>> {
        while let Some(&byte) = self.bytes.get(self.at) {
            self.steps += 1;
            let due = self.later.take_if(|later| later.start <= self.at);
            let found = match byte {
                _ if due.as_ref().is_some_and(|later| later.start == self.at) => due,
                b'[' if self.text_at(self.at, REDACTED) => {
                    self.at += REDACTED.len();
                    self.edge = self.at;
                    continue;
                }
                b':' if self.text_at(self.at, "://") => self.url(self.at + 3),
                b':' | b'=' => self.assignment().and_then(|found| self.in_turn(found)),
                b' ' => self.option(),
                b'>' => self.element(),
                _ if byte.is_ascii_alphanumeric() && !self.inside_word() => self.word(),
                _ => None,
            };
            if let Some(secret) = found {
                self.at = secret.end;
                self.edge = secret.end;
                return Some(secret);
            }
            self.at += 1;
        }
        None
    }

    /// Puts off a value with words before it, until these have been looked at.
    fn in_turn(&mut self, found: Range<usize>) -> Option<Range<usize>> {
        if let Some(later) = &self.later {
            return (found.end <= later.start).then_some(found);
        }
        if self.bytes[self.at..found.start].iter().any(u8::is_ascii_alphanumeric) {
            self.later = Some(found);
            return None;
        }
        Some(found)
    }

    fn inside_word(&self) -> bool {
        self.at > self.edge && self.bytes[self.at - 1].is_ascii_alphanumeric()
    }

    pub(super) fn text_at(&self, at: usize, text: &str) -> bool {
        self.bytes[at..].starts_with(text.as_bytes())
    }

    /// Is all of this range what stands for a secret?
    pub(super) fn is_redacted(&self, range: &Range<usize>) -> bool {
        self.bytes[range.clone()] == *REDACTED.as_bytes()
    }

    /// End of the run from `at` of bytes that `fits` accepts, of at most `max` bytes.
    pub(super) fn run(&mut self, at: usize, max: usize, fits: impl Fn(u8) -> bool) -> usize {
        let length = self.bytes[at..].iter().take(max).take_while(|&&byte| fits(byte)).count();
        self.steps += length + 1;
        at + length
    }

    /// A word: an authentication scheme with its token, or a published shape.
    fn word(&mut self) -> Option<Range<usize>> {
        let at = self.at;
        if let Some(found) = self.scheme() {
            return Some(found);
        }
        if self.bytes[at].is_ascii_digit()
            && let Some(end) = self.shape(&TELEGRAM)
        {
            return Some(at..end);
        }
        let mut next = CHAINS.0[usize::from(self.bytes[at])];
        while let Some(index) = next {
            let shape = &SHAPES[usize::from(index)];
            if let Some(end) = self.shape(shape) {
                // Of an address the host is worth keeping.
                let kept = if shape.first.lead.contains('/') { shape.first.lead.len() } else { 0 };
                return Some(at + kept..end);
            }
            next = CHAINS.1[usize::from(index)];
        }
        None
    }

    /// End of the shape, when it stands here.
    fn shape(&mut self, shape: &Shape) -> Option<usize> {
        self.steps += 1;
        let start = self.at;
        let endless = !shape.rest.is_empty() && shape.first.max == usize::MAX;
        if endless && start < self.no_jwt {
            return None;
        }
        let mut end = self.part(start, &shape.first)?;
        let first_end = end;
        let mut last = (start, &shape.first);
        for part in shape.rest {
            last = (end, part);
            let Some(next) = self.part(end, part) else {
                if endless {
                    // The same run cannot begin one further on either.
                    self.no_jwt = first_end;
                }
                return None;
            };
            end = next;
        }
        // The dot behind a token ends the sentence.
        let end = start + self.text[start..end].trim_end_matches('.').len();
        let enough = last.1.min == 0 || end >= last.0 + last.1.lead.len() + last.1.min;
        let digits = || self.bytes[start..end].iter().any(u8::is_ascii_digit);
        (enough && (!shape.digit || end - start > RANDOM_MAX || digits())).then_some(end)
    }

    fn part(&mut self, at: usize, part: &Part) -> Option<usize> {
        if !self.text_at(at, part.lead) {
            return None;
        }
        let start = at + part.lead.len();
        let end = self.run(start, part.max.saturating_add(1), |byte| class(byte) & part.set != 0);
        // Where an earlier pass cut a run, the run was longer then.
        let cut = part.max != usize::MAX && self.text_at(end, REDACTED);
        (!cut && (part.min..=part.max).contains(&(end - start))).then_some(end)
    }

    /// `Bearer` or `Basic`, and what follows when it is no word of a sentence.
    fn scheme(&mut self) -> Option<Range<usize>> {
        let named = |name: &str| {
            self.bytes[self.at..]
                .get(..name.len())
                .is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        let (length, basic) = if named("bearer") {
            (6, false)
        } else if named("basic") {
            (5, true)
        } else {
            return None;
        };
        let start = self.run(self.at + length, 64, |byte| byte == b' ' || byte == b'\t');
        if start == self.at + length {
            return None;
        }
        let end = self.run(start, usize::MAX, |byte| class(byte) & (URL64 | DOT | BASE64 | TILDE) != 0);
        let token = self.text[start..end].trim_end_matches('.');
        let secret = if basic { is_basic(token) } else { is_bearer(token) };
        // What was left of a token by an earlier pass is judged as it was then.
        (secret && !self.text_at(end, REDACTED)).then(|| start..start + token.len())
    }

    /// The user and password of an address.
    fn url(&mut self, start: usize) -> Option<Range<usize>> {
        let (mut at, mut colon, mut last) = (start, None, None);
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'/' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' => break,
                _ if byte.is_ascii_whitespace() => break,
                b'?' | b'#' if self.is_port(colon, at) => break,
                b':' if colon.is_none() => colon = Some(at),
                b'@' => last = Some(at),
                _ => {}
            }
            at += 1;
        }
        self.steps += at - start;
        let end = last?;
        let whole = start..end;
        let password = colon.filter(|&colon| colon < end).map(|colon| colon + 1..end);
        let secret = match &password {
            Some(range) => {
                !range.is_empty() && !self.is_redacted(range) && !is_reference(&self.text[range.clone()])
            }
            // A token in the place of the user.
            None => {
                let user = &self.text.as_bytes()[whole.clone()];
                user.len() >= 20
                    && user.iter().all(|&byte| class(byte) & URL64 != 0)
                    && user.iter().any(u8::is_ascii_digit)
            }
        };
        (secret && !self.is_redacted(&whole)).then_some(whole)
    }

    fn is_port(&self, colon: Option<usize>, end: usize) -> bool {
        colon.is_none_or(|colon| self.bytes[colon + 1..end].iter().take(6).all(u8::is_ascii_digit))
    }
}

/// Is it a name in braces or brackets, which stands for a value that comes from elsewhere?
pub(super) fn is_reference(value: &str) -> bool {
    let inside = |open: &str, close: &str| value.strip_prefix(open)?.strip_suffix(close);
    let name = [("${", "}"), ("{", "}"), ("$(", ")"), ("<", ">")]
        .iter()
        .find_map(|(open, close)| inside(open, close));
    let named =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" _-.{}[]".contains(&byte));
    name.is_some_and(named) || (value.len() <= 3 && value.starts_with('%'))
}

/// Does a token stand behind `Bearer`, or the next word of a sentence?
fn is_bearer(token: &str) -> bool {
    let bytes = token.as_bytes();
    let any = |test: fn(&u8) -> bool| bytes.iter().any(test);
    let mixed = any(u8::is_ascii_lowercase) && bytes.iter().skip(1).any(u8::is_ascii_uppercase);
    let long = bytes.len() >= 20 && bytes.iter().all(|&byte| class(byte) & (ALNUM | DOT) != 0);
    bytes.len() >= 6 && (any(u8::is_ascii_digit) || mixed || long || any(|&byte| byte == b'='))
}

/// Do credentials stand behind `Basic`: in base64, a user, a colon and a password?
fn is_basic(token: &str) -> bool {
    let bytes = token.as_bytes();
    let any = |test: fn(&u8) -> bool| bytes.iter().any(test);
    let mixed = any(u8::is_ascii_lowercase) && bytes.iter().skip(1).any(u8::is_ascii_uppercase);
    let random = bytes.len() >= 8 && mixed && any(u8::is_ascii_digit);
    bytes.len() >= 6 && (random || token.ends_with('=') || holds_colon(bytes))
}

/// Is there a colon in what `base64` says, and nothing but printable ASCII before it?
fn holds_colon(base64: &[u8]) -> bool {
    let (mut bits, mut held) = (0u32, 0);
    for &digit in base64 {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return false,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            match (bits >> held) as u8 {
                b':' => return true,
                b' '..=b'~' => {}
                _ => return false,
            }
        }
    }
    false
}
