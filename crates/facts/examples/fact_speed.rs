//! Prints what the fact store in a file costs: `cargo run --release -p toolshelf-facts --example fact_speed`. Sizes of
//! the store may be given.
//!
//! A query's result is the same at every size of the store, so that one sees whether it costs more in a larger one.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use toolshelf_facts::{FactError, FactStore as _, Moment, NewFact, PrivacyRule, Query, RedbStore};

/// Facts below each entity prefix, and so in each query's result.
const GROUP: u64 = 100;
const SIZES: [u64; 3] = [1_000, 100_000, 1_000_000];
const READS: u64 = 400_000;
const QUERIES: u64 = 2_000;
const STORES: u64 = 200;
const BATCH: u64 = 10_000;

fn main() -> Result<(), FactError> {
    println!(
        "{:>9} {:>14} {:>14} {:>14} {:>14} {:>14} {:>14}",
        "facts", "fill/s", "reads/s", "query 100", "prefix 100", "store", "delete"
    );
    let given: Vec<u64> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    let sizes = if given.is_empty() { SIZES.to_vec() } else { given };
    sizes.into_iter().try_for_each(measure)
}

fn measure(facts: u64) -> Result<(), FactError> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("facts.redb");
    let store = RedbStore::open(&path, PrivacyRule::default())?;
    let fill = time(|| {
        for first in (0..facts).step_by(BATCH as usize) {
            let batch = (first..facts.min(first + BATCH)).map(fact).collect();
            block_on(store.store_bulk(batch, Moment::from_unix_ms(first)))?;
        }
        Ok(())
    })?;

    // A stride that visits every fact in no order that a cache would like.
    let scattered = |step: u64| step.wrapping_mul(0x9E37_79B9_7F4A_7C15) % facts;
    let reads = time(|| {
        for step in 0..READS {
            let index = scattered(step);
            let found = block_on(store.latest(&entity(index), "text"))?;
            assert_eq!(black_box(found).map(|fact| fact.version), Some(1));
        }
        Ok(())
    })?;
    let query = |text: Option<&str>| {
        time(|| {
            for step in 0..QUERIES {
                let query = Query {
                    prefix: Some(prefix(scattered(step))),
                    text: text.map(str::to_owned),
                    top_k: Some(100),
                    ..Query::default()
                };
                assert_eq!(black_box(block_on(store.query(&query))?).facts.len() as u64, GROUP);
            }
            Ok(())
        })
    };
    let (plain, with_text) = (query(None)?, query(Some("value"))?);

    let mut ids = Vec::new();
    let stores = time(|| {
        for step in 0..STORES {
            ids.push(block_on(store.store(fact(scattered(step)), Moment::from_unix_ms(facts)))?.fact_id);
        }
        Ok(())
    })?;
    let deletes = time(|| {
        for id in ids.iter().take(3) {
            block_on(store.delete(id))?;
        }
        Ok(())
    })?;
    println!(
        "{facts:>9} {:>14.0} {:>14.0} {:>14?} {:>14?} {:>14?} {:>14?}   {} MiB",
        facts as f64 / fill.as_secs_f64(),
        READS as f64 / reads.as_secs_f64(),
        with_text / QUERIES as u32,
        plain / QUERIES as u32,
        stores / STORES as u32,
        deletes / 3,
        std::fs::metadata(&path)?.len() >> 20,
    );
    drop(store);
    let reopened = time(|| RedbStore::open(&path, PrivacyRule::default()).map(drop))?;
    println!("{:>9} opened again in {reopened:?}", "");
    Ok(())
}

fn time(work: impl FnOnce() -> Result<(), FactError>) -> Result<Duration, FactError> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

fn prefix(index: u64) -> String {
    format!("notes::{:08}::", index / GROUP)
}

fn entity(index: u64) -> String {
    format!("{}{:03}", prefix(index), index % GROUP)
}

fn fact(index: u64) -> NewFact {
    NewFact::new(
        entity(index),
        "text",
        format!("The value of fact {index}, which is about as long as a short note is."),
    )
}
