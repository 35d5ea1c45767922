//! Every rule and wire type that all placements of Toolshelf share.
//!
//! Nothing in this crate knows a clock, a file, a network or a platform: each function is a pure function of its
//! arguments, so that the browser and the host cannot differ in what they admit, refuse or answer.
//!
//! In the order in which a reader meets them:
//!
//! | module | idea |
//! |---|---|
//! | [`refusal`] | the one shape of every "no", and the closed set of its codes |
//! | [`limits`] | every bound, named once |
//! | [`digest`] | SHA-256 digests as the identity of a module |
//! | [`abi`] | the two buffer ABIs: where inputs and outputs lie in linear memory |
//! | [`manifest`] | reading `manifest.json` |
//! | [`module`] | pre-flight: what a module declares, and the copy of it that is bounded |
//! | [`shelf`] | admission: a verdict for each entry of a manifest |
//! | [`call`] | what a call is given and what it answers |
//! | [`script`] | the diff script that `buffer-abi/diff` modules write |
//! | [`diff`] | such a script followed through the two texts |
//! | [`patch`] | the same as a unified patch |
//! | [`hidden`] | characters that a person does not see, in texts that agents read |
//! | [`declare`] | descriptors and live tool declarations |
//! | [`inventory`] | what `list_extensions` answers |
//! | [`placement`] | where a task runs, and how much it may ask for there |
//! | [`root`] | the folder that a task works in, and who reaches it |
//! | [`task`] | what is asked, what is recorded, and how a log becomes a record and a view |
//! | [`live`] | what a companion tells of itself, and the frames of its live session |
//! | [`remote`] | two machines that were paired: the link, the frames between them, and their bounds |
//! | [`resolver`] | what a person typed as the call of a tool, without a model |
//! | [`extension`] | manifests of extensions, their rules and signatures, what a call of one is made of |
//! | [`reserved`] | entities that belong to the system |
//! | [`grant`] | what a passport lets an extension do |
//! | [`rate`] | how often it may be called |
//! | [`problem`] | a "no" of the interface for extensions and facts |
//! | [`address`] | sealed addresses: what a task's owner holds in hand |
//! | [`redact`] | taking secrets out of what is written anywhere |

pub mod abi;
pub mod address;
pub mod call;
pub mod declare;
pub mod diff;
pub mod digest;
pub mod extension;
pub mod grant;
pub mod hidden;
pub mod inventory;
pub mod limits;
pub mod live;
pub mod manifest;
pub mod module;
pub mod patch;
pub mod placement;
pub mod problem;
pub mod rate;
pub mod redact;
pub mod refusal;
pub mod remote;
pub mod reserved;
pub mod resolver;
pub mod root;
pub mod script;
pub mod shelf;
pub mod task;

pub use abi::Abi;
pub use digest::Digest;
pub use placement::Placement;
pub use refusal::{Code, Refusal};
pub use root::RootDescriptor;
