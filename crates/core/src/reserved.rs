//! Entities that belong to the system: their prefixes, and what follows from them.
//!
//! Source: the reference facts, C4 and C7. The reference has two lists, and what is private could be granted where only
//! the other list was asked. Here a grant overlaps neither.

/// Facts of entities that begin like this are private from the first version on.
pub const BORN_PRIVATE_PREFIXES: [&str; 36] = [
    "__candidate_fact__::",
    "__agent::",
    "__ops::",
    "__ops__::",
    "__ax__::",
    "__ax_session::",
    "__constraints__::",
    "__project_layer__::",
    "__plane__::",
    "__plane_layer__::",
    "__workspace__::",
    "__workspace_scan__::",
    "__repo_registry__::",
    "__repo_scan__::",
    "__repo_codegraph_ids__::",
    "__repo_extdeps__::",
    "__storybook__::",
    "__dossier__::",
    "__project_repo_link__::",
    "__extension__::",
    "__extension_grant__::",
    "__work__::",
    "__work_transition__::",
    "__workbench__::",
    "__answer_replay_capsule__::",
    "__passport__::",
    "__session_binding__::",
    "__coord__::",
    "__incident__::",
    "__legal_hold__::",
    "__legal_hold_receipt__::",
    "__bootstrap__::",
    "__project__::",
    "__tenant_metadata__::",
    "decisions::",
    "github::",
];

/// Prefixes that no grant reaches although their facts are not born private.
pub const NEVER_GRANTED_PREFIXES: [&str; 1] = ["__mint_request__::"];

/// Entities that no client writes: they are the system's own evidence, or decide who may do what.
pub const NO_CLIENT_WRITE_PREFIXES: [&str; 5] = [
    "__legal_hold__::",
    "__legal_hold_receipt__::",
    "__incident__::",
    "__extension__::",
    "__extension_grant__::",
];

/// The prefixes that no grant may overlap.
pub fn reserved_prefixes() -> impl Iterator<Item = &'static str> {
    BORN_PRIVATE_PREFIXES.into_iter().chain(NEVER_GRANTED_PREFIXES)
}

/// Do two prefixes name a common entity? True where one begins with the other, whichever is the longer one.
#[must_use]
pub fn overlap(a: &str, b: &str) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_prefix_is_listed_twice() {
        let all: std::collections::HashSet<_> = reserved_prefixes().collect();
        assert_eq!(all.len(), BORN_PRIVATE_PREFIXES.len() + NEVER_GRANTED_PREFIXES.len());
        assert!(NO_CLIENT_WRITE_PREFIXES.iter().all(|prefix| all.contains(prefix)));
    }
}
