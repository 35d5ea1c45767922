//! Says where the page is that the program holds, and has the program built again when that has changed.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // In full, so that a debug build, which reads the page when it runs, also finds one that was built after it.
    let root = root.canonicalize().unwrap_or(root);
    println!("cargo::rustc-env=TOOLSHELF_PAGE={}", root.join("dist").display());
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rerun-if-changed=../../dist");
    }
}
