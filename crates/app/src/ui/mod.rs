//! The small parts that every panel uses.

pub(crate) mod arriving;
pub(crate) mod copy;
pub(crate) mod dom;
pub(crate) mod fatal;
pub(crate) mod header;
pub(crate) mod icon;
pub(crate) mod pin;
pub(crate) mod preference;
pub(crate) mod rich;
pub(crate) mod toast;
