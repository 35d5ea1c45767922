//! What the companion writes about itself: one line for each event, on the standard error, without secrets.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use clap::ValueEnum;
use serde_json::Value;
use toolshelf_core::redact::Redactor;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::settings::LOG;

/// What is written where no filter is set.
const DEFAULT_FILTER: &str = "info";

/// How much the client of clusters writes, whatever the filter says.
const CLUSTER_CLIENT: &str = "async_nats=warn";

/// The form of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line, for programs
    Json,
}

/// Starts writing. `secrets` are taken out wherever they stand, besides all that looks like a secret.
pub(crate) fn start(format: LogFormat, secrets: &[&str]) {
    let writer = Redacting { redactor: Arc::new(redactor(secrets)), format };
    let filter = LOG.value().and_then(|(_, filter)| filter.into_string().ok());
    // Of a filter that is not understood, the parts that are understood hold.
    let filter = EnvFilter::new(filter.as_deref().unwrap_or(DEFAULT_FILTER));
    // It would write down every message of a cluster, keys and facts included.
    let filter = match CLUSTER_CLIENT.parse() {
        Ok(quiet) => filter.add_directive(quiet),
        Err(_) => filter,
    };
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_writer(writer);
    // A second start, as in a test, changes nothing.
    let _ = match format {
        LogFormat::Text => tracing::subscriber::set_global_default(lines.with_ansi(false).finish()),
        LogFormat::Json => tracing::subscriber::set_global_default(lines.json().flatten_event(true).finish()),
    };
}

fn redactor(secrets: &[&str]) -> Redactor {
    let environment = std::env::vars_os();
    let environment =
        environment.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let secrets = secrets.iter().map(|secret| ("TOKEN".to_owned(), (*secret).to_owned()));
    Redactor::from_variables(environment.chain(secrets))
}

/// Writes whole lines to the standard error, each without its secrets.
#[derive(Clone)]
struct Redacting {
    redactor: Arc<Redactor>,
    format: LogFormat,
}

impl Redacting {
    /// The line without its secrets. In JSON every text is looked at by itself, so that it stays JSON.
    fn line(&self, line: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(line);
        if self.format == LogFormat::Json
            && let Ok(mut value) = serde_json::from_str::<Value>(&text)
        {
            self.redactor.redact_value(&mut value);
            return format!("{value}\n").into_bytes();
        }
        let text = text.trim_end_matches('\n');
        let redacted = self.redactor.redact(text);
        // A line of the log is one line, whatever stands in it.
        let redacted = redacted.replace(|char: char| char.is_control() && char != '\t', "\u{fffd}");
        [redacted.as_bytes(), b"\n"].concat()
    }
}

impl Write for Redacting {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().lock().write_all(&self.line(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl<'a> MakeWriter<'a> for Redacting {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl fmt::Debug for Redacting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redacting").field("format", &self.format).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: LogFormat, line: &str) -> String {
        let writer = Redacting { redactor: Arc::new(redactor(&["0123456789abcdef"])), format };
        String::from_utf8(writer.line(line.as_bytes())).unwrap()
    }

    #[test]
    fn no_line_holds_a_secret_and_json_stays_json() {
        let text = line(LogFormat::Text, "INFO it was 0123456789abcdef, really\n");
        assert!(!text.contains("0123456789abcdef") && text.starts_with("INFO it was"), "{text}");
        let bearer = line(LogFormat::Text, "authorization: Bearer abcdefgh12345678\n");
        assert!(!bearer.contains("abcdefgh12345678"), "{bearer}");
        let json =
            line(LogFormat::Json, "{\"message\":\"0123456789abcdef\",\"token\":\"x\",\"status\":200}\n");
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["status"], 200);
        assert!(!json.contains("0123456789abcdef") && value["token"] != "x", "{json}");
    }

    #[test]
    fn a_line_stays_one_line() {
        assert_eq!(line(LogFormat::Text, "a\u{1b}[2J\nb\n"), "a\u{fffd}[2J\u{fffd}b\n");
    }
}
