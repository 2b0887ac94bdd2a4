//! What pictures of measurements have alike: the width of what is drawn, margins, fonts, and how text
//! comes in.

use crate::svg::font::Font;

/// What is drawn, px, and the empty room around it.
pub(super) const WIDTH: f64 = 940.0;
pub(super) const MARGIN: f64 = 24.0;
pub(super) const TITLE: Font = Font::bold(18.0);
pub(super) const HEAD: Font = Font::bold(12.0);
pub(super) const TEXT: Font = Font::regular(12.0);
pub(super) const SMALL: Font = Font::regular(10.0);

/// Foreign text without what a viewer would obey.
pub(super) fn printable(text: &str) -> String {
    nodewise_machine::printable::printable(text).into_owned()
}
