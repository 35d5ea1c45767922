//! Every rule and wire type that all placements share.
