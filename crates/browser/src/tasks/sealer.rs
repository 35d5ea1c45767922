//! The page's key: random, made once, kept in IndexedDB in a form that no script can read out.
//!
//! Source: DESIGN 3.7.

use js_sys::{Array, Uint8Array};
use toolshelf_core::Digest;
use toolshelf_core::address::{key_epoch, key_epoch_input};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_host::Sealer;
use wasm_bindgen::JsValue;

use super::store::TaskStore;
use crate::js;

/// Shortest key that is taken from outside, in bytes.
const KEY_MIN_BYTES: u32 = 32;

/// An HMAC-SHA256 key of the platform.
#[derive(Debug, Clone)]
pub struct WebSealer {
    key: JsValue,
    epoch: String,
}

impl WebSealer {
    /// The key of this browser; the first page makes it. Without a store it is forgotten with the page.
    ///
    /// # Errors
    /// [`Code::TaskEnvironmentUnverified`] where the platform has no cryptography for pages (a page over plain HTTP).
    pub async fn open(store: Option<&TaskStore>) -> Result<Self, Refusal> {
        let Some(store) = store else { return Self::of(generate().await?).await };
        let unreadable = |why: idb::Error| unavailable(&why.to_string());
        if let Some(key) = store.key().await.map_err(unreadable)? {
            return Self::of(key).await;
        }
        // Two pages may be the first at once; both take the key that was stored first.
        let made = generate().await?;
        Self::of(store.keep_key(&made).await.map_err(unreadable)?).await
    }

    /// A key whose bytes are given.
    ///
    /// # Errors
    /// [`Code::TaskEnvironmentUnverified`] for fewer than 32 bytes, and as [`open`](Self::open).
    pub async fn from_bytes(bytes: &Uint8Array) -> Result<Self, Refusal> {
        if bytes.length() < KEY_MIN_BYTES {
            let why = format!("the key has {} bytes; it needs {KEY_MIN_BYTES}", bytes.length());
            return Err(unavailable(&why));
        }
        let arguments = ["raw".into(), bytes.into(), algorithm(), JsValue::FALSE, usages()];
        Self::of(subtle("importKey", &arguments).await?).await
    }

    async fn of(key: JsValue) -> Result<Self, Refusal> {
        let mut sealer = Self { key, epoch: String::new() };
        // Nobody sees the key's bytes, so its epoch comes from a MAC that no address has.
        let mac = sealer.seal(&key_epoch_input(&[])).await?;
        sealer.epoch = key_epoch(&Digest::from_bytes(mac));
        Ok(sealer)
    }
}

impl Sealer for WebSealer {
    async fn seal(&self, bytes: &[u8]) -> Result<[u8; 32], Refusal> {
        let data = Uint8Array::from(bytes).into();
        let mac = subtle("sign", &["HMAC".into(), self.key.clone(), data]).await?;
        let mac = Uint8Array::new(&mac).to_vec();
        mac.try_into().map_err(|_| unavailable("the platform's MAC is not 32 bytes long"))
    }

    async fn verify(&self, bytes: &[u8], mac: &[u8; 32]) -> bool {
        let (data, mac) = (Uint8Array::from(bytes).into(), Uint8Array::from(&mac[..]).into());
        let verified = subtle("verify", &["HMAC".into(), self.key.clone(), mac, data]).await;
        verified.is_ok_and(|verified| verified == JsValue::TRUE)
    }

    fn epoch(&self) -> &str {
        &self.epoch
    }

    fn nonce(&self) -> [u8; 16] {
        random_bytes()
    }
}

/// Sixteen random bytes.
pub(crate) fn random_bytes() -> [u8; 16] {
    let bytes = Uint8Array::new_with_length(16);
    let mut random = [0; 16];
    // Where there is no cryptography there is no sealer either, and nothing asks for this.
    if js::call(&js::global("crypto"), "getRandomValues", &[(&bytes).into()]).is_ok() {
        bytes.copy_to(&mut random);
    }
    random
}

async fn generate() -> Result<JsValue, Refusal> {
    subtle("generateKey", &[algorithm(), JsValue::FALSE, usages()]).await
}

fn algorithm() -> JsValue {
    js::object(&[("name", "HMAC".into()), ("hash", "SHA-256".into())]).into()
}

fn usages() -> JsValue {
    Array::of2(&"sign".into(), &"verify".into()).into()
}

async fn subtle(name: &str, arguments: &[JsValue]) -> Result<JsValue, Refusal> {
    let subtle = js::get(&js::global("crypto"), "subtle");
    if subtle.is_undefined() {
        return Err(unavailable("the page was not loaded over https or from this machine, so it has no key"));
    }
    js::call_async(&subtle, name, arguments).await.map_err(|thrown| unavailable(&js::message(&thrown)))
}

fn unavailable(why: &str) -> Refusal {
    Refusal::new(Code::TaskEnvironmentUnverified, format!("tasks cannot be sealed here: {why}"))
}
