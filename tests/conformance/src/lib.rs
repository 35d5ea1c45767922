//! The contract of the shelf as data, run against every host.
