//! One-time codes. There is one at a time: a new one takes the place of the last.

use std::fmt;
use std::io;

use subtle::ConstantTimeEq as _;
use toolshelf_core::rate::RateWindow;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::remote::scope::Scope;
use toolshelf_core::remote::{CODE_DIGITS, CODE_LIFE_MS, CODE_TRIES, CODE_TRIES_PER_MIN};
use toolshelf_sandbox::private;
use zeroize::Zeroizing;

/// What a code is compared with where there is none, so that the answer takes as long.
const NO_CODE: &str = "--------";

/// What whoever enters the code gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// What the pairing is called; without, what the other side calls itself.
    pub(crate) name: Option<String>,
    /// What the token may be used for.
    pub(crate) scopes: Vec<Scope>,
    /// How long the token holds, in milliseconds; without, until it is revoked.
    pub(crate) life_ms: Option<u64>,
}

struct Offer {
    code: Zeroizing<String>,
    terms: Terms,
    /// By the clock of its companion, which cannot be set.
    until_ms: u64,
    wrong: u32,
}

/// The code that holds, and the tries of the last minute.
#[derive(Default)]
pub(super) struct Codes {
    offer: Option<Offer>,
    tries: RateWindow,
}

impl Codes {
    /// Makes a code that holds for [`CODE_LIFE_MS`] from `now_ms` on, by a clock that only goes forward.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(super) fn offer(&mut self, terms: Terms, now_ms: u64) -> io::Result<Zeroizing<String>> {
        let code = make()?;
        let offer =
            Offer { code: code.clone(), terms, until_ms: now_ms.saturating_add(CODE_LIFE_MS), wrong: 0 };
        self.offer = Some(offer);
        Ok(code)
    }

    /// Uses a code up.
    ///
    /// # Errors
    /// [`Code::RateLimited`] for a try too many, whatever was tried; [`Code::PairingCodeRefused`], which does not say
    /// why: whoever guesses learns nothing from it.
    pub(super) fn take(&mut self, given: &str, now_ms: u64) -> Result<Terms, Refusal> {
        self.tries.record(now_ms, CODE_TRIES_PER_MIN).map_err(|limited| {
            let why = format!(
                "codes may be tried {CODE_TRIES_PER_MIN} times in a minute; the next try is in {} s",
                limited.retry_after_ms.div_ceil(1_000)
            );
            Refusal::new(Code::RateLimited, why)
        })?;
        if self.offer.as_ref().is_some_and(|offer| now_ms >= offer.until_ms) {
            self.offer = None;
        }
        let code = self.offer.as_ref().map_or(NO_CODE, |offer| offer.code.as_str());
        let is_right: bool = code.as_bytes().ct_eq(given.as_bytes()).into();
        match self.offer.take() {
            Some(offer) if is_right => Ok(offer.terms),
            Some(offer) => {
                let wrong = offer.wrong + 1;
                tracing::warn!(wrong, of = CODE_TRIES, "a wrong pairing code was tried");
                self.offer = (wrong < CODE_TRIES).then_some(Offer { wrong, ..offer });
                Err(refused())
            }
            None => Err(refused()),
        }
    }
}

fn refused() -> Refusal {
    let why = "the code is wrong, was used, is older than ten minutes, or was tried too often";
    Refusal::new(Code::PairingCodeRefused, why)
}

/// Digits of which each code has the same chance.
fn make() -> io::Result<Zeroizing<String>> {
    let codes = 10_u64.pow(CODE_DIGITS as u32);
    // What is above the last whole multiple would come up once more often.
    let fair = u64::MAX - u64::MAX % codes;
    loop {
        let mut bytes = Zeroizing::new([0; 8]);
        private::fill_random(&mut *bytes)?;
        let number = u64::from_le_bytes(*bytes);
        if number < fair {
            return Ok(Zeroizing::new(format!("{:0width$}", number % codes, width = CODE_DIGITS)));
        }
    }
}

impl fmt::Debug for Codes {
    // The code stays out of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codes").field("offers", &self.offer.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolshelf_core::rate::RATE_WINDOW_MS;
    use toolshelf_core::remote::link::is_code;

    use super::*;

    fn wrong(code: &str) -> String {
        code.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect()
    }

    fn code_of(result: Result<Terms, Refusal>) -> Option<Code> {
        result.err().map(|refusal| refusal.code)
    }

    #[test]
    fn a_code_is_taken_once() {
        let mut codes = Codes::default();
        let terms = Terms { name: Some("x".into()), scopes: vec![Scope::Tasks], life_ms: Some(1) };
        let code = codes.offer(terms.clone(), 0).unwrap();
        assert!(is_code(&code) && !format!("{codes:?}").contains(&**code));
        assert_eq!(codes.take(&code, 1), Ok(terms));
        assert_eq!(code_of(codes.take(&code, 2)), Some(Code::PairingCodeRefused));
    }

    #[test]
    fn a_code_ends_with_its_time_with_the_next_one_and_with_five_wrong_tries() {
        let mut codes = Codes::default();
        let old = codes.offer(Terms::default(), 0).unwrap();
        assert_eq!(code_of(codes.take(&old, CODE_LIFE_MS)), Some(Code::PairingCodeRefused));
        let mut now = RATE_WINDOW_MS + CODE_LIFE_MS;
        let (first, second) =
            (codes.offer(Terms::default(), now).unwrap(), codes.offer(Terms::default(), now).unwrap());
        if first != second {
            assert_eq!(code_of(codes.take(&first, now)), Some(Code::PairingCodeRefused));
        }
        now += RATE_WINDOW_MS;
        let code = codes.offer(Terms::default(), now).unwrap();
        for _ in 0..CODE_TRIES {
            assert_eq!(code_of(codes.take(&wrong(&code), now)), Some(Code::PairingCodeRefused));
        }
        assert_eq!(code_of(codes.take(&code, now)), Some(Code::PairingCodeRefused), "it was tried too often");
    }

    #[test]
    fn tries_are_bounded_across_codes() {
        let mut codes = Codes::default();
        for _ in 0..CODE_TRIES_PER_MIN {
            codes.offer(Terms::default(), 0).unwrap();
            assert_eq!(code_of(codes.take("x", 0)), Some(Code::PairingCodeRefused));
        }
        let code = codes.offer(Terms::default(), 0).unwrap();
        assert_eq!(code_of(codes.take(&code, 0)), Some(Code::RateLimited), "even the right one");
        assert_eq!(codes.take(&code, RATE_WINDOW_MS), Ok(Terms::default()));
    }

    proptest! {
        #[test]
        fn nothing_but_the_code_is_taken(given in ".{0,12}") {
            let mut codes = Codes::default();
            let code = codes.offer(Terms::default(), 0).unwrap();
            prop_assert_eq!(codes.take(&given, 0).is_ok(), given == **code);
        }
    }
}
