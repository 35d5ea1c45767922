//! Names below a prefix: one search in the tree for each, however much lies below it.

use super::record::Record;
use super::snapshot::Snapshot;
use crate::browse::{BrowseRequest, Names, Step, Walk};
use crate::port::FactError;

pub(super) fn browse(snapshot: &Snapshot, request: &BrowseRequest) -> Result<Names, FactError> {
    let prefix = request.prefix.as_bytes();
    let mut walk = Walk::new(request);
    let mut from = walk.start();
    'from: loop {
        for entry in snapshot.latest.range(from.as_slice()..)? {
            let (name, bytes) = entry?;
            if !name.value().starts_with(prefix) {
                break 'from;
            }
            let found = Record::read(bytes.value())?.candidate();
            match walk.offer(found.entity, found.private) {
                Step::On => {}
                Step::Past(beyond) => {
                    from = beyond;
                    continue 'from;
                }
                Step::Full => return Ok(walk.finish(false)),
            }
        }
        break;
    }
    Ok(walk.finish(true))
}
