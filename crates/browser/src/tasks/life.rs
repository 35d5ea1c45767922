//! The life of this page: a name, and a Web Lock of that name which the page holds until it is gone.
//!
//! Source: DESIGN 3.9.

use js_sys::{Array, Promise};
use toolshelf_core::digest::to_hex;
use toolshelf_host::Life;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::sealer::random_bytes;
use crate::js;

/// What the name of a life's lock begins with.
const LOCK: &str = "toolshelf-life-";

/// One page life.
#[derive(Debug, Clone)]
pub struct PageLife {
    boot: String,
    locks: JsValue,
}

impl PageLife {
    /// Begins a life of the name `boot`, or of a random one. It holds its lock when this is done, so that no task can be
    /// admitted by a life that others could take for over.
    pub async fn begin(boot: Option<String>) -> Self {
        let boot = boot.unwrap_or_else(|| ["boot_", &to_hex(&random_bytes())].concat());
        let locks = js::get(&js::global("navigator"), "locks");
        let life = Self { boot, locks };
        life.hold().await;
        life
    }

    async fn hold(&self) {
        if !self.locks.is_object() {
            return;
        }
        let name = JsValue::from([LOCK, &self.boot].concat());
        let locks = self.locks.clone();
        // Shared, so that a second host of the same name in this page does not wait for ever.
        let options: JsValue = js::object(&[("mode", "shared".into())]).into();
        let held = Promise::new(&mut |granted, _| {
            let (done, refused) = (granted.clone(), granted);
            let keep = Closure::once_into_js(move |_lock: JsValue| {
                let _ = done.call0(&JsValue::UNDEFINED);
                // Never settles: the lock is held as long as the page lives.
                Promise::new(&mut |_, _| ())
            });
            // A frame of an opaque origin gets no lock; it goes on without.
            let asked = js::call(&locks, "request", &[name.clone(), options.clone(), keep]);
            if asked.and_then(|asked| js::call(&asked, "catch", &[(&refused).into()])).is_err() {
                let _ = refused.call0(&JsValue::UNDEFINED);
            }
        });
        let _ = JsFuture::from(held).await;
    }
}

impl Life for PageLife {
    fn boot(&self) -> &str {
        &self.boot
    }

    async fn is_over(&self, boot: &str, _pid: Option<u32>) -> bool {
        if !self.locks.is_object() {
            return false;
        }
        let Ok(state) = js::call_async(&self.locks, "query", &[]).await else { return false };
        let name = [LOCK, boot].concat();
        let is_its = |lock: JsValue| js::get(&lock, "name").as_string().as_deref() == Some(&*name);
        let any = |list: &str| Array::from(&js::get(&state, list)).iter().any(is_its);
        !any("held") && !any("pending")
    }
}
