//! The functions of `platform.js`.

use wasm_bindgen::prelude::*;
use web_sys::Worker;

#[wasm_bindgen(raw_module = "./platform.js")]
extern "C" {
    /// A worker that runs the script of `url`: the browser's own, or a thread of Node with the same methods.
    ///
    /// # Errors
    /// What the platform throws when it lets no worker start.
    #[wasm_bindgen(catch, js_name = startWorker)]
    pub fn start_worker(url: &str) -> Result<Worker, JsValue>;

    /// What `executor.run(task)` answers or throws, at once or later.
    ///
    /// # Errors
    /// What it throws.
    #[wasm_bindgen(catch, js_name = runExecutor)]
    pub async fn run_executor(executor: &JsValue, task: &JsValue) -> Result<JsValue, JsValue>;
}
