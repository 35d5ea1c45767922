//! A static file server for development and for the end-to-end tests.
