//! What a worker has done to shut itself in, as it says in its greeting.

/// The means by which a worker process is shut in. Where the kernel lacks one, calls run under the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Isolation {
    pub(super) bits: u8,
}

impl Isolation {
    pub(super) const NO_DESCRIPTORS: u8 = 1;
    pub(super) const DIES_WITH_PARENT: u8 = 2;
    pub(super) const NO_NEW_PRIVILEGES: u8 = 4;
    pub(super) const LIMITS: u8 = 8;
    pub(super) const LANDLOCK: u8 = 16;
    pub(super) const LANDLOCK_WHOLE: u8 = 32;
    pub(super) const SYSTEM_CALLS: u8 = 64;
    pub(super) const NO_ENVIRONMENT: u8 = 128;

    const MEANS: [(u8, &'static str, &'static str); 8] = [
        (Self::NO_ENVIRONMENT, "environment", "the worker has no environment variables"),
        (Self::NO_DESCRIPTORS, "descriptors", "the worker inherits no open files"),
        (Self::DIES_WITH_PARENT, "parent", "the worker is ended with the process that started it"),
        (Self::NO_NEW_PRIVILEGES, "privileges", "the worker can gain no privileges"),
        (Self::LIMITS, "limits", "the system limits the worker's time, memory, files and processes"),
        (Self::SYSTEM_CALLS, "system-calls", "a filter lets through only what computing needs (seccomp)"),
        (Self::LANDLOCK, "landlock", "no file and no network port can be reached (Landlock)"),
        (Self::LANDLOCK_WHOLE, "landlock-whole", "Landlock enforces all that Toolshelf asks of it"),
    ];

    pub(super) fn hold(&mut self, bit: u8, holds: bool) {
        if holds {
            self.bits |= bit;
        }
    }

    /// Every means: a short name, what it does, and whether it holds here.
    pub fn means(self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        Self::MEANS.into_iter().map(move |(bit, name, about)| (name, about, self.bits & bit != 0))
    }

    /// Whether every means holds.
    #[must_use]
    pub fn whole(self) -> bool {
        self.bits == u8::MAX
    }
}
