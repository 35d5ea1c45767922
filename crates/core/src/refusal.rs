//! The one shape of every "no": a code out of a closed set, and a sentence with the evidence.

use std::fmt;

use serde::de::Error as _;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A "no" with its reason. On the wire: `{ok: false, refused: "<code>", why: "<sentence>"}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of "no" it is.
    pub code: Code,
    /// One sentence for a person, with the evidence: both digests, both sizes, the list of imports.
    pub why: String,
}

impl Refusal {
    /// A refusal with `code` and the sentence `why`.
    pub fn new(code: Code, why: impl Into<String>) -> Self {
        Self { code, why: why.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.why)
    }
}

impl std::error::Error for Refusal {}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Refusal", 3)?;
        object.serialize_field("ok", &false)?;
        object.serialize_field("refused", self.code.as_str())?;
        object.serialize_field("why", &self.why)?;
        object.end()
    }
}

impl<'de> Deserialize<'de> for Refusal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            refused: String,
            why: String,
        }
        let Wire { refused, why } = Wire::deserialize(deserializer)?;
        let code = Code::parse(&refused).ok_or_else(|| D::Error::custom("an unknown refusal code"))?;
        Ok(Self { code, why })
    }
}

macro_rules! codes {
    ($($variant:ident = $text:literal, $meaning:literal, $remedy:literal;)*) => {
        /// The closed set of refusal codes. Each has one meaning in every interface.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $variant,)*
        }

        impl Code {
            /// Every code, in the order of the documentation's table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable text of the code.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The code of that text; `None` for a text outside the set.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.as_str() == text)
            }

            /// What the code means.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// What a person can do about it.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }
        }
    };
}

codes! {
    ShelfUnavailable = "shelf-unavailable",
        "The folder has no `manifest.json`.",
        "Pick the folder that holds `manifest.json` and the modules that it names.";
    ShelfUnreadable = "shelf-unreadable",
        "`manifest.json` is not JSON, or not of a form that a shelf can have.",
        "Mend the manifest: an object with a `tools` array.";
    WasmUnreadable = "wasm-unreadable",
        "The module's file is missing or cannot be read, or its entry lacks an id or a path.",
        "Check the entry's `id` and `wasm`, and that the file is in the folder.";
    OutsideRoot = "outside-root",
        "A path leaves the folder that it must stay in.",
        "Use a path below the shelf's folder, without `..` and without a leading slash.";
    UnderDeclared = "under-declared",
        "An entry leaves out what admission needs, such as a digest of 64 lowercase hexadecimal digits.",
        "Write the module's SHA-256 into the entry's `digest`.";
    BadToolName = "bad-tool-name",
        "A tool's id is not made of 1 to 64 letters, digits, `_` and `-`.",
        "Choose an id of letters, digits, `_` and `-`.";
    DuplicateTool = "duplicate-tool",
        "The tool's id is taken already.",
        "Rename the tool, or remove the shelf that holds the other one.";
    DigestMismatch = "digest-mismatch",
        "The module's bytes are not those that were pinned.",
        "If the change was intended, pin the new digest and add the shelf again; otherwise do not use the file.";
    OverBudget = "over-budget",
        "A module, a manifest or an input is larger than its bound, or too many calls wait or sessions are open.",
        "Send less, or try again when others have ended.";
    WasmInvalid = "wasm-invalid",
        "The bytes have the pinned digest, but are no valid WebAssembly module.",
        "Build the module again.";
    ImportUndeclared = "import-undeclared",
        "The module imports something; a shelf tool may import nothing.",
        "Build for `wasm32-unknown-unknown` without WASI and without bindings.";
    UnsupportedAbi = "unsupported-abi",
        "The module lacks what its ABI asks for (memory, size of memory, export, type), names an unknown ABI, or uses a feature whose memory cannot be bounded.",
        "Compare the module with the ABI table in the documentation.";
    WasmTrapped = "wasm-trapped",
        "Starting or calling the module ended in a trap.",
        "The input may be one that the tool cannot handle; tell its author.";
    DiffFailed = "diff-failed",
        "The diff module answered with a negative number.",
        "Try smaller inputs; tell the tool's author.";
    TimeExceeded = "time-exceeded",
        "The call ran past its deadline and its worker was ended.",
        "Try a smaller input; the deadline is the host's and cannot be raised.";
    ResourceExceeded = "resource-exceeded",
        "The module asked for more memory, or handed back more output, than the host grants.",
        "Try a smaller input; the bounds are the host's and cannot be raised.";
    WasmWorkerSilent = "wasm-worker-silent",
        "The worker ended without an answer.",
        "Try again; if it happens each time, tell us.";
    UnknownTool = "unknown-tool",
        "No tool of that name can be called here.",
        "List the tools to see which there are.";
    InvalidArgument = "invalid-argument",
        "An argument is not of the form that the call takes.",
        "Look at the call's documentation.";
    StorageUnavailable = "storage-unavailable",
        "The place where shelves are kept cannot be read or written.",
        "Free some space, or allow the page to store data.";
    FileUnavailable = "file-unavailable",
        "A file of the task's folder is not there, or cannot be read or written.",
        "Look at the folder's files and correct the path.";
    UnboundedExecutor = "unbounded-executor",
        "The executor names no bounds, or bounds beyond what its placement grants.",
        "Ask for less time or output, or choose a placement that grants more.";
    PlacementUnavailable = "placement-unavailable",
        "The environment has no known placement, or no host serves it here.",
        "Choose an environment that is connected.";
    EnvironmentMismatch = "environment-mismatch",
        "The host of that placement serves another environment.",
        "Choose the environment that the host serves, or connect the other one.";
    RootNotDeclared = "root-not-declared",
        "No root is named, or what is named describes none.",
        "Choose a folder for the task.";
    RootNotReachableFromHere = "root-not-reachable-from-here",
        "The root exists for another placement and cannot be reached from this one.",
        "Choose a folder of this placement, or a placement that reaches the folder.";
    ProtectedAudit = "protected-audit",
        "The path is in the folder of the journal, which no tool reads or writes.",
        "Use another path.";
    InvalidTask = "invalid-task",
        "A task is not an object with an agent and a text.",
        "Send `agent` and `task`.";
    TaskAuthorityField = "task-authority-field",
        "A task has a field that only the host may set.",
        "Leave the field out.";
    AgentRequired = "agent-required",
        "No agent is named, or it is not 1 to 80 letters, digits, `.`, `_` and `-`.",
        "Name the agent.";
    TaskInputOverBudget = "task-input-over-budget",
        "The task's text is longer than a host takes.",
        "Shorten it, or name a file.";
    InvalidTaskContext = "invalid-task-context",
        "The task's context is no list.",
        "Leave `context` out.";
    TaskContextUnavailable = "task-context-unavailable",
        "The task has context, which no host hands over yet.",
        "Write what matters into the task, and leave `context` empty.";
    TaskCallIdRequired = "task-call-id-required",
        "No call id is given, or it is not 1 to 160 letters, digits, `.`, `_`, `:` and `-`.",
        "Give each delegation an id of its own; repeat it only to repeat the call.";
    TaskCallIdConflict = "task-call-id-conflict",
        "The call id was used for another task.",
        "Use a new call id.";
    TaskOwnerUnverified = "task-owner-unverified",
        "Nobody has said who calls.",
        "Sign in, or give the caller's identity.";
    TaskOwnerMismatch = "task-owner-mismatch",
        "The address was not sealed for this caller by this host.",
        "Use the address as it was handed out, as its owner; keys that were lost cannot be restored.";
    TaskOwnerUnconfirmed = "task-owner-unconfirmed",
        "Another life of the host has the task, and nobody knows whether it goes on.",
        "Try again later, or look where the task was started.";
    InvalidTaskAddress = "invalid-task-address",
        "The text is no task's address, or more than the address was sent.",
        "Send `address` alone, as it was handed out.";
    TaskNotFound = "task-not-found",
        "The journal does not know the task.",
        "It may have been cleared with the page's data; delegate it again.";
    TaskNotRunning = "task-not-running",
        "The task has ended already.",
        "Look at its status.";
    TaskEnvironmentChanged = "task-environment-changed",
        "The address is of another environment.",
        "Ask the environment that the task was given to.";
    TaskEnvironmentUnverified = "task-environment-unverified",
        "The host's own identity is not of the form that it must be.",
        "Set the host up again.";
    TaskRootUnavailable = "task-root-unavailable",
        "No root that this placement reaches is selected, or it is gone.",
        "Select a folder.";
    TaskRootReplaced = "task-root-replaced",
        "The root's folder is another one than at admission.",
        "Put the folder back, or delegate the task again.";
    TaskCapacityExhausted = "task-capacity-exhausted",
        "As many tasks run as the placement grants.",
        "Wait for one to end, or cancel one.";
    TaskPersistenceFailed = "task-persistence-failed",
        "The journal did not take what must be written before anything runs.",
        "Free some space, or allow the page to store data; nothing has run.";
    TaskAuditUnavailable = "task-audit-unavailable",
        "The journal cannot be read, or contradicts itself.",
        "Look at the journal's file; do not mend it by hand without a copy.";
    TaskAdmissionFailed = "task-admission-failed",
        "The task was not admitted for a reason without a name of its own.",
        "Try again; if it happens each time, tell us.";
    TaskDeadline = "task-deadline",
        "The task ran past its deadline and was ended.",
        "Ask for less in one task.";
    TaskCancelled = "task-cancelled",
        "The executor says that it was cancelled.",
        "Delegate the task again if that was not intended.";
    TaskInvalidResult = "task-invalid-result",
        "The executor answered with something that is no text.",
        "Tell the executor's author.";
    TaskOutputOverBudget = "task-output-over-budget",
        "The answer is longer than the executor's bounds.",
        "Ask for less in one task.";
    ExecutorUnavailable = "executor-unavailable",
        "Nothing is there that could execute tasks.",
        "Set an executor up, or choose another placement.";
    ExecutorFailed = "executor-failed",
        "The executor ended in a fault.",
        "Look at the task's last progress; try again.";
    EnvironmentEndedOutcomeUnknown = "environment-ended-outcome-unknown",
        "What ran the task is gone, and nobody saw how the task ended.",
        "Look at what the task has changed before it is delegated again.";
    AdmissionUnconfirmed = "admission-unconfirmed",
        "The task was written down, but its delegation was given up before it was started.",
        "Delegate it again with a new call id.";
    CancelFailed = "cancel-failed",
        "The request to cancel could not be written down.",
        "Try again.";
    AgentNotConfigured = "agent-not-configured",
        "The environment has no agent of that name.",
        "List the agents, or configure this one.";
    AgentEnvironmentMismatch = "agent-environment-mismatch",
        "The agent is configured for another environment.",
        "Choose the agent's environment.";
    UnsupportedRuntimeCapability = "unsupported-runtime-capability",
        "The agent needs what this runtime does not have.",
        "Choose another placement.";
    MissingArgument = "missing-argument",
        "An argument that the call needs is not there.",
        "Give the argument that the sentence names.";
    BearerRefused = "bearer-refused",
        "The request has no bearer token, or one that was never issued.",
        "Open the link that `toolshelf serve` prints, or send the token of the data folder.";
    ExecutorUnauthenticated = "executor-unauthenticated",
        "A connection did not say hello in time.",
        "Send a `hello` frame with the token first.";
    HostNotAllowed = "host-not-allowed",
        "The request was sent to a host name that the companion does not serve.",
        "Use the address that `toolshelf serve` prints.";
    OriginNotAllowed = "origin-not-allowed",
        "The request comes from a page of another origin.",
        "Use the page that the companion serves.";
    InvalidFrame = "invalid-frame",
        "A frame or a body is not JSON, not of the form that is asked for, or too long.",
        "Compare what was sent with the documentation.";
    UnknownRoute = "unknown-route",
        "The companion serves nothing there, or not by that method.",
        "Look at the list of routes, `/v1/openapi.json`.";
    HiddenCharacters = "hidden-characters",
        "A description has invisible or bidirectional control characters, which show a person something else than an agent reads.",
        "Take the characters out of the text.";
    DefinitionChanged = "definition-changed",
        "What an agent would be shown of a tool is not what a person has admitted.",
        "Look at it with `toolshelf definitions diff`, and approve it if it is right.";
    MachineUnreachable = "machine-unreachable",
        "The companion does not answer.",
        "Start it with `toolshelf serve`, then connect again.";
    EnvironmentNotPaired = "environment-not-paired",
        "The environment was paired once and is not any more, or its token is gone.",
        "Pair again: `toolshelf pair` there, `toolshelf environments add` here.";
    UnknownEnvironment = "unknown-environment",
        "No environment of that key is known here.",
        "List them with `toolshelf environments list`, or add one.";
    PairingRevoked = "pairing-revoked",
        "The token was revoked on the machine that issued it.",
        "Pair again with a new code if that was not intended.";
    PairingExpired = "pairing-expired",
        "The token was issued for a time that is over.",
        "Pair again with a new code.";
    PairingCodeRefused = "pairing-code-refused",
        "The code is wrong, used, too old, or was tried too often.",
        "Ask for a new code with `toolshelf pair`.";
    PairingListUnreadable = "pairing-list-unreadable",
        "The file of pairings or of environments cannot be read, or is damaged.",
        "Look at the file that the sentence names; without it nobody is paired.";
    OutsideScope = "outside-scope",
        "A paired token asks for what its scopes do not cover.",
        "Use what it was paired for, or pair again with the scope that is needed.";
    UnknownField = "unknown-field",
        "A frame between machines has a field that it must not have.",
        "Update the older of the two machines.";
    BoundsMismatch = "bounds-mismatch",
        "A call between machines repeats other bounds than those of the environment.",
        "Connect again, so that the bounds are read again.";
    UnattributedCall = "unattributed-call",
        "A call between machines names a descriptor that was not handed out for its tool.",
        "Connect again, so that the descriptors are read again.";
    MachineTimeout = "machine-timeout",
        "The other machine is connected, but did not answer in time; whether it acted is not known.",
        "Ask again with the same call id, or look at the task's status.";
    MachineClosed = "machine-closed",
        "The other machine closed the connection before it answered; whether it acted is not known.",
        "Ask again with the same call id, or look at the task's status.";
    MachineUntrusted = "machine-untrusted",
        "The other machine does not show the certificate that it was paired with.",
        "If its certificate was renewed, pair again; otherwise somebody may stand in between.";
    FileMismatch = "file-mismatch",
        "A file that was sent along is not the one that its digest and size say.",
        "Send it again.";
    ConfigInvalid = "config-invalid",
        "`toolshelf.toml` cannot be read, or says something that no setting takes.",
        "Mend the line that the sentence names.";
    ListenFailed = "listen-failed",
        "The address cannot be listened on.",
        "Choose another one with `--listen`, or end the program that has it.";
    ExtensionInvalid = "extension-invalid",
        "The manifest of an extension cannot be read, or breaks a rule.",
        "Mend what the sentence names.";
    ExtensionUntrusted = "extension-untrusted",
        "An extension is not signed by a publisher that is trusted.",
        "Add the publisher's key with `toolshelf keys add` if you trust it.";
    ExtensionExists = "extension-exists",
        "The extension is installed already, or the passport has its grant already.",
        "Uninstall or revoke first.";
    ExtensionNotInstalled = "extension-not-installed",
        "No such extension, grant or module is there.",
        "List the extensions; install the one that is missing again.";
    ExtensionHostUnavailable = "extension-host-unavailable",
        "The companion was built without extensions, or its engine failed.",
        "Start the companion again and look at its log.";
    NotGranted = "not-granted",
        "The passport has no grant that covers this.",
        "Give or renew the grant.";
    RateLimited = "rate-limited",
        "More calls in a minute than the grant allows.",
        "Wait a minute, or raise the grant's rate.";
    UpstreamFailed = "upstream-failed",
        "A server that had to be asked did not answer as it should.",
        "Try again later; the sentence says what came.";
    LiveKeyMissing = "live-key-missing",
        "There is no key for the provider of the live model.",
        "Keep the key with `toolshelf secret set`, or in the environment variable that the sentence names.";
    LiveKeyRefused = "live-key-refused",
        "The provider of the live model does not take the key, or not for this model.",
        "Look at the key, at what it may be used for, and at the model's name in `toolshelf.toml`.";
    SecretUnknown = "secret-unknown",
        "The vault has no secret of that id.",
        "List the secrets with `toolshelf secret list`.";
    VaultDamaged = "vault-damaged",
        "The vault was sealed with another key, or changed since.",
        "Put the file and its key back from a copy; a secret that was changed must be set again.";
    ReceiptsDamaged = "receipts-damaged",
        "The log of receipts is not as it was written.",
        "Keep the log as it is for whoever looks into it, and move it away to begin a new one.";
    KeyUnknown = "key-unknown",
        "No key of that passport is trusted.",
        "List the keys with `toolshelf keys list`.";
    FactInvalid = "fact-invalid",
        "A fact, or a question for facts, is not of the form that the store takes.",
        "Mend what the sentence names.";
    FactNotFound = "fact-not-found",
        "The store has no such fact.",
        "It may have been deleted; ask for the entity's facts.";
    FactReserved = "fact-reserved",
        "The entity belongs to the system, and no client writes it.",
        "Use another entity.";
    FactStoreUnavailable = "fact-store-unavailable",
        "The fact store cannot be read or written.",
        "Look at the data folder: its space, its rights, and whether another companion has it open.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Shortens what a platform said to at most `chars` characters, so that a hostile message cannot flood a refusal.
#[must_use]
pub fn cut(message: &str, chars: usize) -> String {
    match message.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_one_wire_shape() {
        let refusal = Refusal::new(Code::DigestMismatch, "they differ");
        let json = serde_json::to_string(&refusal).unwrap();
        assert_eq!(json, r#"{"ok":false,"refused":"digest-mismatch","why":"they differ"}"#);
    }

    #[test]
    fn no_two_codes_share_a_text() {
        let texts: std::collections::HashSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
    }

    #[test]
    fn every_code_is_read_from_its_text_and_nothing_else_is() {
        assert!(Code::ALL.iter().all(|code| Code::parse(code.as_str()) == Some(*code)));
        assert_eq!(Code::parse("agent-unavailable"), None);
        assert_eq!(Code::parse(""), None);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(cut("ééé", 2), "éé…");
        assert_eq!(cut("éé", 2), "éé");
    }

    /// The table in `docs/refusals.md` is the one that this enum prints.
    #[test]
    fn the_documented_table_is_the_enum() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/refusals.md");
        let documented = std::fs::read_to_string(path).unwrap();
        for code in Code::ALL {
            let row = format!("| `{code}` | {} | {} |", code.meaning(), code.remedy());
            assert!(documented.contains(&row), "docs/refusals.md lacks this row:\n{row}");
        }
        let rows = documented.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, Code::ALL.len(), "docs/refusals.md has rows of codes that do not exist");
    }
}
