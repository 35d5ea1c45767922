//! Why a call has no result.

use core::fmt::Display;
use std::string::{String, ToString as _};

/// Why a call has no result, in words for whoever called.
///
/// Whatever can be displayed becomes one, so `?` works on return codes, on other errors and on plain texts:
///
/// ```
/// use toolshelf_guest::extension::{Failure, ReturnCode};
///
/// fn halve(text: &str) -> Result<u32, Failure> {
///     let number: u32 = text.parse()?;
///     if number % 2 == 1 {
///         return Err("an odd number has no half".into());
///     }
///     Ok(number / 2)
/// }
///
/// assert_eq!(halve("8").unwrap(), 4);
/// assert_eq!(halve("7").unwrap_err().why(), "an odd number has no half");
/// assert_eq!(halve("x").unwrap_err().why(), "invalid digit found in string");
/// let refused = Failure::from(ReturnCode::ScopeViolation);
/// assert!(refused.why().starts_with("SCOPE_VIOLATION (-3)"));
/// ```
// It is not displayed itself: then a failure would have two ways to become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// The words.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.0
    }
}

impl<E: Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}
