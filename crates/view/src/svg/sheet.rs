//! Common parts of pictures of measurements: the width of what is drawn, margins, fonts, and how they begin
//! and end.

use crate::digest::counts::plural;
use crate::digest::survey::Ending;
use crate::svg::font::Font;
use crate::svg::frame::{Stack, Tone};

/// The width of what is drawn, px, and the empty room around it.
pub(super) const WIDTH: f64 = 940.0;
pub(super) const MARGIN: f64 = 24.0;
pub(super) const TITLE: Font = Font::bold(18.0);
pub(super) const HEAD: Font = Font::bold(12.0);
pub(super) const TEXT: Font = Font::regular(12.0);
pub(super) const SMALL: Font = Font::regular(10.0);
/// Most sentences below a picture; the others are counted.
const MOST: usize = 12;

/// Adds the title, and on what machine it was measured.
pub(super) fn begin(title: &str, platform: &str, stack: &mut Stack) {
    stack.text(title, TITLE, Tone::Plain, 2);
    stack.text(platform, TEXT, Tone::Faint, 2);
}

/// Adds how it was measured, what was not, and what it shows.
pub(super) fn end(ending: &Ending, stack: &mut Stack) {
    stack.gap(10.0);
    for line in &ending.how {
        stack.text(line, SMALL, Tone::Faint, 4);
    }
    let refused = ending.not_measured.iter().map(|(place, why)| (Tone::Notable, format!("{place}: {why}")));
    let found = ending
        .findings
        .iter()
        .map(|told| (if told.is_noise { Tone::Notable } else { Tone::Plain }, told.sentence.clone()));
    let sentences: Vec<(Tone, String)> = refused.chain(found).collect();
    if !sentences.is_empty() {
        stack.gap(6.0);
    }
    some(&sentences, 3, stack);
}

/// Adds sentences of at most this many lines each, as many as a reader reads, and how many more there are.
pub(super) fn some(sentences: &[(Tone, String)], lines: usize, stack: &mut Stack) {
    for (tone, sentence) in sentences.iter().take(MOST) {
        stack.text(sentence, TEXT, *tone, lines);
    }
    more(sentences.len(), MOST, "sentence", stack);
}

/// Adds how many of this many things are left out of the picture, where it has at most this many.
pub(super) fn more(count: usize, most: usize, thing: &str, stack: &mut Stack) {
    if let Some(left) = count.checked_sub(most).filter(|left| *left > 0) {
        stack.text(&format!("and {} more", plural(left, thing)), SMALL, Tone::Faint, 1);
    }
}
