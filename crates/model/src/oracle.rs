//! The oracle: programs page by page, under any calls, which the tests hold against kernels and the
//! product's own model against.
//!
//! [`crate::simulate`] keeps memory as runs and answers for programs of any size. What is here knows every
//! page of a small program: slow, plain, and compared with kernels by drawn scripts in guests. Tests and the check
//! of kernels have it (the feature `oracle`).

pub mod calls;
pub mod task;

pub use task::Task;
