//! An extension that summarises a note: it reads the note from a fact and writes the summary into another.
//!
//! The summary is made of the note's own sentences, the same ones every time: those whose words are frequent in the
//! note, the first one with an advantage, in the order in which they stand.

#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolshelf_guest::extension::{Failure, Request, facts, log};

toolshelf_guest::extension!(summarise);

/// The fact of an entity that holds the note.
const NOTE: &str = "text";
/// The fact that the summary is written to.
const SUMMARY: &str = "summary";
/// Most sentences of a summary.
const MOST_SENTENCES: usize = 10;
/// Shorter words say little about what a note is about.
const SHORTEST_WORD: usize = 4;

#[derive(Deserialize)]
struct Args {
    /// Whose note.
    entity: String,
    #[serde(default = "few")]
    sentences: usize,
}

fn few() -> usize {
    2
}

#[derive(Serialize)]
struct Answer {
    summary: String,
    /// How many sentences it has, and how many the note has.
    sentences: usize,
    of: usize,
}

fn summarise(request: Request<Args>) -> Result<Answer, Failure> {
    let Args { entity, sentences } = request.args;
    if !(1..=MOST_SENTENCES).contains(&sentences) {
        return Err(format!("`sentences` is 1 to {MOST_SENTENCES}").into());
    }
    let note = facts::read(&entity, NOTE)?.ok_or_else(|| format!("{entity} has no fact `{NOTE}`"))?;
    let all = sentences_of(&note.value);
    let best = best(&all, sentences);
    let summary = best.join(" ");
    facts::store(&entity, SUMMARY, &summary)?;
    log::info(format_args!("{entity}: {} of {} sentences", best.len(), all.len()));
    Ok(Answer { sentences: best.len(), of: all.len(), summary })
}

/// The sentences of a text, without the white space around them.
fn sentences_of(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    for paragraph in text.split("\n\n") {
        let mut rest = paragraph;
        while let Some(end) = end_of_sentence(rest) {
            let (sentence, behind) = rest.split_at(end);
            sentences.push(sentence.trim());
            rest = behind;
        }
        sentences.push(rest.trim());
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// Behind the first full stop, question or exclamation mark that white space follows.
fn end_of_sentence(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let ends = matches!(char, '.' | '!' | '?');
        if ends && chars.peek().is_some_and(|(_, next)| next.is_whitespace()) {
            return Some(at + char.len_utf8());
        }
    }
    None
}

/// The sentences that say most, in their order.
fn best<'n>(sentences: &[&'n str], count: usize) -> Vec<&'n str> {
    let mut frequency: BTreeMap<String, usize> = BTreeMap::new();
    for word in sentences.iter().flat_map(|sentence| words(sentence)) {
        *frequency.entry(word).or_default() += 1;
    }
    // In thousandths, as whole numbers: the same on every machine.
    let score = |index: usize| {
        let (mut sum, mut words_seen) = (0, 0);
        for word in words(sentences[index]) {
            sum += frequency[&word];
            words_seen += 1;
        }
        let average = sum * 1_000 / words_seen.max(1);
        if index == 0 { average * 3 / 2 } else { average }
    };
    let mut ranked: Vec<usize> = (0..sentences.len()).collect();
    // Of equals the earlier one.
    ranked.sort_by_cached_key(|&index| Reverse(score(index)));
    ranked.truncate(count);
    ranked.sort_unstable();
    ranked.into_iter().map(|index| sentences[index]).collect()
}

/// The words that count, in lower case.
fn words(sentence: &str) -> impl Iterator<Item = String> {
    sentence
        .split(|char: char| !char.is_alphanumeric())
        .filter(|word| word.chars().count() >= SHORTEST_WORD)
        .map(str::to_lowercase)
}
