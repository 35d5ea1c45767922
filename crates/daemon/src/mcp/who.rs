//! Who asks, and which tools are theirs.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolshelf_core::live::CallOrigin;

use crate::service::{OWNER, Session};

/// A client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Who {
    owner: String,
    tools: Option<Arc<BTreeSet<String>>>,
}

impl Who {
    /// Whoever holds this computer's token or started this program: all tools, all of the person's tasks.
    pub(crate) fn local() -> Self {
        Self { owner: OWNER.to_owned(), tools: None }
    }

    /// An agent with a token of its own: its tools, and the tasks that it has delegated itself.
    pub(crate) fn agent(name: &str, tools: Option<BTreeSet<String>>) -> Self {
        Self { owner: format!("agent:{name}"), tools: tools.map(Arc::new) }
    }

    /// Whether a tool of that name is theirs.
    pub(crate) fn may(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.contains(tool))
    }

    /// Whether all tools are theirs.
    pub(crate) fn may_all(&self) -> bool {
        self.tools.is_none()
    }

    /// For commands of the companion.
    pub(crate) fn session(&self) -> Session {
        Session { owner: self.owner.clone(), from: CallOrigin::Mcp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_its_tools_and_an_owner_of_its_own() {
        let agent = Who::agent("desk", Some(BTreeSet::from(["hash".to_owned()])));
        assert!(agent.may("hash") && !agent.may("diff") && !agent.may_all());
        assert!(Who::agent("desk", None).may("diff"));
        assert_ne!(agent.session().owner, Who::local().session().owner);
        assert_ne!(agent.session().owner, Who::agent("other", None).session().owner);
    }
}
