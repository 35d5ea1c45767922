//! The shelf call path as an engine over small ports.
