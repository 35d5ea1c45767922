//! What tells one task host from another.

use std::fmt;
use std::rc::Rc;

use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal};

/// Takes secrets out of a text.
pub type Redact = Rc<dyn Fn(&str) -> String>;

/// What tells one task host from another.
#[derive(Clone)]
pub struct TaskHostConfig {
    /// The environment that it serves.
    pub environment: String,
    /// The placement, which gives the bounds.
    pub placement: Placement,
    /// The writer of log entries.
    pub instance: String,
    /// The project that tasks belong to.
    pub project: String,
    /// How long a cancellation waits to see the task end, in milliseconds.
    pub cancel_grace_ms: u32,
    /// How often it looks, in milliseconds.
    pub cancel_poll_ms: u32,
    /// What answers, partial answers and notes pass through before they are written anywhere.
    pub redact: Redact,
}

impl TaskHostConfig {
    /// A page's host.
    #[must_use]
    pub fn browser(redact: Redact) -> Self {
        Self {
            environment: "env_browser_local".to_owned(),
            placement: Placement::Browser,
            instance: "browser-tab".to_owned(),
            project: "browser-project".to_owned(),
            cancel_grace_ms: 1_500,
            cancel_poll_ms: 20,
            redact,
        }
    }

    /// A machine's host. Its environment is `env_` and 16 hexadecimal digits.
    #[must_use]
    pub fn machine(environment: String, instance: String, project: String, redact: Redact) -> Self {
        Self {
            environment,
            placement: Placement::Machine,
            instance,
            project,
            cancel_grace_ms: 2_000,
            cancel_poll_ms: 50,
            redact,
        }
    }

    /// The host of an environment that several machines serve together, under one name.
    #[must_use]
    pub fn remote(environment: String, instance: String, project: String, redact: Redact) -> Self {
        Self { placement: Placement::Remote, ..Self::machine(environment, instance, project, redact) }
    }

    /// Whether the environment has the form that its placement asks for. A NUL would make two calls one.
    pub(super) fn check_environment(&self) -> Result<(), Refusal> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let of_a_machine = |digits: &str| digits.len() == 16 && digits.bytes().all(is_digit);
        let fits = match self.placement {
            Placement::Browser => !self.environment.is_empty() && !self.environment.contains('\0'),
            Placement::Machine | Placement::Remote => {
                self.environment.strip_prefix("env_").is_some_and(of_a_machine)
            }
        };
        if fits {
            return Ok(());
        }
        let why =
            "the host's environment must be `env_` and 16 hexadecimal digits on a machine, and not be empty";
        Err(Refusal::new(Code::TaskEnvironmentUnverified, why))
    }
}

impl fmt::Debug for TaskHostConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHostConfig")
            .field("environment", &self.environment)
            .field("placement", &self.placement)
            .field("instance", &self.instance)
            .finish_non_exhaustive()
    }
}
