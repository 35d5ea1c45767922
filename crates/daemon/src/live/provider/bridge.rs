//! From a person's session to the provider of a model and back, over as many connections as it takes.
//!
//! A bridge is one task. It ends with the session that has it, and its calls and its connection with it. While there is
//! no connection, what is said waits, within bounds; a connection that is lost in the middle of an answer is opened
//! again after growing pauses, a few times.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use toolshelf_core::declare::command_declarations;
use toolshelf_core::live::{LIVE_AUDIO_MAX_BYTES, LinkState, ServerFrame, TurnState};
use toolshelf_core::redact::Redactor;
use toolshelf_core::refusal::{Code, Refusal};
use zeroize::Zeroizing;

use super::calls::Calls;
use super::connection::Connection;
use super::settings::{KeyPlace, LiveSettings};
use super::talk::{End, Talk};
use super::wire::{Ask, Wire};
use crate::http::handle::Handle;
use crate::service::Service;

/// What waits between the session and its bridge, each way.
const QUEUE: usize = 64;
/// Longest words of a person, in bytes.
const TEXT_MAX_BYTES: usize = 64 * 1024;
/// What waits for a connection.
const WAITING_MAX: usize = 64;
/// Sound that waits for a connection, in bytes.
const WAITING_AUDIO_MAX_BYTES: usize = 512 * 1024;
/// Connections that are tried one after the other before it is left at that.
const TRIES: u32 = 5;
/// The first pause after a connection was lost. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// What a bridge gives to its session.
#[derive(Debug)]
pub(in crate::live) enum Out {
    /// A frame for the person.
    Frame(ServerFrame),
    /// The model's voice.
    Audio(Vec<u8>),
}

/// A bridge. Dropping it ends all that belongs to it.
#[derive(Debug)]
pub(in crate::live) struct Bridge {
    asks: mpsc::Sender<Ask>,
    tools: watch::Sender<Vec<Value>>,
    out: mpsc::Receiver<Out>,
    task: JoinHandle<()>,
}

impl Bridge {
    /// A bridge for that session. Nothing is opened yet.
    pub(in crate::live) fn start(
        handle: Handle,
        settings: LiveSettings,
        tools: &[Value],
        session: u64,
    ) -> Self {
        let (asks, asked) = mpsc::channel(QUEUE);
        let (out, heard) = mpsc::channel(QUEUE);
        let (tools, declared) = watch::channel(all(tools));
        let wire = Wire::new(&settings);
        let calls = Calls::new(handle.clone(), session);
        let bridge = Crossing {
            handle,
            settings,
            tools: declared,
            asks: asked,
            waiting: Waiting::default(),
            to: Person { out, redactor: Redactor::default() },
            talk: Talk::new(wire, calls),
        };
        Self { asks, tools, out: heard, task: tokio::spawn(bridge.run()) }
    }

    pub(in crate::live) fn text(&self, text: String) -> Result<(), Refusal> {
        if text.len() > TEXT_MAX_BYTES {
            let why = format!("a model is told at most {TEXT_MAX_BYTES} bytes at a time");
            return Err(Refusal::new(Code::OverBudget, why));
        }
        self.ask(Ask::Text(text))
    }

    pub(in crate::live) fn audio(&self, pcm: Vec<u8>) -> Result<(), Refusal> {
        self.ask(Ask::Audio(pcm))
    }

    pub(in crate::live) fn audio_end(&self) -> Result<(), Refusal> {
        self.ask(Ask::AudioEnd)
    }

    pub(in crate::live) fn cancel(&self) -> Result<(), Refusal> {
        self.ask(Ask::Cancel)
    }

    /// These tools can be called from now on.
    pub(in crate::live) fn tools(&self, tools: &[Value]) {
        self.tools.send_replace(all(tools));
    }

    /// What comes next. May be dropped and asked again.
    pub(in crate::live) async fn next(&mut self) -> Out {
        match self.out.recv().await {
            Some(out) => out,
            // The task ends after this value alone.
            None => std::future::pending().await,
        }
    }

    fn ask(&self, ask: Ask) -> Result<(), Refusal> {
        self.asks
            .try_send(ask)
            .map_err(|_| Refusal::new(Code::OverBudget, "more is said than the model takes"))
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a model may call: the commands, and the tools.
fn all(tools: &[Value]) -> Vec<Value> {
    let mut all = command_declarations();
    all.extend_from_slice(tools);
    all
}

/// The way to the person.
pub(super) struct Person {
    out: mpsc::Sender<Out>,
    /// Knows the key, should a provider repeat it.
    redactor: Redactor,
}

impl Person {
    pub(super) async fn frame(&self, frame: ServerFrame) {
        // When the session is gone, this task is about to end.
        let _ = self.out.send(Out::Frame(frame)).await;
    }

    pub(super) async fn audio(&self, pcm: &[u8]) {
        for part in pcm.chunks(LIVE_AUDIO_MAX_BYTES) {
            let _ = self.out.send(Out::Audio(part.to_vec())).await;
        }
    }

    pub(super) async fn fault(&self, refusal: &Refusal) {
        let why = self.redactor.redact(&refusal.why).into_owned();
        tracing::warn!(refused = refusal.code.as_str(), why, "the live model");
        self.frame(ServerFrame::fault(&Refusal::new(refusal.code, why))).await;
    }

    pub(super) async fn turn(&self, state: TurnState) {
        self.frame(ServerFrame::Turn { state }).await;
    }

    pub(super) async fn link(&self, state: LinkState) {
        self.frame(ServerFrame::Link { state }).await;
    }
}

/// What waits for a connection.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    asks: VecDeque<Ask>,
    audio_bytes: usize,
}

impl Waiting {
    /// Keeps what is said. Sound that does not fit any more is lost.
    ///
    /// # Errors
    /// [`Code::OverBudget`] for words that do not fit.
    pub(super) fn keep(&mut self, ask: Ask) -> Result<(), Refusal> {
        match &ask {
            Ask::Cancel => {
                *self = Self::default();
                return Ok(());
            }
            Ask::Audio(pcm) if self.audio_bytes + pcm.len() > WAITING_AUDIO_MAX_BYTES => return Ok(()),
            Ask::Audio(pcm) => self.audio_bytes += pcm.len(),
            _ if self.asks.len() >= WAITING_MAX => {
                let why = format!("{WAITING_MAX} texts wait for a connection to the model already");
                return Err(Refusal::new(Code::OverBudget, why));
            }
            _ => {}
        }
        self.asks.push_back(ask);
        Ok(())
    }

    pub(super) fn take(&mut self) -> VecDeque<Ask> {
        self.audio_bytes = 0;
        std::mem::take(&mut self.asks)
    }

    fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }
}

/// The task.
struct Crossing {
    handle: Handle,
    settings: LiveSettings,
    tools: watch::Receiver<Vec<Value>>,
    asks: mpsc::Receiver<Ask>,
    waiting: Waiting,
    to: Person,
    talk: Talk,
}

impl Crossing {
    async fn run(mut self) {
        // Tries since there was a connection, and connections that were left for another one since an answer.
        let (mut tries, mut moves) = (0, 0);
        loop {
            // Nothing is opened for nothing.
            while self.waiting.is_empty() && tries == 0 {
                match self.asks.recv().await {
                    Some(ask) => self.keep(ask).await,
                    None => return,
                }
            }
            self.to.link(LinkState::Connecting).await;
            let end = match self.open().await {
                Some(Ok(connection)) => {
                    let settings = (self.settings.patience, &mut self.tools);
                    self.talk.over(connection, settings, &mut self.asks, &mut self.waiting, &self.to).await
                }
                Some(Err(refusal)) => self.talk.lost(refusal),
                None => End::Gone,
            };
            if std::mem::take(&mut self.talk.answered) {
                moves = 0;
            }
            match end {
                End::Gone => return,
                End::Idle => {
                    tries = 0;
                    self.to.link(LinkState::Closed).await;
                }
                End::Lost { refusal, in_turn } => {
                    tries = if std::mem::take(&mut self.talk.reached) { 1 } else { tries + 1 };
                    if !self.lost(&refusal, in_turn, tries).await {
                        tries = 0;
                    } else if !self.pause(tries).await {
                        return;
                    }
                }
                End::Again => {
                    moves += 1;
                    // A provider that sends everybody away is left at that.
                    tries = u32::from(moves < TRIES);
                    if tries == 0 {
                        moves = 0;
                        self.to.link(LinkState::Closed).await;
                    } else if !self.pause(moves).await {
                        return;
                    }
                }
            }
        }
    }

    /// Tells of a connection that is lost; whether another try is worth it.
    async fn lost(&mut self, refusal: &Refusal, in_turn: bool, tries: u32) -> bool {
        let is_over = is_final(refusal.code) || tries >= TRIES;
        let is_wanted = in_turn || !self.waiting.is_empty() || tries > 1;
        // Words that wait are given up with the last try. Whether a model has acted on an answer that was being given
        // is not known: it is not asked for again.
        let has_waited = is_over && !self.waiting.take().is_empty();
        let is_given_up = in_turn || has_waited;
        if is_given_up || is_final(refusal.code) {
            self.to.fault(refusal).await;
        }
        if is_given_up {
            self.to.turn(TurnState::Failed).await;
        }
        let again = is_wanted && !is_over;
        if !again {
            self.to.link(LinkState::Closed).await;
        }
        again
    }

    /// Opens a connection while what is said is kept; `None` when the session is gone.
    async fn open(&mut self) -> Option<Result<Connection, Refusal>> {
        let (handle, settings) = (self.handle.clone(), self.settings.clone());
        let opening = async move {
            let key = key(&handle).await?;
            let redactor = Redactor::from_variables([("API_KEY", &**key)]);
            Ok((Connection::open(&settings, &key).await?, redactor))
        };
        let mut opening = std::pin::pin!(opening);
        loop {
            tokio::select! {
                opened = &mut opening => {
                    return Some(opened.map(|(connection, redactor)| {
                        self.to.redactor = redactor;
                        connection
                    }));
                }
                ask = self.asks.recv() => match ask {
                    Some(ask) => self.keep(ask).await,
                    None => return None,
                },
            }
        }
    }

    /// Waits before another try while what is said is kept; false when the session is gone.
    async fn pause(&mut self, tries: u32) -> bool {
        let mut over = std::pin::pin!(sleep(FIRST_PAUSE * 2_u32.pow(tries.saturating_sub(1))));
        loop {
            tokio::select! {
                () = &mut over => return true,
                ask = self.asks.recv() => match ask {
                    Some(ask) => self.keep(ask).await,
                    None => return false,
                },
            }
        }
    }

    async fn keep(&mut self, ask: Ask) {
        let interrupted = ask == Ask::Cancel && !self.waiting.is_empty();
        if let Err(refusal) = self.waiting.keep(ask) {
            self.to.fault(&refusal).await;
        }
        if interrupted {
            self.to.turn(TurnState::Interrupted).await;
        }
    }
}

/// Whether another try would end in the same way.
fn is_final(code: Code) -> bool {
    code != Code::UpstreamFailed
}

/// The key, from where it is kept.
async fn key(handle: &Handle) -> Result<Zeroizing<String>, Refusal> {
    let read = async |service: Service| {
        let Some(place) = service.live().map(|settings| settings.key().clone()) else {
            return Err(Refusal::new(Code::LiveKeyMissing, "no live model is set"));
        };
        match place {
            KeyPlace::Variable(name) => {
                let value = std::env::var(&name).ok().filter(|value| !value.trim().is_empty());
                let value = value.map(|value| Zeroizing::new(value.trim().to_owned()));
                value.ok_or_else(|| {
                    let why = format!("the environment variable {name} has no key; or name a secret of the vault as `key-secret`");
                    Refusal::new(Code::LiveKeyMissing, why)
                })
            }
            KeyPlace::Secret(id) => {
                let bytes = service.extensions()?.on_thread(move |extensions| extensions.secret(&id)).await?;
                let text = std::str::from_utf8(&bytes).map_err(|_| {
                    Refusal::new(Code::LiveKeyMissing, "the secret of `key-secret` is no text, and so no key")
                })?;
                Ok(Zeroizing::new(text.trim().to_owned()))
            }
        }
    };
    handle.ask(read).await?
}
