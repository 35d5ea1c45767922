//! How a worker shuts itself in, before it reads anything.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};
use toolshelf_core::limits::WASM_CHILD_WATCHDOG_MS;

use super::Kind;
use super::isolation::Isolation;

/// Most private memory of a process that runs a module, in bytes: the module's 64 MiB, its code three times (as it
/// comes, as it is loaded, and for the room between), and what the engine itself needs.
const RUN_MEMORY_BYTES: u64 = 512 * 1024 * 1024;
/// Most private memory of a process that compiles, in bytes.
const COMPILE_MEMORY_BYTES: u64 = 1024 * 1024 * 1024;
/// Most addresses of either, in bytes. The engine reserves 4 GiB for a memory, so that it need not check every access;
/// a reservation is no memory.
const ADDRESS_BYTES: u64 = 16 * 1024 * 1024 * 1024;

/// Shuts this process in, and tells by which means. `parent` is the process that started it.
///
/// # Errors
/// When the parent is gone already: then nobody waits for this process.
pub(super) fn shut_in(kind: Kind, parent: Option<i32>) -> io::Result<Isolation> {
    let mut bits = 0;
    let mut hold = |bit: u8, holds: bool| {
        if holds {
            bits |= bit;
        }
    };
    hold(Isolation::NO_ENVIRONMENT, std::env::vars_os().next().is_none());
    #[cfg(target_os = "linux")]
    {
        hold(Isolation::NO_DESCRIPTORS, crate::native::close_inherited());
        hold(Isolation::DIES_WITH_PARENT, linux::die_with_parent());
        hold(Isolation::NO_NEW_PRIVILEGES, rustix::thread::set_no_new_privs(true).is_ok());
    }
    // Asked after the signal was arranged: a parent that died before is seen here, one that dies later is signalled.
    if parent.is_some() && rustix::process::getppid().map(|pid| pid.as_raw_pid()) != parent {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    #[cfg(target_os = "linux")]
    {
        let landlock = linux::deny_files_and_network();
        hold(Isolation::LANDLOCK, landlock.is_some());
        hold(Isolation::LANDLOCK_WHOLE, landlock == Some(true));
    }
    hold(Isolation::LIMITS, set_limits(kind));
    #[cfg(target_os = "linux")]
    hold(Isolation::SYSTEM_CALLS, linux::filter_system_calls().is_ok());
    Ok(Isolation { bits })
}

fn set_limits(kind: Kind) -> bool {
    let seconds = u64::from(WASM_CHILD_WATCHDOG_MS.div_ceil(1_000));
    let memory = match kind {
        Kind::Run => RUN_MEMORY_BYTES,
        Kind::Compile => COMPILE_MEMORY_BYTES,
    };
    let limits = [
        (Resource::Cpu, seconds),
        (Resource::Data, memory),
        (Resource::As, ADDRESS_BYTES),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        // The three that it has.
        (Resource::Nofile, 3),
        (Resource::Nproc, 0),
        (Resource::Memlock, 0),
    ];
    // Each is tried, whatever became of the one before.
    let set = limits.map(|(resource, most)| {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).is_ok()
    });
    set.iter().all(|set| *set)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;

    use landlock::{ABI, Access as _, AccessFs, AccessNet, RulesetAttr as _, RulesetStatus, Scope};
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch,
    };

    pub(super) fn die_with_parent() -> bool {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).is_ok()
    }

    /// Denies every file and every port. `None` where the kernel has no Landlock, else whether it does all of it.
    pub(super) fn deny_files_and_network() -> Option<bool> {
        let restricted = landlock::Ruleset::default()
            .handle_access(AccessFs::from_all(ABI::V5))
            .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(ABI::V5)))
            .and_then(|ruleset| ruleset.scope(Scope::from_all(ABI::V6)))
            .and_then(landlock::Ruleset::create)
            .and_then(landlock::RulesetCreated::restrict_self);
        match restricted.ok()?.ruleset {
            RulesetStatus::FullyEnforced => Some(true),
            RulesetStatus::PartiallyEnforced => Some(false),
            RulesetStatus::NotEnforced => None,
        }
    }

    /// What a process needs that reads, computes, writes and ends. Anything else answers "not permitted": nothing is
    /// reached, and a library that only asks goes on.
    const ALLOWED: &[i64] = &[
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_close,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mprotect,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_futex,
        libc::SYS_membarrier,
        libc::SYS_sched_yield,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_setitimer,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_alarm,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    pub(super) fn filter_system_calls() -> Result<(), Box<dyn std::error::Error>> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
        // A process may signal itself, as `abort` does, but no other.
        let own = u64::from(std::process::id());
        let itself = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, own)?;
        rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![itself])?]);
        let denied = SeccompAction::Errno(libc::EPERM as u32);
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        let filter: BpfProgram = SeccompFilter::new(rules, denied, SeccompAction::Allow, arch)?.try_into()?;
        Ok(seccompiler::apply_filter(&filter)?)
    }
}
