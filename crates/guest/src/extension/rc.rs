//! Why a host function did not do what it was asked.

use core::fmt;
use core::ops::RangeInclusive;

/// Codes that no host returns yet.
pub const RESERVED_CODES: RangeInclusive<i32> = -9..=-7;

macro_rules! codes {
    ($($variant:ident = $code:literal, $name:literal, $meaning:literal;)*) => {
        /// The negative numbers that host functions return. They are a stable contract and are never renumbered.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ReturnCode {
            $(#[doc = $meaning] $variant,)*
            /// A number that has no name here.
            Other(i32),
        }

        impl ReturnCode {
            /// Every code that has a name, from -1 on.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The number that the host returns.
            #[must_use]
            pub const fn as_i32(self) -> i32 {
                match self { $(Self::$variant => $code,)* Self::Other(code) => code }
            }

            /// The name in the documentation.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* Self::Other(_) => "OTHER" }
            }

            /// What it means.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* Self::Other(_) => "A code without a name." }
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
    /// The code of that number.
    #[must_use]
    pub fn of(number: i32) -> Self {
        let named = Self::ALL.iter().copied().find(|code| code.as_i32() == number);
        named.unwrap_or(Self::Other(number))
    }
}

impl fmt::Display for ReturnCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.name(), self.as_i32(), self.meaning())
    }
}

impl core::error::Error for ReturnCode {}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;
    use std::vec::Vec;

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
    fn a_number_makes_the_code_that_makes_the_number() {
        for number in [i32::MIN, i32::MAX].into_iter().chain(-20..20) {
            let code = ReturnCode::of(number);
            assert_eq!(code.as_i32(), number);
            let named = (-6..=-1).contains(&number) || (-12..=-10).contains(&number);
            assert_eq!(code != ReturnCode::Other(number), named, "{number}");
            assert!(!(named && RESERVED_CODES.contains(&number)));
        }
        let told = ReturnCode::NoGrant.to_string();
        assert_eq!(told, "NO_GRANT (-2): No grant is bound to this call.");
    }
}
