//! `/live`: a WebSocket on which a client asks, is answered, and hears of all that happens (reference facts, A7).
//!
//! | module | idea |
//! |---|---|
//! | `session` | one session, from its hello to its end |
//! | `asked` | what a frame asks for, and the frames that answer it |

mod asked;
mod session;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::StatusCode;
use axum::response::Response;
use toolshelf_core::live::{LIVE_FRAME_MAX_BYTES, ServerFrame};
use toolshelf_core::refusal::{Code, Refusal};

use crate::http::App;
use crate::http::answer::Fault;
use crate::service::Event;

/// What is read of a frame that is too long, so that its sender can still be told. Longer ones end the connection.
const READ_MAX_BYTES: usize = 2 * LIVE_FRAME_MAX_BYTES;

/// Takes a WebSocket.
pub(crate) async fn upgrade(
    State(app): State<App>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Fault> {
    let upgrade = upgrade.map_err(|err| {
        let why = format!("`/live` is a WebSocket: {}", err.body_text());
        Fault::with_status(StatusCode::UPGRADE_REQUIRED, Code::InvalidFrame, why)
    })?;
    let upgrade = upgrade.max_message_size(READ_MAX_BYTES).max_frame_size(READ_MAX_BYTES);
    Ok(upgrade.on_upgrade(move |socket| session::serve(app, socket)))
}

/// The frame in which `owner` hears of `event`; `None` for what is not theirs.
pub(crate) fn frame_of(event: Event, owner: &str) -> Option<ServerFrame> {
    match event {
        Event::Call(notice) => Some(ServerFrame::Tool { calls: vec![notice] }),
        Event::Task { owner: whose, view } if whose == owner => Some(ServerFrame::Task { task: view }),
        Event::Task { .. } => None,
        Event::Shelf(tools) => Some(ServerFrame::Shelf { tools }),
    }
}

/// Why a client that reads too slowly hears no more.
pub(crate) fn lagged(missed: u64) -> Refusal {
    Refusal::new(Code::OverBudget, format!("what happens was not read fast enough; {missed} frames are lost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_told_to_its_owner_alone() {
        let view = r#"{"address":"a","environment":"e","placement":null,"root":{"kind":"machine","path":"/r"},
            "state":"running","agent":"hash","createdAt":"","updatedAt":""}"#;
        let view = serde_json::from_str(view).unwrap();
        let event = Event::Task { owner: "ann".into(), view };
        assert!(matches!(frame_of(event.clone(), "ann"), Some(ServerFrame::Task { .. })));
        assert_eq!(frame_of(event, "ben"), None);
    }
}
