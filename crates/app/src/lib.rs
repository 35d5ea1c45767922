//! The Toolshelf page.
