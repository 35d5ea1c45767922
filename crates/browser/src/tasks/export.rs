//! A person's data in one file.

/// What an import brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Shelves that are new or replaced.
    pub shelves: usize,
    /// Tasks that are new.
    pub tasks: usize,
    /// Files written into the page's own folder.
    pub files: usize,
    /// What was there already and stays as it is.
    pub skipped: usize,
}
