//! Single-use workers.
//!
//! Each runs the script `worker.js` from a `data:` URL, whose origin is opaque: measured in Chromium, such a worker
//! reaches no storage, no cache and no network. Where a browser refuses `data:` workers, a `blob:` URL serves.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use futures::StreamExt as _;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use gloo_timers::callback::Timeout;
use toolshelf_core::limits::WASM_IDLE_WORKERS;
use wasm_bindgen::prelude::*;
use web_sys::{Blob, ErrorEvent, MessageEvent, Worker};

use crate::js;

const SCRIPT: &str = include_str!("worker.js");

#[cfg(not(feature = "api"))]
fn start_worker(url: &str) -> Result<Worker, JsValue> {
    Worker::new(url)
}

#[cfg(feature = "api")]
use crate::api::platform::start_worker;

/// One worker. Dropping it ends it, in the middle of a loop too.
pub struct Isolate {
    worker: Worker,
    said: UnboundedReceiver<Said>,
    ready: bool,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_error: Closure<dyn FnMut(ErrorEvent)>,
}

enum Said {
    Message(JsValue),
    Failed(String),
}

impl Isolate {
    /// Starts a worker and lets it do the trial. Its answer says that the worker is ready.
    fn spawn(url: &str, trial: &JsValue) -> Result<Self, String> {
        let worker = start_worker(url).map_err(|thrown| js::message(&thrown))?;
        let (say, said) = unbounded();
        let fail = say.clone();
        let on_message = Closure::new(move |event: MessageEvent| {
            let _ = say.unbounded_send(Said::Message(event.data()));
        });
        let on_error = Closure::new(move |event: ErrorEvent| {
            // What went wrong is told to the caller of the tool; the console is not the place for it.
            event.prevent_default();
            let _ =
                fail.unbounded_send(Said::Failed(js::get(&event, "message").as_string().unwrap_or_default()));
        });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        worker.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        let isolate = Self { worker, said, ready: false, _on_message: on_message, _on_error: on_error };
        isolate.give(trial)?;
        isolate.start()?;
        Ok(isolate)
    }

    /// Waits until the trial is over.
    async fn ready(&mut self) -> Result<(), String> {
        if !self.ready {
            self.next().await?;
            self.ready = true;
        }
        Ok(())
    }

    /// Hands over a job; nothing of it runs yet.
    fn give(&self, job: &JsValue) -> Result<(), String> {
        self.worker.post_message(job).map_err(|thrown| js::message(&thrown))
    }

    /// Lets the job run.
    fn start(&self) -> Result<(), String> {
        self.give(&JsValue::from_str("run"))
    }

    async fn next(&mut self) -> Result<JsValue, String> {
        match self.said.next().await {
            Some(Said::Message(data)) => Ok(data),
            Some(Said::Failed(why)) => Err(why),
            None => Err("the worker is gone".to_owned()),
        }
    }
}

impl Drop for Isolate {
    fn drop(&mut self) {
        self.worker.set_onmessage(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
    }
}

impl fmt::Debug for Isolate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Isolate").field("ready", &self.ready).finish_non_exhaustive()
    }
}

/// The right to use an isolate once. When it is dropped, the isolate is ended and another one started in its place: in
/// a moment of its own, so that an answer does not wait for it.
#[derive(Debug)]
pub struct Lease {
    isolate: Option<Isolate>,
    isolates: Rc<Isolates>,
}

impl Lease {
    /// Hands the isolate its one job; nothing of it runs yet.
    ///
    /// # Errors
    /// What the browser said of a message that could not be sent.
    pub fn give(&self, job: &JsValue) -> Result<(), String> {
        self.isolate.as_ref().map_or(Ok(()), |isolate| isolate.give(job))
    }

    /// Lets the job run.
    ///
    /// # Errors
    /// What the browser said of a message that could not be sent.
    pub fn start(&self) -> Result<(), String> {
        self.isolate.as_ref().map_or(Ok(()), Isolate::start)
    }

    /// Waits for the answer of the job that was started.
    ///
    /// # Errors
    /// What the browser said of a worker that failed.
    pub async fn answer(&mut self) -> Result<JsValue, String> {
        match &mut self.isolate {
            Some(isolate) => isolate.next().await,
            None => Err("the worker is gone".to_owned()),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (used, isolates) = (self.isolate.take(), Rc::clone(&self.isolates));
        let replace = move || {
            drop(used);
            isolates.refill();
        };
        Timeout::new(0, replace).forget();
    }
}

/// Isolates that were started ahead, so that a call need not wait for one.
///
/// Each has run a trial, a job like any other: the first message and the first instance in a worker cost more than all
/// later ones together, and nobody waits for them here.
#[derive(Debug)]
pub struct Isolates {
    trial: JsValue,
    idle: RefCell<VecDeque<Isolate>>,
    blob: Cell<bool>,
    url: RefCell<Option<String>>,
}

impl Isolates {
    /// No isolates yet; `trial` is the job that each will run first.
    #[must_use]
    pub fn new(trial: JsValue) -> Self {
        Self { trial, idle: RefCell::default(), blob: Cell::new(false), url: RefCell::default() }
    }

    /// Starts isolates until as many as should be are idle.
    pub fn refill(&self) {
        while self.idle.borrow().len() < WASM_IDLE_WORKERS {
            match self.spawn() {
                Ok(isolate) => self.idle.borrow_mut().push_back(isolate),
                // The call that needs one will say why there is none.
                Err(_) => return,
            }
        }
    }

    /// Takes the isolate that was started first, or a new one, and waits until it is ready.
    ///
    /// # Errors
    /// What the browser said when it lets no worker start.
    pub async fn take(self: &Rc<Self>) -> Result<Lease, String> {
        loop {
            let idle = self.idle.borrow_mut().pop_front();
            let mut isolate = idle.map_or_else(|| self.spawn(), Ok)?;
            match isolate.ready().await {
                Ok(()) => return Ok(Lease { isolate: Some(isolate), isolates: Rc::clone(self) }),
                Err(why) if self.blob.get() => return Err(why),
                Err(_) => self.fall_back_to_blob(),
            }
        }
    }

    fn spawn(&self) -> Result<Isolate, String> {
        let url = self.url.borrow_mut().get_or_insert_with(|| self.script_url()).clone();
        Isolate::spawn(&url, &self.trial)
    }

    fn fall_back_to_blob(&self) {
        self.blob.set(true);
        self.url.take();
        self.idle.take();
    }

    fn script_url(&self) -> String {
        let data = || format!("data:text/javascript,{}", String::from(js_sys::encode_uri_component(SCRIPT)));
        if !self.blob.get() {
            return data();
        }
        let parts = js_sys::Array::of1(&JsValue::from_str(SCRIPT));
        let blob = Blob::new_with_str_sequence(&parts);
        blob.and_then(|blob| web_sys::Url::create_object_url_with_blob(&blob)).unwrap_or_else(|_| data())
    }
}
