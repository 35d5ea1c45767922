//! What is said over one connection, until it ends.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use toolshelf_core::live::{LinkState, ServerFrame, TurnState};
use toolshelf_core::refusal::{Code, Refusal};

use super::bridge::{Person, Waiting};
use super::calls::{Answered, Calls};
use super::connection::Connection;
use super::wire::{Ask, Said, Step, Wire};

/// A connection over which nothing was said for so long is closed: it costs the provider and the person.
const IDLE: Duration = Duration::from_secs(300);
/// Longest answer whose words are told all together at its end, in bytes; the rest was told while it was said.
const WORDS_MAX_BYTES: usize = 64 * 1024;
/// Frames of one connection that may be none of the protocol.
const MALFORMED_MAX: u32 = 16;

/// How a connection ended.
pub(super) enum End {
    /// The session is gone.
    Gone,
    /// Nothing was said for long.
    Idle,
    /// It was lost, was never there, or cannot go on.
    Lost { refusal: Refusal, in_turn: bool },
    /// Another one is to follow.
    Again,
}

/// What goes on from one connection to the next.
pub(super) struct Talk {
    wire: Wire,
    calls: Calls,
    /// Whether an answer is expected or being given.
    turn: bool,
    words: String,
    /// Whether an answer has come to its end since that was last asked.
    pub(super) answered: bool,
    /// Whether a connection was ready since that was last asked.
    pub(super) reached: bool,
}

/// A connection in use.
struct Over<'a> {
    connection: Connection,
    to: &'a Person,
    ready: bool,
    /// Whether it is to be left as soon as nothing is being said.
    leaving: bool,
    malformed: u32,
    last: Instant,
}

impl Talk {
    pub(super) fn new(wire: Wire, calls: Calls) -> Self {
        Self { wire, calls, turn: false, words: String::new(), answered: false, reached: false }
    }

    /// There is no connection because of that. An answer that was expected will not come any more.
    pub(super) fn lost(&mut self, refusal: Refusal) -> End {
        End::Lost { refusal, in_turn: std::mem::take(&mut self.turn) }
    }

    /// Talks until the connection ends. An answer that is not whole by then is given up, and so are its calls.
    pub(super) async fn over(
        &mut self,
        connection: Connection,
        (patience, tools): (Duration, &mut watch::Receiver<Vec<Value>>),
        asks: &mut mpsc::Receiver<Ask>,
        waiting: &mut Waiting,
        to: &Person,
    ) -> End {
        let last = Instant::now();
        let mut over = Over { connection, to, ready: false, leaving: false, malformed: 0, last };
        let end = self.talk(&mut over, (patience, tools), asks, waiting).await;
        self.calls.drop_all().await;
        self.words.clear();
        let end = match end {
            Ok(end) => end,
            Err(refusal) => self.lost(refusal),
        };
        over.connection.close().await;
        end
    }

    async fn talk(
        &mut self,
        over: &mut Over<'_>,
        (patience, tools): (Duration, &mut watch::Receiver<Vec<Value>>),
        asks: &mut mpsc::Receiver<Ask>,
        waiting: &mut Waiting,
    ) -> Result<End, Refusal> {
        let declared = tools.borrow_and_update().clone();
        for frame in self.wire.opening(&declared) {
            over.connection.send(&frame).await?;
        }
        loop {
            if over.leaving && !self.turn {
                return Ok(End::Again);
            }
            let expected = !over.ready || (self.turn && self.calls.is_idle());
            let silence = over.last + if expected { patience } else { IDLE };
            tokio::select! {
                frame = over.connection.next() => {
                    over.last = Instant::now();
                    let was_ready = over.ready;
                    let step = match self.wire.read(&frame?) {
                        Ok(step) => step,
                        Err(refusal) => {
                            over.malformed += 1;
                            tracing::warn!(why = refusal.why, "a frame of the live model is passed over");
                            if over.malformed > MALFORMED_MAX {
                                return Err(refusal);
                            }
                            continue;
                        }
                    };
                    self.follow(step, over).await?;
                    if over.ready && !was_ready {
                        for ask in waiting.take() {
                            self.ask(ask, over).await?;
                        }
                    }
                }
                answered = self.calls.next() => {
                    over.last = Instant::now();
                    self.answered(answered, over).await?;
                }
                ask = asks.recv() => match ask {
                    None => return Ok(End::Gone),
                    Some(ask) if over.ready => {
                        over.last = Instant::now();
                        self.ask(ask, over).await?;
                    }
                    Some(ask) => {
                        if let Err(refusal) = waiting.keep(ask) {
                            over.to.fault(&refusal).await;
                        }
                    }
                },
                Ok(()) = tools.changed(), if over.ready => {
                    let declared = tools.borrow_and_update().clone();
                    self.ask(Ask::Tools(declared), over).await?;
                }
                () = sleep_until(silence) => {
                    if !expected {
                        return Ok(End::Idle);
                    }
                    let why = format!("the provider of the live model was silent for {} s", patience.as_secs());
                    return Err(Refusal::new(Code::UpstreamFailed, why));
                }
            }
        }
    }

    async fn ask(&mut self, ask: Ask, over: &mut Over<'_>) -> Result<(), Refusal> {
        match ask {
            // Whoever speaks interrupts: calls that run are given up first.
            Ask::Text(_) => {
                self.drop_calls(over).await?;
                let step = self.wire.ask(ask);
                self.follow(step, over).await?;
                self.turn = true;
            }
            Ask::Cancel => {
                self.drop_calls(over).await?;
                let step = self.wire.ask(ask);
                self.follow(step, over).await?;
            }
            ask => {
                let step = self.wire.ask(ask);
                self.follow(step, over).await?;
            }
        }
        Ok(())
    }

    /// Gives up all calls that run.
    async fn drop_calls(&mut self, over: &mut Over<'_>) -> Result<(), Refusal> {
        for answered in self.calls.drop_all().await {
            self.answered(answered, over).await?;
        }
        Ok(())
    }

    async fn answered(&mut self, answered: Answered, over: &mut Over<'_>) -> Result<(), Refusal> {
        let Answered { call, result, frame, dropped } = answered;
        if let Some(frame) = frame {
            over.to.frame(frame).await;
        }
        let Step { send, .. } = self.wire.ask(Ask::Answer { call, result, dropped });
        for frame in send {
            over.connection.send(&frame).await?;
        }
        Ok(())
    }

    async fn follow(&mut self, step: Step, over: &mut Over<'_>) -> Result<(), Refusal> {
        for frame in &step.send {
            over.connection.send(frame).await?;
        }
        for said in step.said {
            self.hear(said, over).await?;
        }
        Ok(())
    }

    async fn hear(&mut self, said: Said, over: &mut Over<'_>) -> Result<(), Refusal> {
        let to = over.to;
        match said {
            Said::Ready => {
                (over.ready, self.reached) = (true, true);
                to.link(LinkState::Ready).await;
            }
            Said::Started => {
                self.turn = true;
                self.words.clear();
                self.calls.begin();
                to.turn(TurnState::Started).await;
            }
            Said::Words(mut text) => {
                bound(&mut text);
                if self.words.len() + text.len() <= WORDS_MAX_BYTES {
                    self.words.push_str(&text);
                }
                to.frame(ServerFrame::Partial { text }).await;
            }
            Said::Heard(mut text) => {
                bound(&mut text);
                to.frame(ServerFrame::Heard { text }).await;
            }
            Said::Audio(pcm) => to.audio(&pcm).await,
            Said::Call(call) => self.calls.start(call),
            Said::Dropped(ids) => ids.iter().for_each(|id| self.calls.drop_one(id)),
            Said::Interrupted => {
                self.turn = false;
                self.words.clear();
                for answered in self.calls.drop_all().await {
                    self.answered(answered, over).await?;
                }
                to.turn(TurnState::Interrupted).await;
            }
            Said::Ended(result) => {
                self.turn = false;
                self.answered = true;
                let text = std::mem::take(&mut self.words);
                if !text.is_empty() {
                    to.frame(ServerFrame::Text { text }).await;
                }
                match result {
                    Ok(()) => to.turn(TurnState::Ended).await,
                    Err(refusal) => {
                        to.fault(&refusal).await;
                        to.turn(TurnState::Failed).await;
                    }
                }
            }
            Said::Fault(refusal) => to.fault(&refusal).await,
            Said::Final(refusal) => return Err(refusal),
            Said::Leaving | Said::Again => over.leaving = true,
        }
        Ok(())
    }
}

/// What comes at once is no longer than a whole answer.
fn bound(text: &mut String) {
    text.truncate(text.floor_char_boundary(WORDS_MAX_BYTES));
}
