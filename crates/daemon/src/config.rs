//! `toolshelf.toml`: the folders that tasks work in, the agents that they can be given to, and the live model.
//!
//! ```toml
//! roots = ["/home/ann/notes"]
//!
//! [agents.summarise]
//! command = ["summarise", "--short"]
//! description = "Summarises a text"
//! env = ["PATH", "HOME", "API_KEY"]
//! deadline-ms = 600000
//! max-output-bytes = 16384
//!
//! [live]
//! provider = "openai-realtime"
//! ```
//!
//! The table `[live]` has its own module, `live::provider::settings`; `[cluster]` is described in
//! [`crate::cluster::config`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::task::input::AGENT_MAX_CHARS;

use crate::cluster::config::ClusterConfig;
use crate::live::{LiveSettings, WrittenLive, live_settings};
use crate::settings;

/// Largest file that is read, in bytes.
const FILE_MAX_BYTES: u64 = 1024 * 1024;
/// Longest description, in characters.
const DESCRIPTION_MAX_CHARS: usize = 1_000;
/// What an agent gets of this program's environment when its configuration does not say.
const USUAL_ENV: [&str; 2] = ["PATH", "HOME"];

/// What the file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Config {
    /// Folders that tasks work in, as absolute paths.
    pub(crate) roots: Vec<PathBuf>,
    /// Agents by their names.
    pub(crate) agents: BTreeMap<String, Agent>,
    /// The model that answers in live sessions.
    pub(crate) live: Option<LiveSettings>,
    /// The cluster that tasks are admitted to, or run for.
    pub(crate) cluster: Option<ClusterConfig>,
}

/// An agent: a command that tasks can be given to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Agent {
    /// The program and its arguments; never empty.
    pub(crate) command: Vec<String>,
    /// What it does, in its owner's words.
    pub(crate) description: String,
    /// Names of the environment variables that it gets.
    pub(crate) env: Vec<String>,
    /// The longest deadline of its tasks, and that of those that ask for none, in milliseconds.
    pub(crate) deadline_ms: Option<u32>,
    /// Most bytes of its answers.
    pub(crate) max_output_bytes: Option<u32>,
    /// Where it is configured, for messages: file and line.
    pub(crate) declared: String,
}

impl Agent {
    /// The deadline of a task that asks for `wished`, in milliseconds. The placement's bound is checked by the host.
    pub(crate) fn deadline_ms(&self, wished: Option<u32>) -> u32 {
        let usual = self.deadline_ms.unwrap_or(Placement::Machine.bounds().default_deadline_ms);
        wished.map_or(usual, |wished| wished.min(self.deadline_ms.unwrap_or(wished)))
    }

    /// The refusal of an agent that has the name of a tool of the shelf.
    pub(crate) fn collides(&self, tool: &str) -> Refusal {
        let why = format!("{}: the shelf has a tool {tool:?}; rename the agent", self.declared);
        Refusal::new(Code::ConfigInvalid, why)
    }
}

impl Config {
    /// Reads the file that the settings name, or the one at the usual place.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`].
    pub(crate) fn load() -> Result<Self, Refusal> {
        settings::config_file().map_or_else(|| Ok(Self::default()), |path| Self::read(&path))
    }

    /// Reads the file at `path`. One that is not there says nothing.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`] with the file, the line and what to do.
    pub(crate) fn read(path: &Path) -> Result<Self, Refusal> {
        let text = match read_text(path) {
            Ok(text) => text,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(err) => {
                let why = format!("{} cannot be read: {err}", path.display());
                return Err(Refusal::new(Code::ConfigInvalid, why));
            }
        };
        Source { path, text: &text }.config()
    }
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    roots: Vec<Spanned<String>>,
    #[serde(default)]
    agents: BTreeMap<Spanned<String>, WrittenAgent>,
    live: Option<WrittenLive>,
    #[serde(default)]
    cluster: Option<Spanned<ClusterConfig>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenAgent {
    command: Spanned<Vec<String>>,
    #[serde(default)]
    description: Option<Spanned<String>>,
    #[serde(default)]
    env: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    deadline_ms: Option<Spanned<u64>>,
    #[serde(default)]
    max_output_bytes: Option<Spanned<u64>>,
}

/// A file that is read, for messages.
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn config(&self) -> Result<Config, Refusal> {
        let written: Written = toml::from_str(self.text)
            .map_err(|err| self.invalid(err.span().unwrap_or_default(), err.message()))?;
        let mut config = Config::default();
        for root in written.roots {
            let span = root.span();
            config.roots.push(root_path(root.as_ref()).map_err(|why| self.invalid(span, why))?);
        }
        for (name, agent) in written.agents {
            let span = name.span();
            if !is_agent_name(name.as_ref()) {
                let why =
                    format!("an agent's name is 1 to {AGENT_MAX_CHARS} letters, digits, `.`, `_` and `-`");
                return Err(self.invalid(span, &why));
            }
            let agent = self.agent(agent, self.place(&span))?;
            config.agents.insert(name.into_inner(), agent);
        }
        if let Some(live) = written.live {
            config.live = live_settings(live).map_err(|(span, why)| self.invalid(span, &why))?;
        }
        if let Some(cluster) = written.cluster {
            cluster.as_ref().check().map_err(|why| self.invalid(cluster.span(), &why))?;
            config.cluster = Some(cluster.into_inner());
        }
        Ok(config)
    }

    fn agent(&self, written: WrittenAgent, declared: String) -> Result<Agent, Refusal> {
        let WrittenAgent { command, description, env, deadline_ms, max_output_bytes } = written;
        let span = command.span();
        let command = command.into_inner();
        if command.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(self.invalid(span, "`command` must begin with the name or path of a program"));
        }
        if command.iter().any(|part| part.contains('\0')) {
            return Err(self.invalid(span, "`command` cannot have a NUL"));
        }
        if let Some(text) = &description
            && text.as_ref().chars().count() > DESCRIPTION_MAX_CHARS
        {
            let why = format!("`description` is longer than {DESCRIPTION_MAX_CHARS} characters; shorten it");
            return Err(self.invalid(text.span(), &why));
        }
        let mut names = Vec::new();
        for name in env.iter().flatten() {
            if !is_variable(name.as_ref()) {
                let why = "`env` lists names of environment variables, without their values";
                return Err(self.invalid(name.span(), why));
            }
            names.push(name.as_ref().clone());
        }
        let bounds = Placement::Machine.bounds();
        Ok(Agent {
            command,
            description: description.map(Spanned::into_inner).unwrap_or_default(),
            env: if env.is_some() { names } else { USUAL_ENV.map(str::to_owned).into() },
            deadline_ms: self.bound("deadline-ms", deadline_ms, bounds.max_deadline_ms)?,
            max_output_bytes: self.bound("max-output-bytes", max_output_bytes, bounds.max_output_bytes)?,
            declared,
        })
    }

    /// A bound that can only be lower than the placement's.
    fn bound(&self, key: &str, value: Option<Spanned<u64>>, most: u32) -> Result<Option<u32>, Refusal> {
        let Some(value) = value else { return Ok(None) };
        let within = u32::try_from(*value.as_ref()).ok().filter(|value| (1..=most).contains(value));
        let why = || format!("`{key}` is between 1 and {most}: it can only lower what the placement grants");
        within.map(Some).ok_or_else(|| self.invalid(value.span(), &why()))
    }

    fn invalid(&self, span: Range<usize>, why: &str) -> Refusal {
        let why = why.lines().map(str::trim).collect::<Vec<_>>().join("; ");
        Refusal::new(Code::ConfigInvalid, format!("{}: {}", self.place(&span), cut(&why, 300)))
    }

    /// File and line.
    fn place(&self, span: &Range<usize>) -> String {
        let before = self.text.as_bytes().iter().take(span.start);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        format!("{}:{line}", self.path.display())
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(FILE_MAX_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > FILE_MAX_BYTES {
        let why = format!("it is larger than {FILE_MAX_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

/// An absolute path; `~` stands for the home folder.
fn root_path(text: &str) -> Result<PathBuf, &'static str> {
    let path = match text.strip_prefix("~/") {
        Some(rest) => {
            std::env::home_dir().ok_or("there is no home folder that `~` could stand for")?.join(rest)
        }
        None => PathBuf::from(text),
    };
    if path.is_absolute() { Ok(path) } else { Err("`roots` lists absolute paths; write the whole path") }
}

fn is_agent_name(name: &str) -> bool {
    (1..=AGENT_MAX_CHARS).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let source = Source { path: Path::new("/etc/toolshelf.toml"), text };
        source.config().map_err(|refusal| {
            assert_eq!(refusal.code, Code::ConfigInvalid);
            refusal.why
        })
    }

    #[test]
    fn what_is_written_is_read_and_the_rest_is_as_usual() {
        let config = read(
            "roots = [\"/srv/a\", \"/srv/b\"]\n\n[agents.one]\ncommand = [\"prog\", \"-x\"]\n\n[agents.\"t.w-o\"]\n\
             command = [\"./p\"]\ndescription = \"Does it\"\nenv = [\"LANG\"]\ndeadline-ms = 3600000\n\
             max-output-bytes = 1\n",
        )
        .unwrap();
        assert_eq!(config.roots, [PathBuf::from("/srv/a"), PathBuf::from("/srv/b")]);
        let one = &config.agents["one"];
        assert_eq!(
            (&*one.command, &*one.env),
            (&["prog".into(), "-x".into()][..], &USUAL_ENV.map(str::to_owned)[..])
        );
        assert_eq!(one.declared, "/etc/toolshelf.toml:3");
        assert_eq!(
            (one.deadline_ms(None), one.deadline_ms(Some(5)), one.deadline_ms(Some(90_000))),
            (60_000, 5, 90_000)
        );
        let two = &config.agents["t.w-o"];
        assert_eq!((two.max_output_bytes, &*two.env), (Some(1), &["LANG".to_owned()][..]));
        assert_eq!((two.deadline_ms(None), two.deadline_ms(Some(u32::MAX))), (3_600_000, 3_600_000));
        assert_eq!(read("").unwrap(), Config::default());
        assert_eq!(read("[agents.x]\ncommand=['p']\nenv=[]").unwrap().agents["x"].env, [""; 0]);
    }

    #[test]
    fn what_no_setting_takes_is_refused_with_file_line_and_reason() {
        let agent = |lines: &str| format!("[agents.a]\ncommand = [\"p\"]\n{lines}");
        for (text, line, part) in [
            ("roots = 7".to_owned(), 1, "invalid type"),
            ("root = []".to_owned(), 1, "unknown field"),
            ("\n\nroots = [\n'/a',\n'b']".to_owned(), 5, "absolute"),
            ("listen = ".to_owned(), 1, ""),
            ("[agents]\nx = 1".to_owned(), 2, "invalid type"),
            ("[agents.'a b']\ncommand = ['p']".to_owned(), 1, "letters"),
            (format!("[agents.{}]\ncommand = ['p']", "x".repeat(81)), 1, "80"),
            ("[agents.a]\ndescription = ''".to_owned(), 1, "missing field `command`"),
            ("[agents.a]\ncommand = 'p'".to_owned(), 2, "invalid type"),
            ("[agents.a]\ncommand = []".to_owned(), 2, "program"),
            ("[agents.a]\ncommand = [' ']".to_owned(), 2, "program"),
            ("[agents.a]\ncommand = [\"p\", \"\\u0000\"]".to_owned(), 2, "NUL"),
            (agent("cwd = '/'"), 3, "unknown field"),
            (agent("env = ['A=b']"), 3, "names"),
            (agent("env = ['']"), 3, "names"),
            (agent("deadline-ms = 3600001"), 3, "3600000"),
            (agent("deadline-ms = 0"), 3, "between 1"),
            (agent("deadline-ms = -1"), 3, ""),
            (agent("deadline-ms = 1.5"), 3, "invalid type"),
            (agent("max-output-bytes = 65537"), 3, "65536"),
            (agent(&format!("description = '{}'", "x".repeat(1_001))), 3, "shorten"),
            (agent("[agents.a]\ncommand = ['q']"), 3, ""),
            (agent("[live]\nprovider = 'x'"), 4, "scripted"),
            ("[live]\nmodel = 'm'".to_owned(), 1, "provider"),
        ] {
            let why = read(&text).unwrap_err();
            assert!(why.starts_with(&format!("/etc/toolshelf.toml:{line}: ")), "{text}\n{why}");
            assert!(why.contains(part) && !why.contains('\n'), "{text}\n{why}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_says_nothing_and_one_that_cannot_be_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("toolshelf.toml");
        assert_eq!(Config::read(&path), Ok(Config::default()));
        for bytes in [&b"\xff\xfe"[..], &vec![b'\n'; FILE_MAX_BYTES as usize + 1]] {
            std::fs::write(&path, bytes).unwrap();
            let refusal = Config::read(&path).unwrap_err();
            assert!(refusal.code == Code::ConfigInvalid && refusal.why.contains("toolshelf.toml"));
        }
        assert_eq!(Config::read(dir.path()).unwrap_err().code, Code::ConfigInvalid);
        std::fs::write(&path, "roots = ['~/notes']").unwrap();
        assert!(Config::read(&path).unwrap().roots[0].ends_with("notes"));
    }
}
