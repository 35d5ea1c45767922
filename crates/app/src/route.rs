//! The part of the address behind `#`: `#/extensions`, `#/extensions/<id>`, and `#/extensions/<id>/in/<shelf>` for an
//! entry whose id another shelf has as well; `#/tasks`, and `#/tasks/<place in the journal>` for one task; and
//! `#/environments` and `#/live`. `#/installed` and `#/facts`, with what follows them, are read where they are shown
//! (`installed::place`). What is the companion's has `/on/machine` behind a tool's id, and `machine/` in front of a task's
//! place.

/// The address of the panel of tools.
pub(crate) const PANEL: &str = "#/extensions";
/// The address of the panel of tasks.
pub(crate) const TASKS: &str = "#/tasks";
/// The address of the panel of environments.
pub(crate) const ENVIRONMENTS: &str = "#/environments";

/// The address of the panel of conversations.
pub(crate) const LIVE: &str = "#/live";

/// One of the page's panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Panel {
    /// The shelves and their tools.
    #[default]
    Extensions,
    /// The tasks.
    Tasks,
    /// Conversations that lead to calls.
    Live,
    /// Where tasks can run, and their folders.
    Environments,
}

/// Whose tools and tasks are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Place {
    /// Those of the browser that shows the page.
    #[default]
    Browser,
    /// Those of the companion that serves it.
    Machine,
}

/// The word for the companion in an address.
const MACHINE: &str = "machine";

/// What the address names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Route {
    /// The panel.
    pub(crate) panel: Panel,
    /// Whose tool it is, or whose tasks are listed.
    pub(crate) place: Place,
    /// Id of the tool that is looked at.
    pub(crate) tool: Option<String>,
    /// Key of the shelf, where the id alone would name another one's tool.
    pub(crate) shelf: Option<String>,
    /// The task that is looked at: its place in the journal, or its address.
    pub(crate) task: Option<String>,
    /// What stands behind `#/`, where it names extensions or facts of the companion.
    pub(crate) installed: Option<String>,
}

/// Reads the part of an address that starts with `#`. What is not understood names the panel of tools.
pub(crate) fn parse(hash: &str) -> Route {
    if let Some(mut parts) = below(hash, TASKS) {
        let first = parts.next().unwrap_or_default();
        let (place, task) = match first == MACHINE {
            true => (Place::Machine, parts.next().unwrap_or_default()),
            false => (Place::Browser, first),
        };
        let task = Some(decode(task)).filter(|task| !task.is_empty());
        return Route { panel: Panel::Tasks, place, task, ..Route::default() };
    }
    if below(hash, ENVIRONMENTS).is_some() {
        return Route { panel: Panel::Environments, ..Route::default() };
    }
    if below(hash, LIVE).is_some() {
        return Route { panel: Panel::Live, ..Route::default() };
    }
    if ["#/installed", "#/facts"].iter().any(|place| below(hash, place).is_some()) {
        return Route { installed: Some(hash[2..].to_owned()), ..Route::default() };
    }
    let mut parts = hash.strip_prefix(PANEL).unwrap_or_default().split('/').skip(1);
    let tool = parts.next().map(decode).filter(|id| !id.is_empty());
    let mut route = Route { tool, ..Route::default() };
    while let (true, Some(word), Some(value)) = (route.tool.is_some(), parts.next(), parts.next()) {
        match word {
            "on" if value == MACHINE => route.place = Place::Machine,
            "in" => route.shelf = Some(decode(value)),
            _ => break,
        }
    }
    route
}

/// The parts of an address below that of a panel.
fn below<'a>(hash: &'a str, panel: &str) -> Option<std::str::Split<'a, char>> {
    let rest = hash.strip_prefix(panel)?;
    if rest.is_empty() { Some(rest.split('/')) } else { Some(rest.strip_prefix('/')?.split('/')) }
}

/// The address of somebody's tasks.
pub(crate) fn to_tasks(place: Place) -> String {
    match place {
        Place::Browser => TASKS.to_owned(),
        Place::Machine => [TASKS, "/", MACHINE].concat(),
    }
}

/// The address of the task at a place in somebody's journal.
pub(crate) fn to_task(place: Place, task: &str) -> String {
    [&to_tasks(place), "/", task].concat()
}

/// The address of a tool.
pub(crate) fn to_tool(place: Place, id: &str, shelf: Option<&str>) -> String {
    let mut hash = String::from(PANEL);
    hash.push('/');
    encode(id, &mut hash);
    if place == Place::Machine {
        hash.extend(["/on/", MACHINE]);
    }
    if let Some(shelf) = shelf {
        hash.push_str("/in/");
        encode(shelf, &mut hash);
    }
    hash
}

/// Text as it stands in an address.
pub(crate) fn encode(text: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~()".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

/// Text in which bytes may be written as `%2F`.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|&digit| char::from(digit).to_digit(16));
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_back_as_it_was_written() {
        for (id, shelf) in [
            ("hash", None),
            ("(unnamed)", Some("a b/é%")),
            ("x/in/y", None),
            ("%41", Some("s")),
            ("on", None),
        ] {
            for place in [Place::Browser, Place::Machine] {
                let route = parse(&to_tool(place, id, shelf));
                assert_eq!(
                    (route.place, route.tool.as_deref(), route.shelf.as_deref()),
                    (place, Some(id), shelf)
                );
            }
        }
        assert_eq!(to_tool(Place::Browser, "hash", None), "#/extensions/hash");
        assert_eq!(to_tool(Place::Machine, "hash", None), "#/extensions/hash/on/machine");
    }

    #[test]
    fn what_is_not_understood_names_the_panel() {
        for hash in ["", "#", "#/", "#/elsewhere/hash", "#/extensions", "#/extensions/", "#/tasksy"] {
            assert_eq!(parse(hash), Route::default(), "{hash}");
        }
        assert_eq!(parse("#/extensions/%zz%").tool.as_deref(), Some("%zz%"));
        for hash in ["#/extensions/hash/on/mars", "#/extensions/hash/on", "#/extensions/hash/at/machine"] {
            assert_eq!(parse(hash).place, Place::Browser, "{hash}");
        }
    }

    #[test]
    fn what_a_companion_has_installed_is_part_of_the_first_panel() {
        for rest in ["installed", "installed/ext.a", "facts", "facts/below/a%3A%3A"] {
            let route = parse(&["#/", rest].concat());
            assert_eq!(
                (route.panel, route.installed.as_deref(), route.tool),
                (Panel::Extensions, Some(rest), None)
            );
        }
        assert_eq!(parse("#/factsy"), Route::default());
    }

    #[test]
    fn the_other_panels_have_addresses_too() {
        let task = |hash: &str| {
            let route = parse(hash);
            assert_eq!((route.panel, route.tool), (Panel::Tasks, None), "{hash}");
            (route.place, route.task)
        };
        for place in [Place::Browser, Place::Machine] {
            assert_eq!(task(&to_tasks(place)), (place, None));
            assert_eq!(task(&(to_tasks(place) + "/")), (place, None));
            assert_eq!(task(&to_task(place, "12")), (place, Some("12".into())));
            assert_eq!(task(&to_task(place, "7/x")), (place, Some("7".into())));
        }
        assert_eq!(to_tasks(Place::Browser), TASKS);
        assert_eq!(parse("#/environments").panel, Panel::Environments);
        assert_eq!(parse("#/environments/").panel, Panel::Environments);
    }
}
