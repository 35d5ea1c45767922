//! What the tabs of a browser tell each other about tasks.

use std::fmt;

use js_sys::Array;
use wasm_bindgen::prelude::*;
use web_sys::{BroadcastChannel, MessageEvent};

/// Name of the channel.
const CHANNEL: &str = "toolshelf-tasks";

/// What another tab has said.
pub(super) enum Heard {
    /// It has written of the task at this address.
    Written(String),
    /// It has written of many tasks.
    Many,
    /// How far its task is: address and note.
    Note(String, String),
}

/// The way to the other tabs. Without storage there is nothing that they share.
#[derive(Clone)]
pub(super) struct Tabs {
    channel: Option<BroadcastChannel>,
}

impl Tabs {
    pub(super) fn open(shared: bool) -> Self {
        Self { channel: shared.then(|| BroadcastChannel::new(CHANNEL).ok()).flatten() }
    }

    /// Hears the other tabs, as long as what is answered is kept.
    pub(super) fn listen(&self, hear: impl Fn(Heard) + 'static) -> Closure<dyn FnMut(MessageEvent)> {
        let on_message = Closure::new(move |event: MessageEvent| {
            let said = event.data();
            let pair = said.dyn_ref::<Array>().map(|said| (said.get(0).as_string(), said.get(1).as_string()));
            hear(match (said.as_string(), pair) {
                (Some(address), _) => Heard::Written(address),
                (None, Some((Some(address), Some(note)))) => Heard::Note(address, note),
                (None, _) => Heard::Many,
            });
        });
        if let Some(channel) = &self.channel {
            channel.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        }
        on_message
    }

    pub(super) fn say_written(&self, address: &str) {
        self.say(&address.into());
    }

    pub(super) fn say_many(&self) {
        self.say(&JsValue::NULL);
    }

    pub(super) fn say_note(&self, address: &str, note: &str) {
        self.say(&Array::of2(&address.into(), &note.into()));
    }

    fn say(&self, what: &JsValue) {
        if let Some(channel) = &self.channel {
            // A tab that misses this reads the journal again when it is looked at.
            let _ = channel.post_message(what);
        }
    }

    pub(super) fn close(&self) {
        if let Some(channel) = &self.channel {
            channel.set_onmessage(None);
            channel.close();
        }
    }
}

impl fmt::Debug for Tabs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tabs").field("open", &self.channel.is_some()).finish()
    }
}
