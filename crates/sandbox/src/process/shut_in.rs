//! How a worker shuts itself in, before it reads anything.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

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

/// What is done first, and holds for copies of this process as well. `parent` is the process that started it.
///
/// # Errors
/// When the parent is gone already: then nobody waits for this process.
pub(super) fn first(kind: Kind, parent: Option<i32>) -> io::Result<Isolation> {
    let mut isolation = Isolation::default();
    isolation.hold(Isolation::NO_ENVIRONMENT, std::env::vars_os().next().is_none());
    #[cfg(target_os = "linux")]
    {
        isolation.hold(Isolation::NO_DESCRIPTORS, crate::native::close_inherited());
        isolation.hold(Isolation::NO_NEW_PRIVILEGES, rustix::thread::set_no_new_privs(true).is_ok());
    }
    die_with(parent)?;
    #[cfg(target_os = "linux")]
    {
        let landlock = linux::deny_files_and_network();
        isolation.hold(Isolation::LANDLOCK, landlock.is_some());
        isolation.hold(Isolation::LANDLOCK_WHOLE, landlock == Some(true));
    }
    let memory = match kind {
        Kind::Run | Kind::Nursery => RUN_MEMORY_BYTES,
        Kind::Compile => COMPILE_MEMORY_BYTES,
        #[cfg(feature = "wasm-extensions")]
        Kind::CompileExtension => COMPILE_MEMORY_BYTES,
    };
    let limits = [
        (Resource::Data, memory),
        (Resource::As, ADDRESS_BYTES),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Memlock, 0),
    ];
    isolation.hold(Isolation::LIMITS, set_limits(&limits));
    Ok(isolation)
}

/// What is done last, in the process that does the job.
///
/// # Errors
/// As [`first`].
pub(super) fn last(
    kind: Kind,
    mut isolation: Isolation,
    parent: Option<i32>,
    filter: &Filter,
) -> io::Result<Isolation> {
    let with_parent = die_with(parent)?;
    isolation.hold(Isolation::DIES_WITH_PARENT, with_parent);
    let seconds = u64::from(kind.watchdog_seconds());
    // The three files that it has, and no process but itself.
    let limits = [(Resource::Cpu, seconds), (Resource::Nofile, 3), (Resource::Nproc, 0)];
    if !set_limits(&limits) {
        isolation.bits &= !Isolation::LIMITS;
    }
    #[cfg(target_os = "linux")]
    isolation.hold(Isolation::SYSTEM_CALLS, linux::apply(filter));
    #[cfg(not(target_os = "linux"))]
    let _ = filter;
    Ok(isolation)
}

/// Asks to be ended with the parent, and then whether it still is there: one that died before is seen here, one that
/// dies later takes this process with it.
fn die_with(parent: Option<i32>) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    let asked = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).is_ok();
    #[cfg(not(target_os = "linux"))]
    let asked = false;
    if parent.is_some() && rustix::process::getppid().map(|pid| pid.as_raw_pid()) != parent {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(asked)
}

fn set_limits(limits: &[(Resource, u64)]) -> bool {
    let mut all = true;
    for &(resource, most) in limits {
        // Each is tried, whatever became of the one before.
        all &= setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).is_ok();
    }
    all
}

/// The filter of system calls; `None` where the system has none.
pub(super) struct Filter {
    #[cfg(target_os = "linux")]
    program: Option<seccompiler::BpfProgram>,
}

impl Filter {
    pub(super) fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            program: linux::program().ok(),
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;

    use landlock::{ABI, Access as _, AccessFs, AccessNet, RulesetAttr as _, RulesetStatus, Scope};
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch};

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
    /// reached, and a library that only asks goes on. No signal can be sent, not even to itself: a process that aborts
    /// ends all the same.
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

    pub(super) fn program() -> Result<BpfProgram, seccompiler::Error> {
        let rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
        let denied = SeccompAction::Errno(libc::EPERM as u32);
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        Ok(SeccompFilter::new(rules, denied, SeccompAction::Allow, arch)?.try_into()?)
    }

    pub(super) fn apply(filter: &super::Filter) -> bool {
        filter.program.as_ref().is_some_and(|program| seccompiler::apply_filter(program).is_ok())
    }
}
