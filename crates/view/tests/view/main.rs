//! The views of whole machines: goldens that a person read, and rules that hold for any machine.

mod any_machine;
mod golden;
mod picture;
mod text;
