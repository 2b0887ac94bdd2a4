//! The live view of `nodewise top`: its state, its keys, and its drawing.
//!
//! Readings are the digests of `nodewise stat`: a screen shows no number that its JSON lacks.
//!
//! # Modules
//!
//! - `table.rs` tables that fit: columns drop from the right; `paint.rs` text into cells; `ink.rs` its looks
//! - `key.rs` keys
#![forbid(unsafe_code)]
#![expect(dead_code, reason = "the screens that use them come with the next change")]

mod ink;
pub mod key;
mod paint;
mod table;

pub use ink::Inks;
pub use key::Key;
