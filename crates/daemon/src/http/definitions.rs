//! `/v1/definitions`: what agents are shown of tools, for who looks at changes and approves them.

use axum::Json;
use axum::extract::{Request, State};

use super::App;
use super::answer::{Answered, object};

pub(super) async fn list(State(app): State<App>) -> Answered {
    let listed = app.handle().ask(async |service| service.definitions().await).await??;
    Ok(Json(listed))
}

/// The body is `{"names": ["…"]}`.
pub(super) async fn approve(State(app): State<App>, request: Request) -> Answered {
    let args = object(request).await?;
    // What was asked for is written down, whoever waits for the answer.
    let approved =
        app.handle().order(async move |service| service.approve_definitions(&args).await).await??;
    Ok(Json(approved))
}
