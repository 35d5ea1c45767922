//! `GET /v1/events`: what happens, as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use toolshelf_core::live::ServerFrame;

use super::App;
use super::accept::Stopping;
use super::answer::Fault;
use super::who::Who;
use crate::service::{Event, lagged};

/// A line for nobody is sent when nothing has happened for so long, so that both sides know that the other is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A client that watches.
struct Watching {
    events: broadcast::Receiver<Event>,
    stopping: Stopping,
    over: bool,
    who: Who,
    app: App,
    _place: OwnedSemaphorePermit,
}

/// Streams every event of the client's owner, each with the live frame of its name as data.
pub(crate) async fn events(State(app): State<App>, who: Who) -> Result<Response, Fault> {
    let place = app.places().watch()?;
    let (events, stopping) = (app.handle().events(), app.stopping());
    let watching = Watching { events, stopping, over: false, who, app, _place: place };
    let stream = stream::unfold(watching, |mut watching| async move {
        let frame = watching.next().await?;
        Some((sent(&frame), watching))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

impl Watching {
    /// The next frame; `None` when there will be none.
    async fn next(&mut self) -> Option<ServerFrame> {
        while !self.over {
            let event = tokio::select! {
                event = self.events.recv() => event,
                () = self.stopping.wait() => return None,
                // The last that it hears.
                refusal = self.who.ended(self.app.pairings()) => {
                    self.over = true;
                    return Some(ServerFrame::refused(&refusal));
                }
            };
            match event {
                Ok(event) => {
                    if let Some(frame) = event.frame_for(&self.who.owner()) {
                        return Some(frame);
                    }
                }
                // The last that it hears: what was missed cannot be told any more.
                Err(broadcast::error::RecvError::Lagged(missed)) => {
                    self.over = true;
                    return Some(ServerFrame::refused(&lagged(missed)));
                }
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
        None
    }
}

fn sent(frame: &ServerFrame) -> Result<Sent, Infallible> {
    let name = match frame {
        ServerFrame::Task { .. } => "task",
        ServerFrame::Tool { .. } => "tool",
        ServerFrame::Shelf { .. } => "shelf",
        _ => "refused",
    };
    // Frames are JSON by construction.
    Ok(Sent::default().event(name).json_data(frame).unwrap_or_default())
}
