//! From a client's session to the thread on which the companion lives. A session may begin before the companion is
//! ready: the handshake asks nothing of it.

use tokio::sync::watch;
use toolshelf_core::refusal::{Code, Refusal};

use crate::http::handle::Handle;

/// The way there. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Backend {
    ready: watch::Receiver<Option<Result<Handle, Refusal>>>,
}

/// Who says that the companion is ready, or why it never will be.
pub(crate) type Opening = watch::Sender<Option<Result<Handle, Refusal>>>;

impl Backend {
    /// The way to a companion that is ready.
    pub(crate) fn ready(handle: Handle) -> Self {
        Self { ready: watch::Sender::new(Some(Ok(handle))).subscribe() }
    }

    /// The way to a companion that is being opened.
    pub(crate) fn opening() -> (Opening, Self) {
        let (sender, ready) = watch::channel(None);
        (sender, Self { ready })
    }

    /// The companion, as soon as it is ready.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn handle(&self) -> Result<Handle, Refusal> {
        let mut ready = self.ready.clone();
        let gone = || Refusal::new(Code::MachineUnreachable, "the companion ended before it was ready");
        let ready = ready.wait_for(Option::is_some).await.map_err(|_| gone())?;
        ready.as_ref().map_or_else(|| Err(gone()), Clone::clone)
    }
}
