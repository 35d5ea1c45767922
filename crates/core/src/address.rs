//! Sealed addresses: what a task's owner holds in hand, `task_<base64url locator>.<64 hex digits>`.
//!
//! The digits are HMAC-SHA256 over the payload, a NUL and the owner, so that an address is good for its owner alone
//! and says where the task is without anybody's memory. The MAC itself is a port of the host; what it covers and how
//! an address is written stand here.
//!
//! The MAC is checked before the locator is parsed, and the key's epoch is a hash of the key, never a part of it: the
//! reference system puts eight bytes of its key into each address.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, to_hex};
use crate::placement::Placement;
use crate::refusal::{Code, Refusal};

/// Longest address, in characters.
pub const ADDRESS_MAX_CHARS: usize = 8_192;
/// What every address begins with.
const PREFIX: &str = "task_";
/// What the epoch of a key is a hash of, besides the key. No payload has a blank in it, so that no address has this
/// label's MAC.
const EPOCH_LABEL: &str = "toolshelf task key epoch 1";

/// Where a task is. Its JSON is the payload of the address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Locator {
    /// The environment that has it.
    pub environment: String,
    /// Which key sealed the address.
    pub key_epoch: String,
    /// The writer of its log entries.
    pub instance: String,
    /// The placement.
    pub placement: Placement,
    /// Containment string of the root.
    pub path: String,
    /// Device of the root's folder, on a machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<u64>,
    /// Inode of the root's folder, on a machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ino: Option<u64>,
    /// What makes the address one of its kind.
    pub id: String,
}

/// Why a text is no address.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum AddressFault {
    /// Longer than [`ADDRESS_MAX_CHARS`].
    #[error("the address is longer than {ADDRESS_MAX_CHARS} characters")]
    TooLong,
    /// Not of the form.
    #[error("a task's address is `task_`, its payload, a dot and 64 lowercase hexadecimal digits")]
    Shape,
    /// The payload is no locator, although its MAC is right.
    #[error("the address's payload is no locator")]
    Payload,
}

impl From<AddressFault> for Refusal {
    fn from(fault: AddressFault) -> Self {
        Self::new(Code::InvalidTaskAddress, fault.to_string())
    }
}

/// An address taken apart, its payload not yet believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The payload, as it stands in the address.
    pub payload: &'a str,
    /// What its MAC should be.
    pub mac: [u8; 32],
}

impl<'a> Sealed<'a> {
    /// Takes an address apart.
    ///
    /// # Errors
    /// [`AddressFault::TooLong`] and [`AddressFault::Shape`].
    pub fn split(address: &'a str) -> Result<Self, AddressFault> {
        if address.len() > ADDRESS_MAX_CHARS {
            return Err(AddressFault::TooLong);
        }
        let (payload, mac) =
            address.strip_prefix(PREFIX).and_then(|rest| rest.split_once('.')).ok_or(AddressFault::Shape)?;
        let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if payload.is_empty() || !payload.bytes().all(is_base64url) {
            return Err(AddressFault::Shape);
        }
        Ok(Self { payload, mac: read_mac(mac).ok_or(AddressFault::Shape)? })
    }

    /// What the MAC covers for `owner`.
    #[must_use]
    pub fn mac_input(&self, owner: &str) -> Vec<u8> {
        mac_input(self.payload, owner)
    }

    /// The locator. To be asked once the MAC was found right.
    ///
    /// # Errors
    /// [`AddressFault::Payload`].
    pub fn locator(&self) -> Result<Locator, AddressFault> {
        let json = URL_SAFE_NO_PAD.decode(self.payload).map_err(|_| AddressFault::Payload)?;
        serde_json::from_slice(&json).map_err(|_| AddressFault::Payload)
    }
}

impl Locator {
    /// The payload of this locator's address.
    ///
    /// # Errors
    /// [`AddressFault::TooLong`] when the address would be.
    pub fn payload(&self) -> Result<String, AddressFault> {
        let json = serde_json::to_vec(self).map_err(|_| AddressFault::Payload)?;
        let payload = URL_SAFE_NO_PAD.encode(json);
        let chars = PREFIX.len() + payload.len() + 1 + 64;
        if chars > ADDRESS_MAX_CHARS { Err(AddressFault::TooLong) } else { Ok(payload) }
    }
}

/// The address of `payload` under its MAC.
#[must_use]
pub fn address(payload: &str, mac: &[u8; 32]) -> String {
    format!("{PREFIX}{payload}.{}", to_hex(mac))
}

/// Reads exactly 64 lowercase hexadecimal digits: a MAC has one spelling.
fn read_mac(text: &str) -> Option<[u8; 32]> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 64 || !text.bytes().all(is_digit) {
        return None;
    }
    let mut mac = [0; 32];
    for (index, byte) in mac.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(mac)
}

/// What the MAC of an address covers: the payload, a NUL and the owner. A payload has no NUL, so that no two pairs have
/// the same bytes.
#[must_use]
pub fn mac_input(payload: &str, owner: &str) -> Vec<u8> {
    [payload.as_bytes(), b"\0", owner.as_bytes()].concat()
}

/// What a platform hashes with SHA-256 to learn the epoch of a key whose bytes it has.
///
/// One that cannot see its key's bytes takes the MAC of the same input for an empty key.
#[must_use]
pub fn key_epoch_input(key: &[u8]) -> Vec<u8> {
    [EPOCH_LABEL.as_bytes(), b"\0", key].concat()
}

/// The epoch of a key: the first 16 hexadecimal digits of the digest (or MAC) of its [`key_epoch_input`].
#[must_use]
pub fn key_epoch(digest: &Digest) -> String {
    digest.prefix()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn locator(path: &str) -> Locator {
        Locator {
            environment: "env_browser_local".into(),
            key_epoch: "0123456789abcdef".into(),
            instance: "browser-tab".into(),
            placement: Placement::Browser,
            path: path.into(),
            dev: None,
            ino: None,
            id: "loc_1".into(),
        }
    }

    fn sealed() -> String {
        address(&locator("opfs:v1/tasks").payload().unwrap(), &[0xa5; 32])
    }

    #[test]
    fn an_address_says_where_its_task_is() {
        let text = sealed();
        let parts = Sealed::split(&text).unwrap();
        assert_eq!(parts.mac, [0xa5; 32]);
        assert_eq!(parts.locator().unwrap(), locator("opfs:v1/tasks"));
        let json = URL_SAFE_NO_PAD.decode(parts.payload).unwrap();
        let documented = r#"{"environment":"env_browser_local","keyEpoch":"0123456789abcdef","instance":"browser-tab","placement":"browser","path":"opfs:v1/tasks","id":"loc_1"}"#;
        assert_eq!(String::from_utf8(json).unwrap(), documented);
        let on_a_machine = Locator { dev: Some(u64::MAX), ino: Some(7), ..locator("machine:/srv") };
        let text = address(&on_a_machine.payload().unwrap(), &[0; 32]);
        assert_eq!(Sealed::split(&text).unwrap().locator().unwrap(), on_a_machine);
    }

    #[test]
    fn what_is_not_of_the_form_is_no_address() {
        let good = sealed();
        let (payload, mac) = good.split_once('.').unwrap();
        let bad = [
            String::new(),
            "task_".into(),
            "task_.".into(),
            good[1..].into(),
            good.to_uppercase(),
            format!("{payload}.{}", mac.to_uppercase()),
            format!("{payload}=.{mac}"),
            format!("{payload}.{mac}0"),
            format!("{payload}.{}", &mac[1..]),
            format!("{payload}..{mac}"),
            format!("task_.{mac}"),
            format!("{payload}+.{mac}"),
            format!(" {good}"),
            format!("{good}\n"),
            format!("{payload}\0.{mac}"),
        ];
        for text in bad {
            assert_eq!(Sealed::split(&text), Err(AddressFault::Shape), "{text:?}");
        }
        let long = format!("task_{}.{mac}", "a".repeat(ADDRESS_MAX_CHARS));
        assert_eq!(Sealed::split(&long), Err(AddressFault::TooLong));
        assert_eq!(locator(&"x".repeat(ADDRESS_MAX_CHARS)).payload(), Err(AddressFault::TooLong));
        let sealed_nonsense = format!("task_{}.{mac}", URL_SAFE_NO_PAD.encode("[]"));
        assert_eq!(Sealed::split(&sealed_nonsense).unwrap().locator(), Err(AddressFault::Payload));
    }

    #[test]
    fn no_payload_and_owner_share_the_bytes_of_another_pair() {
        assert_ne!(mac_input("ab", "c"), mac_input("a", "bc"));
        assert_ne!(mac_input("a", ""), mac_input("", "a"));
    }

    #[test]
    fn the_epoch_of_a_key_is_no_part_of_it() {
        let key = [0x11; 32];
        let epoch = key_epoch(&Digest::of(&key_epoch_input(&key)));
        assert_eq!(epoch.len(), 16);
        assert!(!to_hex(&key).contains(&epoch) && epoch != Digest::of(&key).prefix());
        assert_ne!(epoch, key_epoch(&Digest::of(&key_epoch_input(&[0x12; 32]))));
    }

    #[test]
    fn no_flipped_bit_leaves_payload_and_mac_as_they_were() {
        let good = sealed();
        let parts = Sealed::split(&good).unwrap();
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(text) = String::from_utf8(bytes) else { continue };
            if let Ok(flipped) = Sealed::split(&text) {
                assert_ne!(flipped, parts, "bit {bit}");
            }
        }
    }

    proptest! {
        #[test]
        fn two_texts_are_never_the_same_address(at in 0_usize..300, char in any::<char>()) {
            let good = sealed();
            let mut chars: Vec<_> = good.chars().collect();
            let at = at % chars.len();
            prop_assume!(chars[at] != char);
            chars[at] = char;
            let text: String = chars.into_iter().collect();
            if let Ok(other) = Sealed::split(&text) {
                prop_assert_ne!(other, Sealed::split(&good).unwrap());
            }
        }

        #[test]
        fn no_text_makes_it_panic(text: String) {
            if let Ok(sealed) = Sealed::split(&text) {
                let _ = sealed.locator();
            }
            let sealed = Sealed { payload: &text, mac: [0; 32] };
            let _ = sealed.locator();
        }
    }
}
