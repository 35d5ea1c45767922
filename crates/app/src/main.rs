//! Puts the page into the document.

fn main() {
    toolshelf_app::start();
}
