//! `toolshelf inspect`: what a module declares, and whether a shelf would take it.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use toolshelf_core::abi::Abi;
use toolshelf_core::digest::Digest;
use toolshelf_core::limits::WASM_MODULE_MAX_BYTES;
use toolshelf_core::module::{Module, ModuleFault, bounded};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_host::{CompileFault, Executor as _};
use toolshelf_sandbox::{ProcessExecutor, WorkerProgram};

use super::outcome::{Exit, Outcome};
use super::show::{Style, bytes};
use crate::files::{self, Found};
use crate::shelf::no_workers;

pub(crate) async fn run(path: &Path, style: Style) -> Result<Outcome, Refusal> {
    let module = match files::read(path, WASM_MODULE_MAX_BYTES as u64)? {
        Found::Whole(bytes) => bytes,
        Found::TooLong(bytes) => return Err(ModuleFault::TooLarge(bytes).into()),
    };
    let mut report = Report::of(&module);
    if report.verdict.is_ok() {
        report.verdict = compiles(&module).await;
    }
    Ok(report.outcome(style))
}

/// What pre-flight says of a module.
pub(crate) struct Report {
    facts: Value,
    /// The ABIs that the module fits.
    pub(crate) fits: Vec<Abi>,
    /// Whether a shelf would take it.
    pub(crate) verdict: Result<(), Refusal>,
}

impl Report {
    /// Reads the module's declarations. Nothing is compiled.
    pub(crate) fn of(module: &[u8]) -> Self {
        let mut facts = json!({ "digest": Digest::of(module), "bytes": module.len() });
        let read = match Module::read(module) {
            Ok(read) => read,
            Err(fault) => return Self { facts, fits: Vec::new(), verdict: Err(fault.into()) },
        };
        facts["imports"] = read.import_count().into();
        facts["memoryPages"] = json!(read.memory().map(|memory| memory.min));
        facts["memoryMaxPages"] = json!(read.memory().and_then(|memory| memory.max));
        facts["starts"] = read.has_start().into();
        let fits: Vec<Abi> = Abi::ALL.into_iter().filter(|abi| read.check_abi(*abi).is_ok()).collect();
        facts["abis"] = fits.iter().map(|abi| abi.layout().name).collect();
        let verdict = read
            .check_bounds()
            .map_err(Refusal::from)
            .and_then(|()| if fits.is_empty() { Err(no_abi(&read)) } else { Ok(()) });
        Self { facts, fits, verdict }
    }

    pub(crate) fn outcome(self, style: Style) -> Outcome {
        let mut json = match &self.verdict {
            Ok(()) => json!({ "ok": true }),
            Err(refusal) => json!(refusal),
        };
        if let (Value::Object(all), Value::Object(facts)) = (&mut json, &self.facts) {
            all.extend(facts.clone());
        }
        let exit = self.verdict.as_ref().map_or_else(|refusal| Exit::from(refusal.code), |()| Exit::Done);
        // A module that a shelf would not take has not failed: it was refused.
        let exit = if exit == Exit::Done { exit } else { Exit::Refused };
        Outcome { json, text: self.text(style), exit }
    }

    fn text(&self, style: Style) -> String {
        let facts = &self.facts;
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{} {value}", style.dim(&format!("{name:<8}")));
        };
        line("digest", facts["digest"].as_str().unwrap_or_default().to_owned());
        line("size", bytes(facts["bytes"].as_u64().unwrap_or_default()));
        if let Some(imports) = facts["imports"].as_u64() {
            line("imports", imports.to_string());
            let pages = |key: &str| facts[key].as_u64().map_or("-".to_owned(), |pages| pages.to_string());
            line("memory", format!("{} pages, at most {}", pages("memoryPages"), pages("memoryMaxPages")));
            let starts = facts["starts"] == true;
            line("start", if starts { "runs code when it is instantiated" } else { "none" }.to_owned());
            let abis: Vec<_> = self.fits.iter().map(|abi| abi.layout().name).collect();
            line("ABI", if abis.is_empty() { "none".to_owned() } else { abis.join(", ") });
        }
        match &self.verdict {
            Ok(()) => line("verdict", style.good("a shelf takes it")),
            Err(refusal) => line("verdict", style.refusal(refusal)),
        }
        text
    }
}

fn no_abi(module: &Module<'_>) -> Refusal {
    let whys: Vec<String> = Abi::ALL
        .into_iter()
        .filter_map(|abi| Some(format!("{}: {}", abi.layout().name, module.check_abi(abi).err()?)))
        .collect();
    Refusal::new(Code::UnsupportedAbi, whys.join("; "))
}

/// Compiles the module in a process of its own, as a call would. Nothing is kept and nothing runs.
async fn compiles(module: &[u8]) -> Result<(), Refusal> {
    let bounded = bounded(&Module::read(module)?)?;
    let executor = WorkerProgram::this().and_then(|program| ProcessExecutor::cold(program, None));
    let executor = executor.map_err(|err| no_workers(&err))?;
    executor.compile(bounded).await.map(drop).map_err(CompileFault::refusal)
}
