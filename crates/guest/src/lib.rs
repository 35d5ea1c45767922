//! What the author of a tool depends on.
