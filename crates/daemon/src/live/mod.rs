//! `/live`: a WebSocket on which a client asks, is answered, and hears of all that happens (reference facts, A7).
//!
//! | module | idea |
//! |---|---|
//! | `session` | one session, from its hello to its end |
//! | `asked` | what a frame asks for, and the frames that answer it |
//! | `provider` | a model of a provider that answers instead of the script |

mod asked;
mod provider;
mod session;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use toolshelf_core::live::LIVE_FRAME_MAX_BYTES;
use toolshelf_core::refusal::Code;

pub(crate) use self::provider::settings::{LiveSettings, WrittenLive, read as live_settings};
use crate::http::App;
use crate::http::answer::Fault;

/// What is read of a frame that is too long, so that its sender can still be told. Longer ones end the connection.
const READ_MAX_BYTES: usize = 2 * LIVE_FRAME_MAX_BYTES;

/// Takes a WebSocket.
pub(crate) async fn upgrade(
    State(app): State<App>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Fault> {
    let upgrade = upgrade.map_err(|err| {
        let why = format!("`/live` is a WebSocket: {}", err.body_text());
        Fault::with_status(StatusCode::UPGRADE_REQUIRED, Code::InvalidFrame, why)
    })?;
    // The guard has let it through; a token of another page is not good here.
    let origin = app.hosts().foreign_origin(&headers)?.map(str::to_owned);
    let upgrade = upgrade.max_message_size(READ_MAX_BYTES).max_frame_size(READ_MAX_BYTES);
    Ok(upgrade.on_upgrade(move |socket| session::serve(app, socket, origin)))
}
