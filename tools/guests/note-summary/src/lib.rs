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

const FNV_START: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

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

/// The sentences of a text, without the white space around them. One ends with a full stop, question or exclamation
/// mark that white space follows, or with an empty line.
fn sentences_of(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, pair) in bytes.windows(2).enumerate() {
        if matches!(pair, [b'.' | b'!' | b'?', next] if next.is_ascii_whitespace()) || pair == b"\n\n" {
            sentences.push(text[start..=at].trim());
            start = at + 1;
        }
    }
    sentences.push(text[start..].trim());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// The sentences that say most, in their order.
fn best<'n>(sentences: &[&'n str], count: usize) -> Vec<&'n str> {
    let words: Vec<Vec<u32>> = sentences.iter().map(|sentence| words(sentence)).collect();
    let mut occurrences: BTreeMap<u32, usize> = BTreeMap::new();
    for &word in words.iter().flatten() {
        *occurrences.entry(word).or_default() += 1;
    }
    // In thousandths, as whole numbers: the same on every machine.
    let score = |index: usize| {
        let words = &words[index];
        let sum: usize = words.iter().map(|word| occurrences[word]).sum();
        let average = sum * 1_000 / words.len().max(1);
        if index == 0 { average * 3 / 2 } else { average }
    };
    let mut ranked: Vec<usize> = (0..sentences.len()).collect();
    // Of equals the earlier one.
    ranked.sort_by_cached_key(|&index| Reverse(score(index)));
    ranked.truncate(count);
    ranked.sort_unstable();
    ranked.into_iter().map(|index| sentences[index]).collect()
}

/// The words that count, as numbers (FNV-1a of the word in lower case): to compare numbers costs less fuel than texts.
fn words(sentence: &str) -> Vec<u32> {
    let mut words = Vec::new();
    let (mut number, mut letters) = (FNV_START, 0);
    for byte in sentence.bytes().chain([b' ']) {
        // All of a character outside of ASCII counts as letters.
        if byte.is_ascii_alphanumeric() || !byte.is_ascii() {
            number = (number ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(FNV_PRIME);
            letters += 1;
        } else {
            if letters >= SHORTEST_WORD {
                words.push(number);
            }
            (number, letters) = (FNV_START, 0);
        }
    }
    words
}
