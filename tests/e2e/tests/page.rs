//! The tests of the page. They share one program, so that the harness is linked once; each theme is a module.

mod page {
    mod access;
    mod console;
    mod harness;
    mod person;
    mod shelves;
    mod smoke;
    mod tools;
}
