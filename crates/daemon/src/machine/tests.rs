//! Tests of the machine placement.
