//! The return codes of host functions: a stable contract, never renumbered, the same words for host and guest.
//!
//! A result that is not negative is the count of bytes that were written into the module's buffer.

use std::fmt;
use std::ops::RangeInclusive;

/// Codes that no function returns yet. A guest takes them for errors that it does not know.
pub const RESERVED_CODES: RangeInclusive<i32> = -9..=-7;

macro_rules! codes {
    ($($variant:ident = $code:literal, $name:literal, $meaning:literal;)*) => {
        /// Why a host function did not do what it was asked.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum ReturnCode {
            $(#[doc = $meaning] $variant = $code,)*
        }

        impl ReturnCode {
            /// Every code, from -1 on.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in the documentation.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it means.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

codes! {
    NotFound = -1, "NOT_FOUND", "There is no such fact.";
    NoGrant = -2, "NO_GRANT", "No grant is bound to this call.";
    ScopeViolation = -3, "SCOPE_VIOLATION", "The entity, prefix or secret is outside the grant.";
    BufferTooSmall = -4, "BUFFER_TOO_SMALL",
        "The reply does not fit into the buffer. A write has happened nevertheless.";
    FactStoreUnavailable = -5, "FACT_STORE_UNAVAILABLE", "The host has no fact store.";
    NotImplemented = -6, "NOT_IMPLEMENTED", "The host has no vault, or no log of receipts.";
    HostInternal = -10, "HOST_INTERNAL", "Something failed on the host's side.";
    BadInput = -11, "BAD_INPUT", "A pointer or a length is invalid, or a text is not UTF-8.";
    SerialiseErr = -12, "SERIALISE_ERR", "The host could not write the reply as JSON.";
}

impl ReturnCode {
    /// The number that the module gets.
    #[must_use]
    pub const fn as_i32(self) -> i32 {
        self as i32
    }

    /// The code of that number; `None` for counts, reserved codes and anything else.
    #[must_use]
    pub fn from_i32(number: i32) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_i32() == number)
    }
}

impl fmt::Display for ReturnCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.as_i32())
    }
}

/// What `current_passport_json` returns when its buffer is too small: -1, as it always has, and not
/// [`ReturnCode::BufferTooSmall`].
pub const PASSPORT_BUFFER_TOO_SMALL: i32 = -1;
/// What `extension_call` returns when its response does not fit.
pub const RESPONSE_OVERFLOW: i32 = -1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_contract() {
        let numbers: Vec<_> = ReturnCode::ALL.iter().map(|code| (code.as_i32(), code.name())).collect();
        assert_eq!(
            numbers,
            [
                (-1, "NOT_FOUND"),
                (-2, "NO_GRANT"),
                (-3, "SCOPE_VIOLATION"),
                (-4, "BUFFER_TOO_SMALL"),
                (-5, "FACT_STORE_UNAVAILABLE"),
                (-6, "NOT_IMPLEMENTED"),
                (-10, "HOST_INTERNAL"),
                (-11, "BAD_INPUT"),
                (-12, "SERIALISE_ERR"),
            ]
        );
    }

    #[test]
    fn a_number_is_a_code_a_reserved_one_or_a_count() {
        for number in -20..20 {
            let known = ReturnCode::from_i32(number);
            assert!(known.is_none_or(|code| code.as_i32() == number && number < 0));
            assert!(!(RESERVED_CODES.contains(&number) && known.is_some()));
        }
        assert_eq!(ReturnCode::from_i32(-10), Some(ReturnCode::HostInternal));
        assert_eq!(ReturnCode::ScopeViolation.to_string(), "SCOPE_VIOLATION (-3)");
    }
}
