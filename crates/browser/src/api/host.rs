//! `createBrowserTaskHost`: a task host over what a caller of JavaScript gives.

use std::rc::Rc;

use futures::FutureExt as _;
use js_sys::{Array, Uint8Array};
use toolshelf_core::redact::Redactor;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_host::task_host::Redact;
use toolshelf_host::{Caller, MemoryJournal, TaskHost, TaskHostConfig, Wish};
use wasm_bindgen::prelude::*;
use web_sys::{BroadcastChannel, MessageEvent};

use super::area::AreaJournal;
use super::executor::{JsExecutor, JsRoots};
use super::rules::redactor;
use crate::clock::PageClock;
use crate::js;
use crate::tasks::kept::PageJournal;
use crate::tasks::life::PageLife;
use crate::tasks::platform::PagePlatform;
use crate::tasks::sealer::WebSealer;
use crate::tasks::store::TaskStore;

/// Channels on which pages with the same database tell each other which task they have written of.
const CHANNEL: &str = "toolshelf-host:";

thread_local! {
    /// Where the tasks of all hosts are kept that were given no storage and found none.
    static MEMORY: MemoryJournal = MemoryJournal::default();
}

/// A host that is open: its key is there, and its journal.
#[wasm_bindgen]
#[derive(Debug)]
pub struct OpenTaskHost {
    host: TaskHost<PagePlatform<JsExecutor, JsRoots>>,
    persistent: bool,
}

/// Where the tasks of a host are kept, and with what they are sealed.
struct Kept {
    journal: PageJournal,
    sealer: WebSealer,
    /// On which other pages with the same database are heard.
    channel: Option<BroadcastChannel>,
    persistent: bool,
}

/// Opens a host. `options` are those of `createBrowserTaskHost`, made whole by `index.js`:
/// `{environment, instance, project, boot?, root, executor, key?, variables}` and one of `area` (a storage like
/// `localStorage`), `database` (a name; with `orMemory` where there may be none) or neither (memory; with `shared` the
/// one of all such hosts).
///
/// # Errors
/// A refusal as a plain object: `task-environment-unverified` and `storage-unavailable`.
#[wasm_bindgen(js_name = openTaskHost)]
pub async fn open_task_host(options: JsValue) -> Result<OpenTaskHost, JsValue> {
    open(&options).await.map_err(|refusal| js::plain(&refusal))
}

#[wasm_bindgen]
impl OpenTaskHost {
    /// Whether tasks can be asked for after this page is gone.
    #[must_use]
    #[wasm_bindgen(getter)]
    pub fn persistent(&self) -> bool {
        self.persistent
    }

    /// Calls a tool of tasks; `args` is JSON. Answers the reply or the refusal as a plain object.
    pub async fn call(
        &self,
        tool: String,
        args: String,
        owner: Option<String>,
        call_id: Option<String>,
    ) -> JsValue {
        let caller = Caller { owner, call_id, wish: Wish::default() };
        match self.host.call(&tool, &super::value(&args), &caller).boxed_local().await {
            Ok(reply) => js::plain(&reply),
            Err(refusal) => js::plain(&refusal),
        }
    }
}

async fn open(options: &JsValue) -> Result<OpenTaskHost, Refusal> {
    let text = |key: &str| js::get(options, key).as_string().unwrap_or_default();
    let name = js::get(options, "database").as_string();
    let Kept { journal, sealer, channel, persistent } = keep(options, name.as_deref()).await?;
    let redactor: Redactor = redactor(&variables(options));
    let redact: Redact = Rc::new(move |text: &str| redactor.redact(text).into_owned());
    let config = TaskHostConfig {
        environment: text("environment"),
        instance: text("instance"),
        project: text("project"),
        ..TaskHostConfig::browser(redact)
    };
    let platform = PagePlatform {
        sealer,
        journal,
        executor: JsExecutor::new(js::get(options, "executor")),
        clock: PageClock::new(),
        life: PageLife::begin(js::get(options, "boot").as_string()).await,
        roots: JsRoots(js::get(options, "root")),
    };
    let host = TaskHost::new(config, platform);
    if let Some(channel) = channel {
        heed_others(&host, &channel);
    }
    Ok(OpenTaskHost { host, persistent })
}

async fn keep(options: &JsValue, database: Option<&str>) -> Result<Kept, Refusal> {
    let key = js::get(options, "key").dyn_into::<Uint8Array>().ok();
    let seal = async |store: Option<&TaskStore>| match &key {
        Some(bytes) => WebSealer::from_bytes(bytes).await,
        None => WebSealer::open(store).await,
    };
    let flag = |name: &str| js::get(options, name).is_truthy();
    if let Some(database) = database {
        match TaskStore::open(database).await {
            Ok(store) => {
                let sealer = seal(Some(&store)).await?;
                let channel = BroadcastChannel::new(&[CHANNEL, database].concat()).ok();
                let others = channel.clone();
                let written = Rc::new(move |address: &str| {
                    if let Some(others) = &others {
                        // A page that misses this reads the journal again when it is asked.
                        let _ = others.post_message(&address.into());
                    }
                });
                let journal = PageJournal::new(Some(Rc::new(store)), written);
                return Ok(Kept { journal, sealer, channel, persistent: true });
            }
            Err(_) if flag("orMemory") => {}
            Err(fault) => {
                let why =
                    format!("the database {database:?} cannot be opened: {}", cut(&fault.to_string(), 120));
                return Err(Refusal::new(Code::StorageUnavailable, why));
            }
        }
    }
    let sealer = seal(None).await?;
    let area = js::get(options, "area");
    if area.is_object() {
        // With a key that is forgotten, nobody could ask for what is still there.
        return Ok(Kept {
            journal: PageJournal::of_area(AreaJournal::new(area)),
            sealer,
            channel: None,
            persistent: key.is_some(),
        });
    }
    let shared = flag("shared") || flag("orMemory");
    let memory = if shared { MEMORY.with(MemoryJournal::clone) } else { MemoryJournal::default() };
    Ok(Kept { journal: PageJournal::of_memory(memory), sealer, channel: None, persistent: false })
}

/// Hears from other pages which task they have written of: such as a request to cancel one that runs here.
fn heed_others(host: &TaskHost<PagePlatform<JsExecutor, JsRoots>>, channel: &BroadcastChannel) {
    let host = host.clone();
    let heard = Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
        if let Some(address) = event.data().as_string() {
            let host = host.clone();
            wasm_bindgen_futures::spawn_local(async move { host.heed(&address).await });
        }
    });
    // As long as the page lives, like the host.
    channel.set_onmessage(Some(heard.into_js_value().unchecked_ref()));
}

fn variables(options: &JsValue) -> Vec<String> {
    let list = js::get(options, "variables");
    list.dyn_ref::<Array>()
        .map(|list| list.iter().filter_map(|text| text.as_string()).collect())
        .unwrap_or_default()
}
