//! Compiled code in memory, by the digest of its module.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use toolshelf_core::Digest;

/// Most modules whose code is kept in memory.
pub(super) const CODES_MAX: NonZeroUsize = NonZeroUsize::new(64).unwrap();
/// Most bytes of code that are kept in memory.
pub(super) const CODES_MAX_BYTES: usize = 256 * 1024 * 1024;

/// Keeps what was used last, within bounds of count and bytes.
pub(super) struct Codes<T> {
    kept: Mutex<Kept<T>>,
    most_bytes: usize,
}

struct Kept<T> {
    codes: LruCache<Digest, (T, usize)>,
    bytes: usize,
}

impl<T: Clone> Codes<T> {
    pub(super) fn new(most: NonZeroUsize, most_bytes: usize) -> Self {
        Self { kept: Mutex::new(Kept { codes: LruCache::new(most), bytes: 0 }), most_bytes }
    }

    pub(super) fn get(&self, module: Digest) -> Option<T> {
        self.with(|kept| kept.codes.get(&module).map(|(code, _)| code.clone()))
    }

    /// Keeps code of that many bytes. One that is larger than all that may be kept is not.
    pub(super) fn put(&self, module: Digest, code: T, bytes: usize) {
        if bytes > self.most_bytes {
            return;
        }
        self.with(|kept| {
            // What it takes the place of, or pushes out as one too many.
            if let Some((_, (_, gone))) = kept.codes.push(module, (code, bytes)) {
                kept.bytes -= gone;
            }
            kept.bytes += bytes;
            while kept.bytes > self.most_bytes {
                let Some((_, (_, gone))) = kept.codes.pop_lru() else { break };
                kept.bytes -= gone;
            }
        });
    }

    fn with<R>(&self, work: impl FnOnce(&mut Kept<T>) -> R) -> R {
        // Nothing that is done under the lock leaves the two in the middle of a change by a panic.
        work(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> fmt::Debug for Codes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codes").field("most_bytes", &self.most_bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: u8) -> Digest {
        Digest::of(&[number])
    }

    fn codes(most: usize, bytes: usize) -> Codes<u8> {
        Codes::new(NonZeroUsize::new(most).unwrap(), bytes)
    }

    fn kept(codes: &Codes<u8>) -> Vec<u8> {
        (0..10).filter(|number| codes.get(digest(*number)).is_some()).collect()
    }

    #[test]
    fn one_too_many_pushes_out_the_one_that_was_not_used_longest() {
        let codes = codes(2, 100);
        codes.put(digest(1), 1, 10);
        codes.put(digest(2), 2, 10);
        assert_eq!(codes.get(digest(1)), Some(1));
        codes.put(digest(3), 3, 10);
        assert_eq!(kept(&codes), [1, 3]);
    }

    #[test]
    fn too_many_bytes_push_out_as_many_as_they_need() {
        let codes = codes(10, 100);
        (1..=4).for_each(|number| codes.put(digest(number), number, 25));
        codes.put(digest(5), 5, 60);
        assert_eq!(kept(&codes), [4, 5]);
        codes.put(digest(6), 6, 101);
        assert_eq!(kept(&codes), [4, 5]);
    }

    #[test]
    fn the_same_module_again_takes_its_own_place() {
        let codes = codes(10, 100);
        codes.put(digest(1), 1, 60);
        codes.put(digest(1), 2, 60);
        codes.put(digest(2), 3, 40);
        assert_eq!(codes.get(digest(1)), Some(2));
        assert_eq!(kept(&codes), [1, 2]);
    }
}
