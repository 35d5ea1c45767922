//! The tests of the page. They share one program, so that the harness is linked once; each theme is a module.

mod page {
    mod access;
    mod companion;
    mod console;
    mod delegating;
    mod environments;
    mod harness;
    mod installed;
    mod installed_access;
    mod live;
    mod offline;
    mod package;
    mod person;
    mod release;
    mod remotes;
    mod shelves;
    mod single_file;
    mod smoke;
    mod task_access;
    mod task_tabs;
    mod tasks;
    mod tools;
    mod webmcp;
}
