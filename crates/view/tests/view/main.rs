//! The views of whole machines and studies: goldens that a person read, and rules that hold for any machine.

mod any_machine;
mod bandwidth;
mod golden;
mod latency;
mod picture;
mod study;
mod sweep;
mod text;
