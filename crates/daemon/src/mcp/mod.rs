//! The shelf for agents: the Model Context Protocol, over standard input and output, a socket, and HTTP.
//!
//! | module | idea |
//! |---|---|
//! | [`server`] | one client's session, as the protocol's library asks for it |
//! | [`backend`] | from there to the thread on which the companion lives |
//! | [`desk`] | what the companion keeps for agents: the catalogue, as long as nothing has changed |
//! | [`catalogue`] | the tools that agents are offered, each as a person has admitted it |
//! | [`definition`] | what an agent sees of a tool, and the hash of that |
//! | [`lock`] | `shelf.lock`: what a person has admitted |
//! | [`names`] | one name for each tool, whatever it is called where it comes from |
//! | [`fixed`] | the tools that are always there |
//! | [`calls`] | a call, from its name to what came of it |
//! | [`answer`] | what came of it, as the protocol writes it |
//! | [`progress`] | what a client hears while it waits |
//! | [`telling`] | what a client is told without having asked |
//! | [`tasks`] | tasks as the protocol has them |
//! | [`resources`] | what can be read: the catalogue, tasks, receipts |
//! | [`who`] | who asks, and which tools are theirs |
//! | [`tokens`] | tokens for agents, each with its tools |
//! | [`http`] | `/mcp` |
//! | [`socket`] | the way to a companion that runs |
//! | [`admin`] | definitions: listing, comparing, approving |
//!
//! What is said in descriptions, arguments and results is data. Nothing here acts on it.

pub(crate) mod admin;
mod answer;
pub(crate) mod backend;
mod calls;
mod catalogue;
mod definition;
pub(crate) mod desk;
mod fixed;
pub(crate) mod http;
mod lock;
mod names;
mod progress;
mod resources;
pub(crate) mod server;
pub(crate) mod socket;
mod tasks;
mod telling;
pub(crate) mod tokens;
pub(crate) mod who;
