//! Tasks: work that is handed over, watched, cancelled and audited, by the same rules wherever it runs.
//!
//! | module | idea |
//! |---|---|
//! | [`input`] | what may be asked, and the bounds that an executor names |
//! | [`record`] | states, records, events and the entries of the log, in their wire forms |
//! | [`reduce`] | from the entries of a log to the record of a task |
//! | [`view`] | what the owner of a task is shown |
//! | [`listing`] | lists of tasks for their owner, in their wire forms |
//! | [`tool_call`] | what a task asks of a shelf tool |
//! | [`time`] | how moments are written and read |

pub mod input;
pub mod listing;
pub mod record;
pub mod reduce;
pub mod time;
pub mod tool_call;
pub mod view;

pub use input::{InputFault, TaskBounds, TaskInput, check_call_id, task_input};
pub use record::{LogEntry, Outcome, TaskEvent, TaskRecord, TaskState};
pub use reduce::{ReduceFault, Reducer, reduce_task};
pub use tool_call::{Source, ToolCall};
pub use view::{TaskView, task_view};

#[cfg(test)]
mod tests;
