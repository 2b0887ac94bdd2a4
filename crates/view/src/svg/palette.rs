//! Colours, for light and for dark viewers: of surfaces and texts, of the scale, of categories.

use std::collections::BTreeSet;

use crate::svg::font::{Font, STACK};
use crate::svg::frame::{Frame, Pen, Role, Tone};

/// The numbers of CPUs; in the style sheet, because there can be a thousand of them.
pub(crate) const ON_THREAD: Font = Font::regular(9.5);

/// Which colours a picture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Theme {
    /// Light, and dark where the viewer asks for it (`prefers-color-scheme`).
    #[default]
    Auto,
    Light,
    Dark,
}

/// A rule of the style sheet: class, then fill and stroke in light and in dark.
type Rule = (&'static str, [&'static str; 2], [&'static str; 2]);

const NONE: &str = "none";

/// Surfaces and texts; the scale, the categories and the ink on the scale have tables of
/// their own below.
const RULES: [Rule; 18] = [
    ("page", ["#ffffff", NONE], ["#14181d", NONE]),
    ("pkg", ["#f3f5f8", "#cdd5de"], ["#1b2128", "#3a4551"]),
    ("node", ["#ffffff", "#9db0c4"], ["#222a33", "#5b6f84"]),
    ("mem", ["#fff9ec", "#dcb35a"], ["#2b2619", "#8f7434"]),
    ("llc", ["#eaf1f9", "#c3d6ea"], ["#1d3146", "#34557a"]),
    ("cpu", ["#3f76ab", NONE], ["#5b97d0", NONE]),
    ("slow", ["#68737f", NONE], ["#7d8a97", NONE]),
    ("bar", ["#e3ece6", "#a9c4b2"], ["#24392d", "#4d7a5f"]),
    ("used", ["#5fa37c", NONE], ["#4f8f6a", NONE]),
    ("dev", ["#eeeef0", "#c2c4cb"], ["#2c3037", "#565b66"]),
    ("gpu", ["#eee8fa", "#b9a5e0"], ["#2e2745", "#6d58a3"]),
    ("net", ["#e2f3f1", "#92c9c2"], ["#1b3532", "#3d7a73"]),
    ("disk", ["#fbeee4", "#e3b78f"], ["#3a2a1c", "#8f6439"]),
    ("no", ["#ffffff", "#cdd5de"], ["#14181d", "#3a4551"]),
    ("t", ["#1d2733", NONE], ["#e4e9ee", NONE]),
    ("f", ["#566575", NONE], ["#9fadbb", NONE]),
    ("n", ["#704200", NONE], ["#e3b85c", NONE]),
    ("w", ["#ffffff", NONE], ["#0d1218", NONE]),
];

/// A colour of a table: in light and in dark.
type Pair = [&'static str; 2];

/// The scale of distances, latencies and bandwidths, best first. It leaves the colour of the page step by
/// step: darker on a light page, lighter on a dark one. Neighbours also differ for readers who see no red or
/// no green, see the tests.
const STEPS: [Pair; Role::FARTHEST as usize + 1] = [
    ["#eff4d9", "#1c3060"],
    ["#c3db8c", "#2f5f9c"],
    ["#7cc5b0", "#4795b8"],
    ["#3b97be", "#7cc7ae"],
    ["#2a63a6", "#cde392"],
    ["#142a62", "#fcfde6"],
];
const STEP_CLASSES: [&str; STEPS.len()] = ["d0", "d1", "d2", "d3", "d4", "d5"];

/// The ink of numbers on each step.
const INK: Pair = ["#0b0f14", "#ffffff"];
const INKS: [Pair; STEPS.len()] = {
    let [dark, light] = INK;
    [[dark, light], [dark, light], [dark, dark], [dark, dark], [light, dark], [light, dark]]
};
const INK_CLASSES: [&str; STEPS.len()] = ["s0", "s1", "s2", "s3", "s4", "s5"];

/// Programs, curves, numbers of threads: colours without an order. All differ from each other, from the
/// colour of the rest and from free memory, also for readers who see no red or no green.
const CATEGORIES: [Pair; Role::CATEGORIES as usize] = [
    ["#4f95ec", "#4d68e1"],
    ["#d47f02", "#cfa500"],
    ["#44388d", "#bae7ff"],
    ["#4b8461", "#5e936b"],
    ["#a04514", "#be5108"],
    ["#646e97", "#89a4e6"],
    ["#6b2c28", "#cdf49d"],
    ["#524955", "#c0b3b0"],
];
const FILLED: [&str; CATEGORIES.len()] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
const OUTLINED: [&str; CATEGORIES.len()] = ["o0", "o1", "o2", "o3", "o4", "o5", "o6", "o7"];
const CURVES: [&str; CATEGORIES.len()] = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"];
/// The colour of everything else.
const REST: Rule = ("rest", ["#8a8f96", NONE], ["#757d86", NONE]);

/// Lines of a scale, and limits.
const GRID: (&str, Pair) = ("kg", ["#dde3e9", "#333d47"]);
const LIMIT: (&str, Pair) = ("kl", ["#6f7c89", "#8d9aa7"]);
/// Tips of what is in the colour of the rest.
const ARROW: (&str, Pair) = ("kr", [REST.1[0], REST.2[0]]);

/// The class of a role; `None` for what is not painted.
pub(crate) const fn role_class(role: Role) -> Option<&'static str> {
    Some(match role {
        Role::Group | Role::Pile => return None,
        Role::Page => "page",
        Role::Package => "pkg",
        Role::Node => "node",
        Role::MemoryNode => "mem",
        Role::Cache => "llc",
        Role::Thread => "cpu",
        Role::SlowThread => "slow",
        Role::Memory => "bar",
        Role::Used => "used",
        Role::Compute => "gpu",
        Role::Network => "net",
        Role::Disk => "disk",
        Role::OtherDevice => "dev",
        Role::Distance(step) => STEP_CLASSES[at_most(step, Role::FARTHEST)],
        Role::NoDistance => "no",
        Role::Category(at) => FILLED[(at % Role::CATEGORIES) as usize],
        Role::OutlinedCategory(at) => OUTLINED[(at % Role::CATEGORIES) as usize],
        Role::Rest => REST.0,
    })
}

const fn at_most(step: u8, most: u8) -> usize {
    if step < most { step as usize } else { most as usize }
}

/// The class of a tone.
pub(crate) const fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "t",
        Tone::Faint => "f",
        Tone::Notable => "n",
        Tone::OnThread => "w",
        Tone::OnStep(step) => INK_CLASSES[at_most(step, Role::FARTHEST)],
    }
}

/// The class of a pen.
pub(crate) const fn pen_class(pen: Pen) -> &'static str {
    match pen {
        Pen::Grid => GRID.0,
        Pen::Limit => LIMIT.0,
        Pen::Arrow => ARROW.0,
        Pen::Series(at) => CURVES[(at % Role::CATEGORIES) as usize],
    }
}

/// The classes that occur in a picture.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    of_shapes: BTreeSet<&'static str>,
    of_lines: BTreeSet<&'static str>,
}

impl Classes {
    /// Those of a frame with everything in it.
    pub(crate) fn from_frame(frame: &Frame) -> Self {
        let mut classes = Self::default();
        classes.add(frame);
        classes
    }

    fn add(&mut self, frame: &Frame) {
        self.of_shapes.extend(role_class(frame.role));
        self.of_shapes.extend(frame.labels.iter().map(|label| tone_class(label.tone)));
        self.of_lines.extend(frame.strokes.iter().map(|stroke| pen_class(stroke.pen)));
        frame.children.iter().for_each(|child| self.add(child));
    }
}

/// Every rule of shapes and texts.
fn shapes() -> impl Iterator<Item = Rule> {
    let plain = |(class, [light, dark]): (&&'static str, &Pair)| (*class, [*light, NONE], [*dark, NONE]);
    let [page_light, page_dark] = [RULES[0].1[0], RULES[0].2[0]];
    let outlined = move |(class, [light, dark]): (&&'static str, &Pair)| {
        (*class, [page_light, *light], [page_dark, *dark])
    };
    let steps = STEP_CLASSES.iter().zip(&STEPS).chain(INK_CLASSES.iter().zip(&INKS));
    let filled = FILLED.iter().zip(&CATEGORIES);
    RULES
        .into_iter()
        .chain([REST])
        .chain(steps.chain(filled).map(plain))
        .chain(OUTLINED.iter().zip(&CATEGORIES).map(outlined))
}

/// Every rule of lines.
fn lines() -> impl Iterator<Item = (&'static str, Pair)> {
    let curves = CURVES.iter().zip(&CATEGORIES).map(|(class, colours)| (*class, *colours));
    [GRID, LIMIT, ARROW].into_iter().chain(curves)
}

/// The rules of the classes in a picture, in one of the themes: 0 light, 1 dark.
fn colours(classes: &Classes, theme: usize) -> String {
    let mut css = String::new();
    for (class, light, dark) in shapes().filter(|rule| classes.of_shapes.contains(rule.0)) {
        let [fill, stroke] = [light, dark][theme];
        css.push_str(&format!(".{class}{{fill:{fill}"));
        if stroke != NONE {
            css.push_str(&format!(";stroke:{stroke}"));
        }
        css.push('}');
    }
    for (class, colours) in lines().filter(|rule| classes.of_lines.contains(rule.0)) {
        css.push_str(&format!(".{class}{{stroke:{}}}", colours[theme]));
    }
    css
}

/// The style sheet of a picture: nothing that does not occur in it. On paper every theme but the dark one is
/// light.
pub(crate) fn style_sheet(theme: Theme, classes: &Classes) -> String {
    let colours = match theme {
        Theme::Light => colours(classes, 0),
        Theme::Dark => colours(classes, 1),
        Theme::Auto => format!(
            "{}@media screen and (prefers-color-scheme:dark){{{}}}",
            colours(classes, 0),
            colours(classes, 1)
        ),
    };
    let lines = if classes.of_lines.is_empty() {
        ""
    } else {
        ".k{fill:none;stroke-width:2;stroke-linejoin:round}.kg{stroke-width:1}\
         .kl{stroke-width:1;stroke-dasharray:5 4}"
    };
    format!(
        "text{{font-family:{STACK}}}path{{shape-rendering:crispEdges}}\
         .w{{font-size:{size}px;text-anchor:middle}}{lines}{colours}",
        size = ON_THREAD.size
    )
}

#[cfg(test)]
mod vision;

#[cfg(test)]
mod tests;
