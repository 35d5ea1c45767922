//! One client's session, as the protocol's library asks for it.

#![expect(
    deprecated,
    reason = "clients of the revisions before 2026-07-28 set the level of logging for a session"
)]

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ErrorData, Extensions, GetTaskParams,
    GetTaskResult, Implementation, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    LoggingLevel, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use toolshelf_core::refusal::{Code, Refusal};

use super::answer::{answered, refused};
use super::backend::Backend;
use super::calls::{self, Called, Fault};
use super::fixed::{self, CANCEL_TASK, TASK_STATUS};
use super::progress::{Loudness, PACE, Progress};
use super::resources::{self, Subscriptions};
use super::tasks;
use super::telling::{Ears, Telling};
use super::who::Who;
use crate::http::handle::Handle;
use crate::service::Service;

/// Requests of one session that are answered at a time; one more is refused.
const ASKED_MAX: usize = 64;
/// What is said of calls, beside what tools say.
const LOGGER: &str = "toolshelf";

const INSTRUCTIONS: &str = "Tools of this shelf are WebAssembly modules that are admitted by digest and run without files, \
    network or environment. A refusal is a tool error that begins with its code. \
    list_extensions tells all there is to know of the tools; delegate_task hands over longer work.";

/// A session.
pub(crate) struct McpServer {
    backend: Backend,
    /// Who asks, where no request says it.
    who: Who,
    places: Semaphore,
    loudness: Loudness,
    subscriptions: Subscriptions,
    /// What tells the client of changes; it ends with the session.
    telling: Mutex<Option<Telling>>,
}

impl McpServer {
    /// A session of `who`. Over HTTP each request says for itself who asks.
    pub(crate) fn new(backend: Backend, who: Who) -> Self {
        Self {
            backend,
            who,
            places: Semaphore::new(ASKED_MAX),
            loudness: Loudness::new(),
            subscriptions: Subscriptions::default(),
            telling: Mutex::default(),
        }
    }

    fn who(&self, context: &RequestContext<RoleServer>) -> Who {
        self.who_of(&context.extensions)
    }

    fn who_of(&self, extensions: &Extensions) -> Who {
        let parts = extensions.get::<Parts>();
        parts.and_then(|parts| parts.extensions.get::<Who>()).unwrap_or(&self.who).clone()
    }

    /// Asks the companion; what is asked ends when the client cancels.
    async fn ask<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl AsyncFnOnce(Service) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let asked = async { self.backend.handle().await?.ask(work).await? };
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Err(cancelled()),
            result = asked => result.map_err(|refusal| error(&refusal)),
        }
    }

    async fn called(
        &self,
        handle: &Handle,
        who: Who,
        request: CallToolRequestParams,
    ) -> Result<Result<Called, Fault>, Refusal> {
        let name = request.name.into_owned();
        let args = request.arguments.unwrap_or_default();
        let to_the_end = calls::to_the_end(&name);
        let work = async move |service: Service| service.agent_call(&who, &name, args).await;
        if to_the_end { handle.order(work).await } else { handle.ask(work).await }
    }

    /// Calls, and tells the client meanwhile how long it has been.
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Result<Called, Fault>, ErrorData> {
        let progress = Progress::of(context);
        progress.taken().await;
        let begun = Instant::now();
        let call = async {
            let handle = self.backend.handle().await?;
            self.called(&handle, self.who(context), request).await?
        };
        tokio::pin!(call);
        let mut ticks = interval_at(begun + Duration::from_millis(1), PACE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if progress.is_wanted() {
            progress.running(begun.elapsed()).await;
        }
        let result = loop {
            tokio::select! {
                biased;
                // The call is dropped, and the worker with it.
                () = context.ct.cancelled() => return Err(cancelled()),
                result = &mut call => break result,
                _ = ticks.tick(), if progress.is_wanted() => progress.running(begun.elapsed()).await,
            }
        };
        progress.over().await;
        Ok(result)
    }

    /// Asks for a task, to the end: a request to cancel is written down.
    async fn task_command(
        &self,
        command: &'static str,
        address: String,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let who = self.who(context);
        let work = async move |service: Service| service.agent_task_command(&who, command, address).await;
        let asked = async { self.backend.handle().await?.order(work).await };
        match asked.await.map_err(|refusal| error(&refusal))? {
            Ok(value) => Ok(value),
            Err(Fault::Refused { refusal, .. }) => {
                Err(ErrorData::invalid_params(refusal.to_string(), Some(json!(refusal))))
            }
            Err(Fault::Unknown(name)) => {
                Err(ErrorData::invalid_params(format!("{name} is not one of this client's tools"), None))
            }
        }
    }

    async fn log(&self, context: &RequestContext<RoleServer>, name: &str, result: &Result<Called, Fault>) {
        let log = match result {
            Ok(called) => &called.log[..],
            Err(Fault::Refused { log, .. }) => log,
            Err(Fault::Unknown(_)) => &[],
        };
        for entry in log {
            self.loudness.tell(context, calls::level(entry), name, entry.message.clone().into()).await;
        }
        if let Err(Fault::Refused { refusal, .. }) = result {
            let what = json!({ "tool": name, "refused": refusal.code.as_str(), "why": refusal.why });
            self.loudness.tell(context, LoggingLevel::Warning, LOGGER, what).await;
        }
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tasks()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let about = Implementation::new("toolshelf", env!("CARGO_PKG_VERSION")).with_title("Toolshelf");
        ServerConfig::new(capabilities).with_server_info(about).with_instructions(INSTRUCTIONS)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.loudness.set(request.level);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let who = self.who_of(&context.extensions);
        let (backend, peer, subscriptions) = (self.backend.clone(), context.peer, self.subscriptions.clone());
        let telling = tokio::spawn(async move {
            if let Ok(ears) = Ears::of(&backend, who).await {
                ears.tell(peer, subscriptions).await;
            }
        });
        // Nothing can be half written under it.
        *self.telling.lock().unwrap_or_else(PoisonError::into_inner) = Some(telling.into());
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::builder().tools_list_changed();
        if let Some(uris) = &requested.resource_subscriptions {
            accepted =
                accepted.resource_subscriptions(uris.iter().filter(|uri| resources::is_ours(uri)).cloned());
        }
        Some(accepted.build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let who = self.who(context.request_context());
        let ears = Ears::of(&self.backend, who).await.map_err(|refusal| error(&refusal))?;
        ears.tell_subscriber(&context).await;
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let who = self.who(&context);
        let catalogue = async move |service: Service| {
            let catalogue = service.catalogue().await?;
            let offered = catalogue.rows.values().filter_map(|row| row.offered());
            Ok(offered
                .filter(|definition| who.may(&definition.name))
                .map(|definition| definition.tool())
                .collect::<Vec<_>>())
        };
        let mut tools = self.ask(&context, catalogue).await?;
        let who = self.who(&context);
        tools.extend(fixed::tools().filter(|tool| who.may(&tool.name)));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Ok(_place) = self.places.try_acquire() else {
            let why = format!("{ASKED_MAX} calls of this client are running; wait for one to end");
            return Ok(refused(&Refusal::new(Code::OverBudget, why)).into());
        };
        let name = request.name.clone();
        let result = self.call(request, &context).await?;
        self.log(&context, &name, &result).await;
        match result {
            Ok(called) => {
                let task = if calls::delegates(&name) && knows_tasks(&context) {
                    tasks::created(&called.value)
                } else {
                    None
                };
                Ok(task.map_or_else(|| answered(called).into(), Into::into))
            }
            Err(Fault::Refused { refusal, .. }) => Ok(refused(&refusal).into()),
            Err(Fault::Unknown(name)) => {
                Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None))
            }
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let status = self.task_command(TASK_STATUS, request.task_id, &context).await?;
        tasks::detailed(&status).ok_or_else(|| ErrorData::internal_error("the task cannot be told", None))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.task_command(CANCEL_TASK, request.task_id, &context).await.map(drop)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let who = self.who(&context);
        let list = async move |service: Service| service.agent_resources(&who).await;
        Ok(ListResourcesResult::with_all_items(self.ask(&context, list).await?))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (who, uri) = (self.who(&context), request.uri);
        let asked = uri.clone();
        let read = async move |service: Service| service.agent_resource(&who, &asked).await;
        match self.ask(&context, read).await? {
            Some(contents) => Ok(ReadResourceResult::new(vec![contents]).into()),
            None => Err(ErrorData::resource_not_found(format!("there is no resource {uri:?}"), None)),
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.add(&request.uri).map_err(|refusal| error(&refusal))
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.remove(&request.uri);
        Ok(())
    }
}

/// A refusal where the protocol has no room for one in a result.
fn error(refusal: &Refusal) -> ErrorData {
    let data = Some(json!(refusal));
    match refusal.code {
        Code::InvalidArgument | Code::MissingArgument | Code::OverBudget => {
            ErrorData::invalid_params(refusal.to_string(), data)
        }
        _ => ErrorData::internal_error(refusal.to_string(), data),
    }
}

/// Whether the client has said that it knows the protocol's own tasks.
fn knows_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

fn cancelled() -> ErrorData {
    ErrorData::internal_error("the request was cancelled", None)
}
