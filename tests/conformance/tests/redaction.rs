//! How much of the corpus is redacted, and how little else.
#![allow(clippy::print_stdout, reason = "the figures are there to be read")]

use std::collections::HashSet;

use toolshelf_conformance::redaction::{Corpus, Sample, corpus};
use toolshelf_core::redact::redact;

/// Is no part of the secret left that is worth anything?
fn is_gone(sample: &Sample) -> bool {
    let left = redact(&sample.text()).into_owned();
    // Any four characters in a row are worth something, but for those that mark a shape or stand around the secret.
    let around = format!("{}\0{}\0{}", sample.before, sample.after, "[redacted]");
    let known = |piece: &str| around.contains(piece) || sample.secret[0].contains(piece);
    let secret: Vec<char> = sample.secret().chars().collect();
    let pieces = || secret.windows(4).map(|window| window.iter().collect::<String>());
    !left.contains(&sample.secret())
        && pieces().filter(|piece| !known(piece)).all(|piece| !left.contains(&piece))
}

#[test]
fn secrets_are_found() {
    let Corpus { secrets, .. } = corpus();
    assert!(secrets.len() >= 120);
    assert_eq!(secrets.iter().map(|sample| &sample.name).collect::<HashSet<_>>().len(), secrets.len());
    let (floor, beyond): (Vec<_>, Vec<_>) = secrets.iter().partition(|sample| sample.floor);
    let missed = |samples: &[&Sample]| {
        samples.iter().filter(|sample| !is_gone(sample)).map(|sample| sample.name.clone()).collect::<Vec<_>>()
    };
    let (floor_missed, beyond_missed) = (missed(&floor), missed(&beyond));
    let found = secrets.len() - floor_missed.len() - beyond_missed.len();
    let recall = 100.0 * found as f64 / secrets.len() as f64;
    println!("floor: {} of {} missed {floor_missed:?}", floor_missed.len(), floor.len());
    println!("beyond: {} of {} missed {beyond_missed:?}", beyond_missed.len(), beyond.len());
    println!("recall: {recall:.1} % of {}", secrets.len());
    assert!(floor_missed.is_empty(), "{floor_missed:?}");
    assert!(recall >= 95.0, "{recall} %: {beyond_missed:?}");
}

#[test]
fn what_stands_around_a_secret_stays() {
    for sample in corpus().secrets.iter().filter(|sample| is_gone(sample)) {
        let left = redact(&sample.text()).into_owned();
        assert!(left.starts_with(&sample.before), "{}: {left}", sample.name);
        assert!(left.ends_with(&sample.after), "{}: {left}", sample.name);
        assert_eq!(redact(&left), left, "{}", sample.name);
    }
}

#[test]
fn ordinary_texts_stay_as_they_are() {
    let Corpus { ordinary, .. } = corpus();
    assert!(ordinary.len() >= 150);
    let wrong: Vec<_> =
        ordinary.iter().map(|text| (text, redact(text))).filter(|(text, left)| left != *text).collect();
    println!("false positives: {} of {}", wrong.len(), ordinary.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_safety_costs_is_known() {
    for (text, left) in corpus().price {
        assert_eq!(redact(&text), left);
    }
}
