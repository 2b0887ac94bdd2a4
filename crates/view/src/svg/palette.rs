//! Colours, for light and for dark viewers.

use crate::svg::font::{Font, STACK};
use crate::svg::frame::{Pen, Role, Tone};

/// The numbers of CPUs; in the style sheet, because there can be a thousand of them.
pub(crate) const ON_THREAD: Font = Font::regular(9.5);

/// Which colours a picture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Theme {
    /// Light, and dark where the viewer asks for it (`prefers-color-scheme`).
    #[default]
    Auto,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

/// A rule of the style sheet: class, then fill and stroke in light and in dark.
type Rule = (&'static str, [&'static str; 2], [&'static str; 2]);

const NONE: &str = "none";

const RULES: [Rule; 24] = [
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
    ("d0", ["#f1f4f7", NONE], ["#222931", NONE]),
    ("d1", ["#dcebf7", NONE], ["#1d3850", NONE]),
    ("d2", ["#f6efc9", NONE], ["#46421f", NONE]),
    ("d3", ["#f9ddab", NONE], ["#5a431b", NONE]),
    ("d4", ["#f5bf95", NONE], ["#6e3f22", NONE]),
    ("d5", ["#efaf9f", NONE], ["#7d332c", NONE]),
    ("no", ["#ffffff", "#cdd5de"], ["#14181d", "#3a4551"]),
    ("t", ["#1d2733", NONE], ["#e4e9ee", NONE]),
    ("f", ["#566575", NONE], ["#9fadbb", NONE]),
    ("n", ["#704200", NONE], ["#e3b85c", NONE]),
    ("w", ["#ffffff", NONE], ["#0d1218", NONE]),
];

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
        Role::Distance(0) => "d0",
        Role::Distance(1) => "d1",
        Role::Distance(2) => "d2",
        Role::Distance(3) => "d3",
        Role::Distance(4) => "d4",
        Role::Distance(_) => "d5",
        Role::NoDistance => "no",
    })
}

/// The class of a tone.
pub(crate) const fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "t",
        Tone::Faint => "f",
        Tone::Notable => "n",
        Tone::OnThread => "w",
    }
}

/// Colours of lines, in light and in dark: of the scale, of limits, and of series, which differ also for
/// those who see few colours (Okabe and Ito, "Color Universal Design", 2008, somewhat darkened or
/// lightened).
const PENS: [(&str, &str, &str); 8] = [
    ("kg", "#dde3e9", "#333d47"),
    ("kl", "#8a97a5", "#76838f"),
    ("k0", "#0072b2", "#4aa8e0"),
    ("k1", "#d55e00", "#f08a3c"),
    ("k2", "#00896a", "#35c29a"),
    ("k3", "#b0508a", "#dc8cbc"),
    ("k4", "#8a7a00", "#e0cf4a"),
    ("k5", "#4d5b69", "#a9b7c4"),
];

/// The classes of a pen.
pub(crate) fn stroke_class(pen: Pen) -> String {
    match pen {
        Pen::Grid => "k kg".to_owned(),
        Pen::Limit => "k kl".to_owned(),
        Pen::Series(at) => format!("k k{}", at % Pen::SERIES),
    }
}

/// The style sheet of lines, for pictures that have any.
pub(crate) fn stroke_sheet(theme: Theme) -> String {
    let rules = |dark: bool| {
        PENS.iter().fold(String::new(), |css, (class, light, other)| {
            css + &format!(".{class}{{stroke:{}}}", if dark { other } else { light })
        })
    };
    let colours = match theme {
        Theme::Light => rules(false),
        Theme::Dark => rules(true),
        Theme::Auto => format!("{}@media (prefers-color-scheme:dark){{{}}}", rules(false), rules(true)),
    };
    format!(
        ".k{{fill:none;stroke-width:2;stroke-linejoin:round}}.kg{{stroke-width:1}}\
         .kl{{stroke-width:1;stroke-dasharray:5 4}}{colours}"
    )
}

/// The style sheet.
pub(crate) fn style_sheet(theme: Theme) -> String {
    let rules = |colours: fn(&Rule) -> [&'static str; 2]| {
        RULES.iter().fold(String::new(), |mut css, rule| {
            let [fill, stroke] = colours(rule);
            css.push_str(&format!(".{}{{fill:{fill}", rule.0));
            if stroke != NONE {
                css.push_str(&format!(";stroke:{stroke}"));
            }
            css.push('}');
            css
        })
    };
    let (light, dark) = (rules(|rule| rule.1), rules(|rule| rule.2));
    let colours = match theme {
        Theme::Light => light,
        Theme::Dark => dark,
        Theme::Auto => format!("{light}@media (prefers-color-scheme:dark){{{dark}}}"),
    };
    format!(
        "text{{font-family:{STACK}}}path{{shape-rendering:crispEdges}}\
         .w{{font-size:{size}px;text-anchor:middle}}{colours}",
        size = ON_THREAD.size
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The luminance of a colour, from 0 to 1 (WCAG 2.2, "relative luminance").
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    /// The contrast of a tone on a role, in light and in dark.
    fn contrast(tone: Tone, role: Role) -> [f64; 2] {
        let fills = |class: &str| {
            let (_, light, dark) = RULES.iter().find(|rule| rule.0 == class).unwrap();
            [light[0], dark[0]].map(luminance)
        };
        let (text, ground) = (fills(tone_class(tone)), fills(role_class(role).unwrap()));
        [0, 1].map(|theme: usize| {
            let (text, ground) = (text[theme], ground[theme]);
            (text.max(ground) + 0.05) / (text.min(ground) + 0.05)
        })
    }

    #[test]
    fn every_text_is_legible_where_it_stands() {
        let boxes = [Role::Page, Role::Package, Role::Node, Role::MemoryNode, Role::Cache];
        let devices = [Role::Compute, Role::Network, Role::Disk, Role::OtherDevice];
        let cells = (0..=Role::FARTHEST).map(Role::Distance).chain([Role::NoDistance]);
        let on_boxes = [Tone::Plain, Tone::Faint, Tone::Notable].map(|tone| boxes.map(|role| (tone, role)));
        let on_cells = cells.flat_map(|role| [(Tone::Plain, role), (Tone::Notable, role)]);
        let on_threads = [Role::Thread, Role::SlowThread].map(|role| (Tone::OnThread, role));
        let places = on_boxes.into_iter().flatten().chain(on_cells).chain(on_threads);
        for (tone, role) in places.chain(devices.map(|role| (Tone::Plain, role))) {
            // The least that WCAG 2.2 asks for text of this size (1.4.3, level AA).
            let least = contrast(tone, role).into_iter().fold(f64::INFINITY, f64::min);
            assert!(least >= 4.5, "{tone:?} on {role:?}: {least:.2}");
        }
    }
}
