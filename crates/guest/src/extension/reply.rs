//! Buffers for the host's replies: large enough, and believed only as far as they reach.

#![expect(unsafe_code, reason = "zeroes cost fuel, so buffers are handed out without them")]

use core::mem::MaybeUninit;
use std::string::String;
use std::vec::Vec;

use super::ReturnCode;

/// What the host writes into.
pub(super) type Buffer = [MaybeUninit<u8>];

/// What a question is asked with first, in bytes.
const FIRST_BYTES: usize = 4_096;
/// Each further buffer is so many times as large.
const GROWTH: usize = 4;
/// Longest reply to a question, in bytes. A longer one is [`ReturnCode::BufferTooSmall`].
pub const REPLY_MAX_BYTES: usize = 4_194_304;
/// What a reply has besides the texts that it repeats, in bytes.
const ENVELOPE_BYTES: usize = 1_024;
/// The most that JSON makes of one byte: `\u0000`.
const ESCAPED_BYTES: usize = 6;

/// Asks something that changes nothing, with larger and larger buffers for as long as the host says `too_small`.
pub(super) fn ask(too_small: i32, question: impl Fn(&mut Buffer) -> i32) -> Result<String, ReturnCode> {
    let mut room = FIRST_BYTES;
    loop {
        let (returned, reply) = once(room, &question);
        if returned != too_small {
            return reply;
        }
        if room >= REPLY_MAX_BYTES {
            return Err(ReturnCode::BufferTooSmall);
        }
        room = REPLY_MAX_BYTES.min(room * GROWTH);
    }
}

/// Has something done, once. The reply repeats no more than `texts`, so it has room for them.
///
/// Where it does not fit nevertheless, or is none, there is no reply; but what was asked for is done, and must not be
/// asked for again.
pub(super) fn tell(texts: &[&str], order: impl Fn(&mut Buffer) -> i32) -> Result<Option<String>, ReturnCode> {
    let repeated: usize = texts.iter().map(|text| text.len()).sum();
    let (returned, reply) =
        once(repeated.saturating_mul(ESCAPED_BYTES).saturating_add(ENVELOPE_BYTES), &order);
    if returned >= 0 || returned == ReturnCode::BufferTooSmall.as_i32() {
        Ok(reply.ok())
    } else {
        reply.map(Some)
    }
}

/// What the host returned, and what follows from it.
fn once(room: usize, call: impl Fn(&mut Buffer) -> i32) -> (i32, Result<String, ReturnCode>) {
    let mut reply = Vec::with_capacity(room);
    let returned = call(&mut reply.spare_capacity_mut()[..room]);
    let text = match usize::try_from(returned) {
        Ok(len) if len <= room => {
            // SAFETY: so many bytes are there, and whoever returns a count has written as many. A host that has not
            // leaves what it has found there: memory of the module, which has some value.
            unsafe { reply.set_len(len) };
            String::from_utf8(reply).map_err(|_| ReturnCode::HostInternal)
        }
        // More than there was room for.
        Ok(_) => Err(ReturnCode::HostInternal),
        Err(_) => Err(ReturnCode::of(returned)),
    };
    (returned, text)
}

#[cfg(test)]
mod tests {
    use core::cell::RefCell;
    use std::vec::Vec;

    use super::*;

    const TOO_SMALL: i32 = -4;

    /// A host whose reply has so many bytes, and the buffers that it was given.
    fn asked(bytes: usize) -> (Result<String, ReturnCode>, Vec<usize>) {
        let rooms = RefCell::new(Vec::new());
        let reply = ask(TOO_SMALL, |reply| {
            rooms.borrow_mut().push(reply.len());
            let Some(reply) = reply.get_mut(..bytes) else { return TOO_SMALL };
            for byte in reply {
                byte.write(b'x');
            }
            i32::try_from(bytes).unwrap()
        });
        (reply, rooms.into_inner())
    }

    #[test]
    fn buffers_grow_until_the_reply_fits_and_not_for_ever() {
        assert_eq!(asked(0), (Ok(String::new()), Vec::from([4_096])));
        assert_eq!(asked(4_096).1, [4_096]);
        assert_eq!(asked(4_097).1, [4_096, 16_384]);
        assert_eq!(asked(REPLY_MAX_BYTES).0.map(|reply| reply.len()), Ok(REPLY_MAX_BYTES));
        let (reply, rooms) = asked(REPLY_MAX_BYTES + 1);
        assert_eq!(reply, Err(ReturnCode::BufferTooSmall));
        assert_eq!(rooms, [4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304]);
    }

    #[test]
    fn what_is_no_reply_is_the_hosts_failure() {
        assert_eq!(ask(TOO_SMALL, |_| 4_097), Err(ReturnCode::HostInternal));
        assert_eq!(ask(TOO_SMALL, |_| i32::MAX), Err(ReturnCode::HostInternal));
        let no_text = |reply: &mut Buffer| {
            reply[0].write(0xff);
            1
        };
        assert_eq!(ask(TOO_SMALL, no_text), Err(ReturnCode::HostInternal));
        assert_eq!(ask(TOO_SMALL, |_| i32::MIN), Err(ReturnCode::Other(i32::MIN)));
        // Where another number says that the buffer is too small, this one does not.
        assert_eq!(ask(-1, |_| TOO_SMALL), Err(ReturnCode::BufferTooSmall));
    }

    #[test]
    fn an_order_is_given_once_whatever_comes_back() {
        for (returned, expected) in [
            (TOO_SMALL, Ok(None)),
            (i32::MAX, Ok(None)),
            (0, Ok(Some(String::new()))),
            (-3, Err(ReturnCode::ScopeViolation)),
            (-7, Err(ReturnCode::Other(-7))),
        ] {
            let times = RefCell::new(0);
            let reply = tell(&["entity", "key"], |reply| {
                assert_eq!(reply.len(), 9 * 6 + 1_024);
                *times.borrow_mut() += 1;
                returned
            });
            assert_eq!((reply, times.into_inner()), (expected, 1), "{returned}");
        }
    }
}
