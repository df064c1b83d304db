//! A run as a fold over its events.

mod meaning;
mod state;
mod step;

pub use meaning::Meaning;
pub use state::{Charter, State};
pub use step::{Action, Closed, Ending, Progress, Request, Step};
