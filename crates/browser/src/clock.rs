//! The page's clock.

use gloo_timers::callback::Timeout;
use js_sys::Reflect;
use toolshelf_host::Clock;
use wasm_bindgen::{JsCast as _, JsValue};
use web_sys::Performance;

/// Waits.
pub async fn pause(ms: u32) {
    gloo_timers::future::TimeoutFuture::new(ms).await;
}

/// `performance.now()` and timers, in a page as well as in a worker.
#[derive(Debug, Clone)]
pub struct PageClock {
    performance: Option<Performance>,
}

impl PageClock {
    /// The clock of the current global object.
    #[must_use]
    pub fn new() -> Self {
        let performance = Reflect::get(&js_sys::global(), &JsValue::from_str("performance")).ok();
        Self { performance: performance.and_then(|value| value.dyn_into().ok()) }
    }
}

impl Default for PageClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for PageClock {
    fn now_ms(&self) -> f64 {
        self.performance.as_ref().map_or_else(js_sys::Date::now, Performance::now)
    }

    fn after(&self, ms: u32, then: Box<dyn FnOnce()>) {
        Timeout::new(ms, then).forget();
    }
}
