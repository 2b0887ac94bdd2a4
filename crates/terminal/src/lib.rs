//! The live view of `nodewise top`: its state, its keys, and its drawing.
//!
//! An [`App`] takes keys and readings and gives [`Effect`]s, which are requests to the command. It reads no file and no
//! clock. [`draw`](screen::draw) puts it into cells, of a terminal or of a test. Only [`Tty`] touches the terminal.
//!
//! Readings are the digests of `nodewise stat`: a screen shows no number that its JSON lacks.
//!
//! # Modules
//!
//! - `app.rs` the state; in `app/` what keys do (`app/keys.rs`), the order of processes (`app/order.rs`), filters
//!   (`app/filter.rs`), what is worked out of a reading
//!   (`app/worked_out.rs`), the last readings (`app/history.rs`), and the line in which texts are typed (`app/prompt.rs`)
//! - `screen.rs` the frame around all screens; in `screen/` a file per screen, the nodes in a few lines
//!   (`screen/strip.rs`), and sizes and bars as screens write them (`screen/cell.rs`)
//! - `table.rs` tables that fit: columns drop from the right; `paint.rs` text into cells; `ink.rs` its looks
//! - `key.rs` keys; `tty.rs` the terminal, and its state before
#![forbid(unsafe_code)]

pub mod app;
mod ink;
pub mod key;
mod paint;
pub mod screen;
mod table;
mod tty;

pub use app::{App, Effect, Interest, Mappings, Origin, Position, Reading, Seek};
pub use ink::Inks;
pub use key::Key;
pub use tty::{Input, Tty};
