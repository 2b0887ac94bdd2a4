//! A laid-out picture: a tree of rectangles with measured text.
//!
//! The rule that the layout keeps and the tests check: everything in a frame lies inside it, and
//! its labels and children do not overlap each other.

use nodewise_machine::printable::printable;

use crate::svg::font::Font;

/// A rectangle; px, y downwards.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Rect {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Rect {
    /// A rectangle of a size, its corner in the origin.
    pub const fn sized(width: f64, height: f64) -> Self {
        Self { x: 0.0, y: 0.0, width, height }
    }

    /// The right edge.
    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    /// The lower edge.
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }

    /// Whether another rectangle lies inside; rounding to a tenth is forgiven.
    pub fn holds(&self, other: &Self) -> bool {
        const SLACK: f64 = 0.11;
        other.x >= self.x - SLACK
            && other.y >= self.y - SLACK
            && other.right() <= self.right() + SLACK
            && other.bottom() <= self.bottom() + SLACK
    }

    /// Whether two rectangles share more than an edge; rounding to a tenth is forgiven.
    pub fn overlaps(&self, other: &Self) -> bool {
        const SLACK: f64 = 0.11;
        self.x + SLACK < other.right()
            && other.x + SLACK < self.right()
            && self.y + SLACK < other.bottom()
            && other.y + SLACK < self.bottom()
    }
}

/// The kind of a frame, and so how it is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Page,
    /// Holds others and is not painted.
    Group,
    Package,
    /// Holds one frame that stands for several; painted as a pile of it.
    Pile,
    Node,
    /// A node without CPUs, and everything else that is not an ordinary node.
    MemoryNode,
    /// The cores that share a last-level cache.
    Cache,
    /// A CPU: one thread of a core.
    Thread,
    /// A CPU that is slower than others of the machine.
    SlowThread,
    Memory,
    /// The part of it that is in use.
    Used,
    Compute,
    /// A network or RDMA device.
    Network,
    Disk,
    /// A device of another kind.
    OtherDevice,
    /// A distance: 0 local, 1 nearest, up to [`Role::FARTHEST`].
    Distance(u8),
    /// A distance that is missing.
    NoDistance,
    /// One of several things without an order, by its place; there are colours for [`Role::CATEGORIES`].
    Category(u8),
    /// The same, drawn as an outline.
    OutlinedCategory(u8),
    Rest,
}

impl Role {
    /// The largest step of [`Role::Distance`].
    pub const FARTHEST: u8 = 5;
    /// How many categories differ in colour.
    pub const CATEGORIES: u8 = 8;
}

/// The side of its point that a text is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// To the right of it.
    Start,
    Middle,
    /// To the left of it.
    End,
}

/// How a text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Faint,
    Notable,
    /// On a [`Role::Thread`].
    OnThread,
    /// On a [`Role::Distance`] of this step.
    OnStep(u8),
}

impl Tone {
    /// The tone that is legible on a role.
    pub const fn on(role: Role) -> Self {
        match role {
            Role::Distance(step) => Self::OnStep(step),
            Role::Thread | Role::SlowThread => Self::OnThread,
            _ => Self::Plain,
        }
    }
}

/// A line of text.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Its point, left to right.
    pub x: f64,
    pub y: f64,
    pub font: Font,
    /// On which side of its point it is.
    pub anchor: Anchor,
    pub tone: Tone,
    /// The text, fit to be shown.
    pub text: String,
}

/// Height of letters above the baseline and below it, in parts of the size (DejaVu Sans: 0.76 for
/// capitals and digits, 0.24 for descenders).
const ABOVE: f64 = 0.76;
const BELOW: f64 = 0.24;

impl Label {
    /// The rectangle that the text fills, at most.
    pub fn area(&self) -> Rect {
        let width = self.font.width(&self.text);
        let x = match self.anchor {
            Anchor::Start => self.x,
            Anchor::Middle => self.x - width / 2.0,
            Anchor::End => self.x - width,
        };
        let size = self.font.size;
        Rect { x, y: self.y - ABOVE * size, width, height: (ABOVE + BELOW) * size }
    }

    /// A text from `x` on, in the middle of a line that begins at `y`. What a viewer would obey becomes
    /// visible.
    pub(crate) fn new(text: &str, font: Font, x: f64, (y, height): (f64, f64)) -> Self {
        let y = Self::baseline(font.size, y, height);
        let text = printable(text).into_owned();
        Self { x, y, font, anchor: Anchor::Start, tone: Tone::Plain, text }
    }

    /// The same on another side of its point.
    #[must_use]
    pub(crate) fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// The same in another look.
    #[must_use]
    pub(crate) fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// The baseline that centres a text of a size between two heights.
    pub fn baseline(size: f64, y: f64, height: f64) -> f64 {
        y + (height - size) / 2.0 + ABOVE * size
    }
}

/// How a line through points looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pen {
    /// A line of a scale, behind everything.
    Grid,
    Limit,
    /// The tip of something in the colour of [`Role::Rest`] that extends further.
    Arrow,
    /// One of several series, by its place; in the colours of [`Role::Category`].
    Series(u8),
}

/// A line through points.
#[derive(Clone, Debug, PartialEq)]
pub struct Stroke {
    pub points: Vec<(f64, f64)>,
    pub pen: Pen,
    /// The radius of a ring around each point, px; 0 for none.
    pub ring: f64,
}

/// A rectangle of the picture with what is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub area: Rect,
    pub role: Role,
    /// Its id in the SVG, unique in the picture: `node-3`.
    pub id: Option<String>,
    /// The text that a viewer shows when the pointer rests on it.
    pub tip: Option<String>,
    pub labels: Vec<Label>,
    pub children: Vec<Frame>,
    /// Lines over what is inside; their points lie inside, and they may cross.
    pub strokes: Vec<Stroke>,
}

impl Frame {
    /// A frame of a size, its corner in the origin.
    pub const fn new(role: Role, width: f64, height: f64) -> Self {
        let area = Rect::sized(width, height);
        Self {
            area,
            role,
            id: None,
            tip: None,
            labels: Vec::new(),
            children: Vec::new(),
            strokes: Vec::new(),
        }
    }

    /// The frame with everything in it, moved.
    #[must_use]
    pub fn moved(mut self, dx: f64, dy: f64) -> Self {
        self.shift(dx, dy);
        self
    }

    fn shift(&mut self, dx: f64, dy: f64) {
        self.area.x += dx;
        self.area.y += dy;
        for label in &mut self.labels {
            label.x += dx;
            label.y += dy;
        }
        for point in self.strokes.iter_mut().flat_map(|stroke| &mut stroke.points) {
            *point = (point.0 + dx, point.1 + dy);
        }
        self.children.iter_mut().for_each(|child| child.shift(dx, dy));
    }
}

/// Fills a frame from top to bottom.
pub(crate) struct Stack {
    frame: Frame,
    pad: f64,
    y: f64,
}

impl Stack {
    /// An empty frame of a width, with this much room left free on all sides.
    pub(crate) const fn new(role: Role, width: f64, pad: f64) -> Self {
        Self { frame: Frame::new(role, width, 0.0), pad, y: pad }
    }

    /// The width there is for content.
    pub(crate) fn width(&self) -> f64 {
        self.frame.area.width - 2.0 * self.pad
    }

    /// Leaves room free.
    pub(crate) const fn gap(&mut self, height: f64) {
        self.y += height;
    }

    /// Adds text, in at most `most` lines. Like every text of a picture it comes in as it is: what a viewer
    /// would obey is made visible here.
    pub(crate) fn text(&mut self, text: &str, font: Font, tone: Tone, most: usize) {
        for line in font.wrap(text, self.width(), most) {
            let baseline = Label::baseline(font.size, self.y, line_height(font));
            self.label(&line, font, tone, Anchor::Start, baseline);
            self.y += line_height(font);
        }
    }

    /// Adds a line with a text on the left and a smaller one on the right, both on one baseline;
    /// on two lines where they do not fit on one.
    pub(crate) fn pair(&mut self, left: (&str, Font, Tone), right: (&str, Font, Tone)) {
        let width = |(text, font, _): (&str, Font, Tone)| font.width(&printable(text));
        if width(left) + width(right) + 8.0 > self.width() {
            self.text(left.0, left.1, left.2, 1);
            self.text(right.0, right.1, right.2, 1);
            return;
        }
        let baseline = Label::baseline(left.1.size, self.y, line_height(left.1));
        self.label(left.0, left.1, left.2, Anchor::Start, baseline);
        self.label(right.0, right.1, right.2, Anchor::End, baseline);
        self.y += line_height(left.1).max(line_height(right.1));
    }

    fn label(&mut self, text: &str, font: Font, tone: Tone, anchor: Anchor, baseline: f64) {
        let x = if anchor == Anchor::End { self.frame.area.width - self.pad } else { self.pad };
        if !text.is_empty() {
            let label = Label::new(text, font, x, (0.0, 0.0)).anchored(anchor).toned(tone);
            self.frame.labels.push(Label { y: baseline, ..label });
        }
    }

    /// Adds a frame below what is there.
    pub(crate) fn frame(&mut self, frame: Frame) {
        let height = frame.area.height;
        self.frame.children.push(frame.moved(self.pad, self.y));
        self.y += height;
    }

    /// Adds frames side by side, going on below where the width ends.
    pub(crate) fn flow(&mut self, frames: Vec<Frame>, gap: f64) {
        let (mut x, mut row) = (0.0, 0.0f64);
        for frame in frames {
            if x > 0.0 && x + frame.area.width > self.width() {
                self.y += row + gap;
                (x, row) = (0.0, 0.0);
            }
            row = row.max(frame.area.height);
            let step = frame.area.width + gap;
            self.frame.children.push(frame.moved(self.pad + x, self.y));
            x += step;
        }
        self.y += row;
    }

    /// The frame, as high as what is in it.
    pub(crate) fn finish(mut self) -> Frame {
        self.frame.area.height = self.y + self.pad;
        self.frame
    }
}

/// The distance between the baselines of two lines.
pub(crate) fn line_height(font: Font) -> f64 {
    (font.size * 1.32).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_viewer_would_obey_is_visible_however_text_comes_in() {
        const FONT: Font = Font::regular(10.0);
        let foreign = "a\u{202e}b\u{1b}[2J";
        let mut stack = Stack::new(Role::Page, 400.0, 10.0);
        stack.text(foreign, FONT, Tone::Plain, 2);
        stack.pair((foreign, FONT, Tone::Plain), ("beside", FONT, Tone::Faint));
        stack.pair((&foreign.repeat(9), FONT, Tone::Plain), (foreign, FONT, Tone::Faint));
        let mut frame = stack.finish();
        frame.labels.push(Label::new(foreign, FONT, 10.0, (0.0, 10.0)));
        assert_eq!(frame.labels.len(), 6);
        for label in frame.labels.iter().filter(|label| label.text != "beside") {
            assert!(label.text.starts_with("a\\u{202e}b\\x1b[2J"), "{}", label.text);
            assert!(frame.area.holds(&label.area()), "{label:?}");
        }
    }
}
