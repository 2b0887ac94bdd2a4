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
//! | the picture of a machine | [`svg`] |
//! | what several of them say, worked out once | [`digest`] |
#![forbid(unsafe_code)]

pub mod digest;
pub mod json;
pub mod style;
pub mod svg;
pub mod text;

pub use style::{Colour, Style};
