//! The real page driven in a real browser.
