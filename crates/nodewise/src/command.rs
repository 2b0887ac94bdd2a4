//! One file per verb: what was typed, to the libraries, to a view, to an exit code.

pub mod capture;
pub mod explain;
pub mod lab;
pub mod links;
pub mod run;
pub mod show;
pub mod tune;
pub mod workload;
