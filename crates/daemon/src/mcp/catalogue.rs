//! The tools that agents are offered, each as a person has admitted it.
//!
//! What is found (on the shelf, among extensions that the agents' passport is granted) is compared with what `shelf.lock`
//! holds. A tool that is seen for the first time is admitted then, or waits for a person, as the settings say. One that
//! has changed is offered as it was admitted; its calls are refused.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};
use toolshelf_core::Digest;
use toolshelf_core::abi::Abi;
use toolshelf_core::extension::EntryKind;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::shelf::Tool;
use toolshelf_host::Reading;
use toolshelf_sandbox::store::BUILTIN;

use super::definition::{Definition, object, pure, shelf_input, shelf_output};
use super::lock::{By, Lock, Pin};
use super::names::{Names, Source};
use crate::extensions::records::LifecycleState;
use crate::extensions::{ExtError, Extensions};

/// A tool that was found.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) source: Source,
    /// How a person has admitted it, if it is admitted now.
    by: By,
    /// Its definition, but for the name.
    definition: Definition,
}

/// How a tool stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State {
    /// It is as it was admitted.
    Pinned,
    /// It is not.
    Changed,
    /// It waits for a person.
    New,
    /// It is refused for what it says.
    Refused(Refusal),
    /// It was admitted, and is not there now.
    Gone,
}

impl State {
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Refused(_) => "refused",
            Self::Gone => "gone",
        }
    }
}

/// A tool with how it stands.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) key: String,
    /// Where it comes from; `None` for one that is gone.
    pub(crate) source: Option<Source>,
    pub(crate) state: State,
    pub(crate) pinned: Option<Pin>,
    pub(crate) found: Option<Definition>,
}

impl Row {
    /// The name that agents call.
    pub(crate) fn name(&self) -> &str {
        let definition = self.pinned.as_ref().map(|pin| &pin.definition).or(self.found.as_ref());
        definition.map_or("", |definition| &definition.name)
    }

    /// What agents are shown: what was admitted, whatever is there now.
    pub(crate) fn offered(&self) -> Option<&Definition> {
        match self.state {
            State::Pinned | State::Changed => self.pinned.as_ref().map(|pin| &pin.definition),
            State::New | State::Refused(_) | State::Gone => None,
        }
    }

    /// # Errors
    /// [`Code::DefinitionChanged`] unless it is as it was admitted.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let name = self.name();
        let changed = |why: String| Err(Refusal::new(Code::DefinitionChanged, why));
        match &self.state {
            State::Pinned => Ok(()),
            State::Changed => changed(format!(
                "the definition of {name:?} is not the one that was admitted; a person looks at it with `toolshelf definitions diff {name}` and approves it"
            )),
            State::New => changed(format!(
                "{name:?} is new, and no person has admitted it; `toolshelf definitions approve {name}` does"
            )),
            State::Refused(refusal) => Err(refusal.clone()),
            State::Gone => Err(Refusal::new(Code::UnknownTool, format!("{name:?} is not there any more"))),
        }
    }

    /// As it is listed to people.
    pub(crate) fn shown(&self) -> Value {
        json!({
            "name": self.name(),
            "key": self.key,
            "state": self.state.as_str(),
            "why": if let State::Refused(refusal) = &self.state { Some(&refusal.why) } else { None },
            "pinned": self.pinned.as_ref().map(|pin| json!({
                "sha256": pin.sha256, "by": pin.by, "at_unix_ms": pin.at_unix_ms, "definition": pin.definition,
            })),
            "found": self.found.as_ref().map(|found| json!({ "sha256": found.hash(), "definition": found })),
        })
    }
}

/// All of them, by their names.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    pub(crate) rows: BTreeMap<String, Row>,
}

impl Catalogue {
    /// The tool that agents call by that name, whatever its state.
    pub(crate) fn find(&self, name: &str) -> Option<&Row> {
        self.rows.get(name).filter(|row| row.state != State::Gone)
    }

    /// The tool of the shelf that has that id.
    pub(crate) fn of_shelf(&self, id: &str) -> Option<&Row> {
        self.rows.values().find(|row| matches!(&row.source, Some(Source::Shelf { id: known }) if known == id))
    }

    /// Compares what was found with what was admitted. What is new is admitted as `ask` says: a shelf's tools wait for
    /// a person then.
    ///
    /// # Errors
    /// When the lock is of no use.
    pub(super) fn of(candidates: Vec<Candidate>, lock: &Lock, ask: bool, now: u64) -> Result<Self, Refusal> {
        let mut pins = lock.read()?;
        let mut names = Names::default();
        for (key, pin) in &pins {
            names.take(&pin.definition.name, key.clone());
        }
        let (mut rows, mut admitted) = (Vec::new(), Vec::new());
        for Candidate { source, by, mut definition } in candidates {
            let key = source.key();
            let pinned = pins.get(&key).cloned();
            definition.name = match &pinned {
                Some(pin) => pin.definition.name.clone(),
                None => names.give(&source),
            };
            let state = match (&pinned, definition.check_visible()) {
                (_, Err(refusal)) => State::Refused(refusal),
                (Some(pin), _) if pin.sha256 == definition.hash() => State::Pinned,
                (Some(_), _) => State::Changed,
                (None, _) if ask && by == By::Shelf => State::New,
                (None, _) => {
                    admitted.push((key.clone(), by, definition.clone()));
                    State::Pinned
                }
            };
            rows.push(Row { key, source: Some(source), state, pinned, found: Some(definition) });
        }
        if !admitted.is_empty() {
            pins = lock.change(|pins| {
                for (key, by, definition) in admitted {
                    // Another process may have been faster; then its entry holds.
                    pins.entry(key).or_insert_with(|| Pin {
                        sha256: definition.hash(),
                        by,
                        at_unix_ms: now,
                        definition,
                    });
                }
            })?;
        }
        let mut catalogue = Self::default();
        let mut gone: HashMap<String, Pin> = pins.clone().into_iter().collect();
        for mut row in rows {
            gone.remove(&row.key);
            row.pinned = pins.get(&row.key).cloned();
            if let (State::Pinned, Some(pin), Some(found)) = (&row.state, &row.pinned, &row.found)
                && pin.sha256 != found.hash()
            {
                row.state = State::Changed;
            }
            catalogue.rows.insert(row.name().to_owned(), row);
        }
        for (key, pin) in gone {
            let row = Row { key, source: None, state: State::Gone, pinned: Some(pin), found: None };
            catalogue.rows.insert(row.name().to_owned(), row);
        }
        Ok(catalogue)
    }
}

/// The tools of all shelves that can be called.
pub(super) fn of_shelves(readings: &[Reading]) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for reading in readings {
        let by = if reading.key == BUILTIN { By::Shipped } else { By::Shelf };
        let tools = reading.shelf.iter().flat_map(|shelf| &shelf.tools);
        candidates.extend(tools.filter_map(|tool| of_shelf(tool, by)));
    }
    candidates
}

fn of_shelf(tool: &Tool, by: By) -> Option<Candidate> {
    let (admitted, abi) = tool.driven()?;
    let definition = Definition {
        name: String::new(),
        title: tool.id.clone(),
        description: describe(&tool.description, abi),
        input_schema: shelf_input(abi),
        output_schema: Some(shelf_output(abi)),
        annotations: pure(),
        digest: admitted.digest.to_string(),
    };
    Some(Candidate { source: Source::Shelf { id: tool.id.clone() }, by, definition })
}

/// Some clients want a description of every tool.
fn describe(description: &str, abi: Abi) -> String {
    if description.is_empty() {
        format!("A tool of the ABI {}", abi.layout().name)
    } else {
        description.to_owned()
    }
}

/// The tools of extensions that `passport` may call now. Blocks its thread.
///
/// # Errors
/// An [`ExtError`].
pub(super) fn of_extensions(host: &Extensions, passport: &str) -> Result<Vec<Candidate>, ExtError> {
    let mut candidates = Vec::new();
    for record in host.list()? {
        let manifest = &record.manifest;
        let digest = match manifest.entry.kind {
            EntryKind::Wasm => manifest.wasm_module_sha256.clone(),
            EntryKind::ExternalTool => manifest.external_tool_endpoint.clone(),
            _ => None,
        };
        let Some(digest) = digest.filter(|_| record.lifecycle.state == LifecycleState::Active) else {
            continue;
        };
        let Ok(grant) = host.grant_in_force(&manifest.id, passport) else { continue };
        for tool in manifest.tools.iter().flatten().filter(|tool| grant.may_call(&tool.name)) {
            let source = Source::Extension { extension: manifest.id.clone(), tool: tool.name.clone() };
            let open_world = manifest.entry.kind == EntryKind::ExternalTool;
            let definition = Definition {
                name: String::new(),
                title: format!("{}: {}", manifest.name, tool.name),
                description: if tool.description.is_empty() {
                    manifest.summary.clone()
                } else {
                    tool.description.clone()
                },
                input_schema: schema(&tool.input_schema),
                output_schema: None,
                annotations: object(json!({ "openWorldHint": open_world })),
                digest: digest.clone(),
            };
            candidates.push(Candidate { source, by: By::Grant, definition });
        }
    }
    Ok(candidates)
}

/// The schema of arguments as clients take it: an object's.
fn schema(given: &Value) -> Map<String, Value> {
    let mut schema = object(given.clone());
    schema.entry("type").or_insert_with(|| "object".into());
    schema
}

/// Hash of all that agents are shown, so that a change is told once.
pub(super) fn fingerprint(catalogue: &Catalogue) -> Digest {
    let offered = catalogue.rows.values().filter_map(Row::offered);
    let hashes: String = offered.map(|definition| definition.hash().to_string()).collect();
    Digest::of(hashes.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::definition::tests::definition;
    use super::*;

    fn candidate(id: &str, description: &str, by: By) -> Candidate {
        Candidate { source: Source::Shelf { id: id.to_owned() }, by, definition: definition("", description) }
    }

    fn states(candidates: Vec<Candidate>, lock: &Lock, ask: bool) -> Vec<(String, &'static str)> {
        let catalogue = Catalogue::of(candidates, lock, ask, 7).unwrap();
        catalogue.rows.iter().map(|(name, row)| (name.clone(), row.state.as_str())).collect()
    }

    #[test]
    fn what_was_admitted_holds_until_a_person_approves_another() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::in_folder(dir.path());
        let first = || candidate("hash", "Hashes", By::Shelf);
        assert_eq!(states(vec![first()], &lock, false), [("hash".to_owned(), "pinned")]);
        let changed = candidate("hash", "Hashes, and sends", By::Shelf);
        let catalogue = Catalogue::of(vec![changed], &lock, false, 8).unwrap();
        let row = catalogue.find("hash").unwrap();
        assert_eq!(row.offered().unwrap().description, "Hashes", "agents see what was admitted");
        assert_eq!(row.check().unwrap_err().code, Code::DefinitionChanged);
        assert_eq!(states(vec![], &lock, false), [("hash".to_owned(), "gone")]);
        assert_eq!(states(vec![first()], &lock, false), [("hash".to_owned(), "pinned")]);
    }

    #[test]
    fn new_tools_wait_where_a_person_wants_to_be_asked() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::in_folder(dir.path());
        let found = || vec![candidate("hash", "Hashes", By::Shipped), candidate("mine", "Mine", By::Shelf)];
        let catalogue = Catalogue::of(found(), &lock, true, 7).unwrap();
        let new = catalogue.find("mine").unwrap();
        assert!(new.offered().is_none() && new.check().is_err());
        assert!(catalogue.find("hash").unwrap().check().is_ok(), "what is shipped is not asked about");
        assert_eq!(states(found(), &lock, false).last().unwrap().1, "pinned");
    }

    #[test]
    fn what_hides_something_is_never_offered() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::in_folder(dir.path());
        let catalogue =
            Catalogue::of(vec![candidate("hash", "a\u{202e}b", By::Grant)], &lock, false, 7).unwrap();
        let row = catalogue.find("hash").unwrap();
        assert!(row.offered().is_none());
        assert_eq!(row.check().unwrap_err().code, Code::HiddenCharacters);
        assert!(lock.read().unwrap().is_empty());
    }
}
