//! Has the program built again when the page that it holds has changed.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A debug build reads the page when it runs.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rerun-if-changed=../../dist");
    }
}
