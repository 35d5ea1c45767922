//! The shipped tools, run natively against reference implementations.
