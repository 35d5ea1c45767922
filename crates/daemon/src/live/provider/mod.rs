//! A model of a provider that answers what a person says in a live session.
//!
//! | module | idea |
//! |---|---|
//! | [`settings`] | which provider, from `toolshelf.toml` |
//! | [`wire`] | what is said to any provider, and what any says: the two protocols as data, without a connection |
//! | `openai`, `gemini` | the two protocols |
//! | `connection` | the WebSocket to a provider |
//! | `calls` | calls of a model: run under the bounds of every other call |
//! | `talk` | what is said over one connection |
//! | [`bridge`] | from a person's session to the provider and back, over as many connections as it takes |
//!
//! Nothing is opened before a person says something, nothing that is said is kept on disk, and what a provider sends is
//! data: it is bounded, and read leniently where it is not understood. The key is read anew for each connection; it
//! stands in the request that opens that connection and nowhere else.

pub(super) mod bridge;
mod calls;
mod connection;
mod gemini;
mod openai;
pub(crate) mod settings;
mod talk;
mod wire;

#[cfg(test)]
mod tests;
