//! The extension `{{id}}`: counts the words of a note, and writes the count into a fact.

use serde::{Deserialize, Serialize};
use toolshelf_guest::extension::{Failure, Request, facts, log};

#[derive(Deserialize)]
struct Args {
    entity: String,
}

#[derive(Serialize)]
struct Answer {
    words: usize,
}

toolshelf_guest::extension!(count);

fn count(request: Request<Args>) -> Result<Answer, Failure> {
    let entity = &request.args.entity;
    let note = facts::read(entity, "text")?.ok_or("there is no such note")?;
    let words = count_words(&note.value);
    facts::store(entity, "words", &words.to_string())?;
    log::info(format_args!("{entity} has {words} words"));
    Ok(Answer { words })
}

fn count_words(text: &str) -> usize {
    text.split_whitespace().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted() {
        assert_eq!(count_words(" one  two\nthree "), 3);
    }
}
