//! Showing it: values in, text out.
//!
//! Nothing in this crate prints, opens a file, asks the terminal or reads a clock: how wide the
//! text may be and whether it has colour comes in as a [`Style`], and what comes out is a `String`.
//!
//! | to find | look in |
//! |---|---|
//! | how a text is to be written: width, colour | [`style`] |
//! | texts: `show`, `tune`, `run --explain`, `nodewise` alone | [`text`] |
//! | JSON twins of the texts, with their schemas | [`json`] |
//! | measured matrices for spreadsheets | [`csv`] |
//! | pictures: of a machine, of measured matrices | [`svg`] |
//! | a placement in the words of other tools | [`emit`] |
//! | what several of them say, worked out once | [`digest`] |
#![forbid(unsafe_code)]

pub mod csv;
pub mod digest;
pub mod emit;
pub mod json;
pub mod style;
pub mod svg;
pub mod text;

pub use style::{Colour, Style};
