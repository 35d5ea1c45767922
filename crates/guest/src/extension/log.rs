//! Lines for whoever called. They come back with the result, and also where there is none.

use core::fmt::Display;
use std::string::ToString as _;

use super::imports;

/// Writes a line of the level `debug`.
pub fn debug(message: impl Display) {
    line("debug", message);
}

/// Writes a line of the level `info`.
///
/// ```
/// let sections = 4;
/// toolshelf_guest::extension::log::info(format_args!("chunked {sections} sections"));
/// ```
pub fn info(message: impl Display) {
    line("info", message);
}

/// Writes a line of the level `warn`.
pub fn warn(message: impl Display) {
    line("warn", message);
}

/// Writes a line of the level `error`.
pub fn error(message: impl Display) {
    line("error", message);
}

/// Writes a line of a level of one's own. The host bounds how many lines it keeps, and how long they are.
pub fn line(level: &str, message: impl Display) {
    imports::log(level, &message.to_string());
}
