//! The shelf's folder, watched: what changes on disk is read again, and whoever watches the companion hears of it.
//!
//! The folder is looked at twice a second. A watch of the kernel would hold on to one folder, and would not see it being
//! swapped for another, reached by another link, or made after the start; looking sees all of that, on every file system.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use toolshelf_host::Reading;

use crate::service::Service;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// So many looks in a row may find something new before it is told although it goes on changing.
const UNSETTLED_LOOKS: u32 = 10;

/// What tells one state of a file from another: device, inode, size, and the times of its last changes.
type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));
/// What a look has found, by path.
type Seen = BTreeMap<PathBuf, Option<Stamp>>;

/// Watches the shelf's folder for as long as it is polled.
pub(crate) async fn watch(service: Service) {
    Watch::begin(service).await.go_on().await;
}

/// A watch that has taken its first look: whatever changes from now on is seen.
pub(crate) struct Watch {
    service: Service,
    seen: Seen,
    unsettled: u32,
}

impl Watch {
    pub(crate) async fn begin(service: Service) -> Self {
        let before = look(paths(&service, &[])).await;
        let readings = service.readings().await.unwrap_or_default();
        let seen = look(paths(&service, &readings)).await;
        // What has changed while it was read is read once more.
        let unsettled = u32::from(!is_as_before(&before, &seen));
        Self { service, seen, unsettled }
    }

    /// Goes on looking, for as long as it is polled.
    pub(crate) async fn go_on(self) {
        let Self { service, mut seen, mut unsettled } = self;
        loop {
            sleep(LOOK).await;
            let now = look(seen.keys().cloned().collect()).await;
            service.tell_agents().await;
            // Something that is being written is told when it is done, unless that never comes.
            let settled = now == seen || unsettled >= UNSETTLED_LOOKS;
            if now != seen {
                unsettled += 1;
            }
            seen = now;
            if unsettled > 0 && settled {
                let readings = service.shelf_changed().await.unwrap_or_else(|refusal| {
                    let refused = refusal.code.as_str();
                    tracing::warn!(refused, why = refusal.why, "the shelf cannot be read again");
                    Vec::new()
                });
                service.tell_agents().await;
                let read = look(paths(&service, &readings)).await;
                // What has changed while it was read is told once more.
                unsettled = u32::from(!is_as_before(&seen, &read));
                seen = read;
            }
        }
    }
}

/// Whether all that both have looked at is the same.
fn is_as_before(before: &Seen, now: &Seen) -> bool {
    now.iter().all(|(path, stamp)| before.get(path).is_none_or(|before| before == stamp))
}

/// The shelf's folder, its manifest, and the modules that it names. The built-in tools have none.
fn paths(service: &Service, readings: &[Reading]) -> Vec<PathBuf> {
    let Some(folder) = service.shelf().store().folder() else { return Vec::new() };
    let shelves = readings.iter().filter_map(|reading| reading.shelf.as_ref().ok());
    let tools = shelves.filter(|shelf| Path::new(&shelf.dir) == folder).flat_map(|shelf| &shelf.tools);
    // A path that leaves the folder is refused, and so not looked at either.
    let modules = tools.filter_map(|tool| toolshelf_core::manifest::contained_path(&tool.wasm_path).ok());
    let files = modules.map(|path| folder.join(path)).chain([folder.join("manifest.json")]);
    files.chain([folder.to_owned()]).collect()
}

async fn look(paths: Vec<PathBuf>) -> Seen {
    // A folder on a disk or a network that is slow must not keep the companion waiting.
    let stamps = move || paths.into_iter().map(|path| (path.clone(), stamp(&path))).collect();
    spawn_blocking(stamps).await.unwrap_or_default()
}

fn stamp(path: &Path) -> Option<Stamp> {
    let about = std::fs::symlink_metadata(path).ok()?;
    let (modified, changed) = ((about.mtime(), about.mtime_nsec()), (about.ctime(), about.ctime_nsec()));
    Some((about.dev(), about.ino(), about.size(), modified, changed))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_way_of_changing_a_file_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("manifest.json");
        let missing = stamp(&path);
        fs::write(&path, "a").unwrap();
        let written = stamp(&path);
        fs::write(&path, "bb").unwrap();
        let longer = stamp(&path);
        let other = dir.path().join("other");
        fs::write(&other, "bb").unwrap();
        fs::rename(&other, &path).unwrap();
        let replaced = stamp(&path);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let link = stamp(&path);
        let states = [missing, written, longer, replaced, link];
        for (at, state) in states.iter().enumerate() {
            assert!(!states[at + 1..].contains(state), "{at}");
        }
    }
}
