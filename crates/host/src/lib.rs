//! The engines of the shelf and of tasks, over small ports that a platform implements.
//!
//! The engines know when to read, hash, wait, run and refuse; they know no browser, no process, no file and no clock of
//! their own. No future here needs to be `Send`: a browser's never is.
//!
//! | module | idea |
//! |---|---|
//! | [`ports`] | what a platform provides: a store, an executor, a clock |
//! | [`gate`] | first come, first served: four calls run, thirty-two wait, the rest are refused |
//! | [`shelf_host`] | admission over a store, and the call path |
//! | [`task_ports`] | what a platform provides to tasks: a key, a journal, executors, lives, roots |
//! | [`task_host`] | tasks of one environment: delegate, watch, cancel |
//! | [`tool_task`] | a task that is given to a tool of the shelf |
//! | [`dispatcher`] | from an environment to the host that serves it |

pub mod dispatcher;
pub mod gate;
pub mod ports;
pub mod shelf_host;
pub mod task_host;
pub mod task_ports;
pub mod tool_task;

pub use dispatcher::{Dispatcher, PlacementHost};
pub use gate::Gate;
pub use ports::{Clock, CompileFault, Executor, Run, ShelfStore};
pub use shelf_host::{Reading, ShelfHost, admit_all};
pub use task_host::{Caller, MemoryJournal, Reply, TaskHost, TaskHostConfig, Wish};
pub use task_ports::{Journal, Life, Roots, Sealer, Spawner, TaskClock, TaskExecutor, TaskPlatform};
pub use tool_task::ToolSite;
