//! `cargo xtask bench extensions`, with the libraries of others beside Toolshelf.
//!
//! They are a workspace of their own (`tools/peers`), because what they depend on declares a newer Rust. It builds with the
//! toolchain of this workspace all the same. Where it cannot be built (without a network, for one), the rest is measured
//! without it.

use std::path::PathBuf;

use anyhow::Result;

use crate::sh;

/// What names the program that the benchmark asks.
const PROGRAM: &str = "TOOLSHELF_BENCH_PEERS";

/// Builds the peers, and measures.
pub(crate) fn bench_extensions() -> Result<()> {
    let mut bench = sh::cargo();
    bench.args(["bench", "--package", "toolshelf-sandbox", "--bench", "extensions"]);
    match build() {
        Ok(program) => drop(bench.env(PROGRAM, program)),
        Err(error) => println!("note: extism is not measured: {error:#}"),
    }
    sh::run(&mut bench)
}

fn build() -> Result<PathBuf> {
    println!("building extism for the comparison; the first time takes minutes");
    let folder = sh::root().join("target/peers");
    let mut command = sh::cargo();
    command
        .current_dir(sh::root().join("tools/peers"))
        .args(["build", "--release", "--locked", "--ignore-rust-version", "--target-dir"])
        .arg(&folder)
        .env_remove("CARGO_TARGET_DIR");
    sh::run(&mut command)?;
    Ok(folder.join("release/toolshelf-peers"))
}
