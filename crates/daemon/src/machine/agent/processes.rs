//! Which processes have come of another, and ending them.

use rustix::process::{Pid, Signal, kill_process};

/// How often a tree is looked through until nothing is left of it.
#[cfg(target_os = "linux")]
const MAX_ROUNDS: usize = 1_000;

/// The children of a process that have not ended.
#[cfg(target_os = "linux")]
pub(super) fn children_of(parent: Pid) -> Vec<Pid> {
    let listed = listed_children(parent).unwrap_or_else(|| found_children(parent));
    listed.into_iter().filter(|pid| about(*pid).is_some_and(|(_, has_ended)| !has_ended)).collect()
}

/// What the kernel lists, thread by thread; `None` where it lists nothing of that kind.
#[cfg(target_os = "linux")]
fn listed_children(parent: Pid) -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten() {
        let list = std::fs::read_to_string(thread.path().join("children")).ok()?;
        children.extend(list.split_whitespace().filter_map(read_pid));
    }
    Some(children)
}

/// All processes whose parent it is.
#[cfg(target_os = "linux")]
fn found_children(parent: Pid) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| read_pid(entry.file_name().to_str()?));
    pids.filter(|pid| about(*pid).is_some_and(|(its_parent, _)| its_parent == Some(parent))).collect()
}

/// The parent of a process, and whether it has ended and only waits to be taken note of.
#[cfg(target_os = "linux")]
fn about(pid: Pid) -> Option<(Option<Pid>, bool)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name, which may hold anything but is closed by the last bracket.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    Some((read_pid(fields.next()?), has_ended))
}

#[cfg(target_os = "linux")]
fn read_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

/// Ends all that has come of another process that cannot do it itself, and that process. What loses its parent becomes
/// that process's child, so it is looked at until nothing is left.
#[cfg(target_os = "linux")]
pub(super) fn end_all_of(supervisor: Pid) {
    for _ in 0..MAX_ROUNDS {
        let mut left = children_of(supervisor);
        let mut at = 0;
        while at < left.len() {
            left.extend(children_of(left[at]));
            at += 1;
        }
        if left.is_empty() {
            break;
        }
        for pid in left {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let _ = kill_process(supervisor, Signal::KILL);
}

/// Ends a process.
#[cfg(not(target_os = "linux"))]
pub(super) fn end_all_of(supervisor: Pid) {
    let _ = kill_process(supervisor, Signal::KILL);
}
