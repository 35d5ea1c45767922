//! Starting other programs, with one sentence when one fails.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The top folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// The folder that this workspace's own downloads go to.
pub(crate) fn tools_folder() -> PathBuf {
    root().join("target/tools")
}

/// A command that runs in the top folder and finds programs that `cargo install` put into Cargo's home.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(find(name).unwrap_or_else(|| name.into()));
    command.current_dir(root()).env("PATH", search_path());
    // Panics keep their backtrace; errors are told by their sentences.
    command.env("RUST_LIB_BACKTRACE", "0");
    command
}

/// The Cargo that runs this program.
pub(crate) fn cargo() -> Command {
    let name = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    program(&name)
}

/// Where a program is, if it is installed.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&search_path()).map(|folder| folder.join(&file)).find(|path| path.is_file())
}

/// Cargo's home comes first: a version that is pinned there wins over one of the system.
fn search_path() -> OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let cargo_home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let folders = cargo_home.map(|home| home.join("bin")).into_iter();
    std::env::join_paths(folders.chain(std::env::split_paths(&inherited))).unwrap_or(inherited)
}

/// Runs a command to its end; its output goes where ours goes.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}

/// Runs a command to its end and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !output.status.success() {
        bail!("`{}` failed ({})", shown(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` did not print text", shown(command)))
}

/// The command as one would type it: the program without its folder, then its arguments.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_named_as_one_would_type_it() {
        let error = run(cargo().args(["--no-such-option"]).stderr(Stdio::null())).unwrap_err();
        assert!(error.to_string().starts_with("`cargo --no-such-option` failed"), "{error}");
        let error = output(&mut program("no-such-program")).unwrap_err();
        assert_eq!(error.to_string(), "cannot start `no-such-program`");
    }

    #[test]
    fn the_top_folder_is_the_one_with_the_workspace() {
        assert!(root().join("Trunk.toml").is_file());
    }
}
