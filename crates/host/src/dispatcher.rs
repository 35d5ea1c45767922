//! From an environment to the host that serves it. Nothing goes by way of a server that need not.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use serde_json::Value;
use toolshelf_core::placement::{Placement, placement_for_environment};
use toolshelf_core::refusal::{Code, Refusal, cut};

use crate::task_host::{Caller, Reply, TaskHost};
use crate::task_ports::TaskPlatform;

/// Serves the tasks of one environment, here or far away.
pub trait PlacementHost {
    /// The environment.
    fn environment(&self) -> &str;

    /// Calls one of the [`TASK_TOOLS`](crate::task_host::TASK_TOOLS).
    fn call<'a>(
        &'a self,
        tool: &'a str,
        args: &'a Value,
        caller: &'a Caller,
    ) -> LocalBoxFuture<'a, Result<Reply, Refusal>>;
}

impl<P: TaskPlatform> PlacementHost for TaskHost<P> {
    fn environment(&self) -> &str {
        &self.config().environment
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        args: &'a Value,
        caller: &'a Caller,
    ) -> LocalBoxFuture<'a, Result<Reply, Refusal>> {
        self.call(tool, args, caller).boxed_local()
    }
}

/// One host for each placement.
#[derive(Clone, Default)]
pub struct Dispatcher {
    hosts: BTreeMap<Placement, Rc<dyn PlacementHost>>,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.hosts.iter().map(|(placement, host)| (placement, host.environment()));
        f.debug_map().entries(hosts).finish()
    }
}

impl Dispatcher {
    /// A dispatcher that knows no host.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves `placement` with `host` from now on.
    #[must_use]
    pub fn with(mut self, placement: Placement, host: Rc<dyn PlacementHost>) -> Self {
        self.hosts.insert(placement, host);
        self
    }

    /// The host for an environment, given as its descriptor `{key?, kind, reach?}` or as its name. A descriptor with a
    /// key wants the host of that very environment.
    ///
    /// # Errors
    /// [`Code::PlacementUnavailable`] and [`Code::EnvironmentMismatch`].
    pub fn dispatch(&self, environment: &Value) -> Result<(Placement, &Rc<dyn PlacementHost>), Refusal> {
        let placement = placement_for_environment(environment).ok_or_else(|| {
            let shown = cut(&environment.to_string(), 120);
            Refusal::new(
                Code::PlacementUnavailable,
                format!("the environment {shown} has no known placement"),
            )
        })?;
        let host = self.hosts.get(&placement).ok_or_else(|| {
            Refusal::new(Code::PlacementUnavailable, format!("no host serves the {placement} placement here"))
        })?;
        match environment.get("key") {
            None | Some(Value::Null) => Ok((placement, host)),
            Some(Value::String(key)) if key == host.environment() => Ok((placement, host)),
            Some(key) => {
                let (serves, shown) = (host.environment(), cut(&key.to_string(), 120));
                let why = format!("the {placement} host serves {serves:?}, not {shown}");
                Err(Refusal::new(Code::EnvironmentMismatch, why))
            }
        }
    }

    /// Calls a tool of tasks at the host for an environment.
    ///
    /// # Errors
    /// As [`dispatch`](Self::dispatch), and what the host refuses.
    pub async fn call(
        &self,
        environment: &Value,
        tool: &str,
        args: &Value,
        caller: &Caller,
    ) -> Result<Reply, Refusal> {
        let (_, host) = self.dispatch(environment)?;
        let host = Rc::clone(host);
        host.call(tool, args, caller).await
    }
}
