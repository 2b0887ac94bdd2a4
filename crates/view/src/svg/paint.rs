//! [`Frame`] to SVG.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nodewise_machine::printable::printable;

use crate::svg::font::Weight;
use crate::svg::frame::{Anchor, Frame, Label, Rect, Role, Stroke, Tone};
use crate::svg::palette::{Classes, Theme, pen_class, role_class, style_sheet, tone_class};
use crate::svg::writer::{Writer, px};

/// Writes a laid-out page as an SVG document. Title and description come in as they are.
pub(crate) fn paint(page: &Frame, title: &str, description: &str, theme: Theme) -> String {
    let (width, height) = (px(page.area.width), px(page.area.height));
    let mut writer = Writer::default();
    writer.open(
        "svg",
        &[
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("viewBox", &format!("0 0 {width} {height}")),
            ("width", &width),
            ("height", &height),
            ("role", "img"),
            ("aria-labelledby", "title desc"),
        ],
    );
    writer.line();
    writer.text("title", &[("id", "title")], &printable(title));
    writer.text("desc", &[("id", "desc")], &printable(description));
    writer.text("style", &[], &style_sheet(theme, &Classes::from_frame(page)));
    writer.line();
    frame(page, &mut writer);
    writer.close();
    writer.line();
    writer.finish()
}

fn frame(frame_: &Frame, writer: &mut Writer) {
    let grouped = frame_.id.is_some() || frame_.tip.is_some();
    if grouped {
        writer.open("g", &[("id", frame_.id.as_deref().unwrap_or_default())]);
        if let Some(tip) = &frame_.tip {
            writer.text("title", &[], &printable(tip));
        }
    }
    if frame_.role == Role::Pile {
        pile(frame_, writer);
    }
    if let Some(class) = role_class(frame_.role) {
        rectangle(&frame_.area, class, radius(frame_.role), writer);
    }
    // Cells that differ in nothing but their place become one path per colour.
    let (cells, others): (Vec<&Frame>, Vec<&Frame>) =
        frame_.children.iter().partition(|child| is_cell(child));
    let mut of_class: BTreeMap<&str, Vec<&Rect>> = BTreeMap::new();
    for cell in &cells {
        of_class.entry(role_class(cell.role).unwrap_or_default()).or_default().push(&cell.area);
    }
    for (class, areas) in &of_class {
        path(areas, class, writer);
    }
    cells.iter().flat_map(|cell| &cell.labels).for_each(|text| label(text, writer));
    others.into_iter().for_each(|child| frame(child, writer));
    frame_.strokes.iter().for_each(|line| stroke(line, writer));
    frame_.labels.iter().for_each(|text| label(text, writer));
    if grouped {
        writer.close();
        writer.line();
    }
}

fn stroke(stroke: &Stroke, writer: &mut Writer) {
    let class = format!("k {}", pen_class(stroke.pen));
    if stroke.points.len() > 1 {
        let points: Vec<String> =
            stroke.points.iter().map(|(x, y)| format!("{},{}", px(*x), px(*y))).collect();
        writer.empty("polyline", &[("class", &class), ("points", &points.join(" "))]);
    }
    if stroke.ring > 0.0 {
        for (x, y) in &stroke.points {
            let attributes =
                [("class", class.as_str()), ("cx", &px(*x)), ("cy", &px(*y)), ("r", &px(stroke.ring))];
            writer.empty("circle", &attributes);
        }
    }
}

/// Two copies of the frame on top, each a little farther down and to the right.
fn pile(pile: &Frame, writer: &mut Writer) {
    for top in &pile.children {
        let Some(class) = role_class(top.role) else { continue };
        let deep = pile.area.right() - top.area.right();
        for offset in [deep, deep / 2.0] {
            let area = Rect { x: top.area.x + offset, y: top.area.y + offset, ..top.area };
            rectangle(&area, class, radius(top.role), writer);
        }
    }
}

fn is_cell(frame: &Frame) -> bool {
    matches!(frame.role, Role::Thread | Role::SlowThread | Role::Distance(_) | Role::NoDistance)
        && frame.children.is_empty()
        && frame.id.is_none()
        && frame.tip.is_none()
}

fn path(areas: &[&Rect], class: &str, writer: &mut Writer) {
    let path = areas.iter().fold(String::new(), |mut path, area| {
        let (width, height) = (px(area.width), px(area.height));
        let _ = write!(path, "M{} {}h{width}v{height}h-{width}z", px(area.x), px(area.y));
        path
    });
    writer.empty("path", &[("class", class), ("d", &path)]);
}

const fn radius(role: Role) -> &'static str {
    match role {
        Role::Package => "8",
        Role::Node | Role::MemoryNode => "6",
        Role::Cache => "4",
        Role::Compute | Role::Network | Role::Disk | Role::OtherDevice => "3",
        Role::Memory => "2",
        _ => "",
    }
}

fn rectangle(area: &Rect, class: &str, radius: &str, writer: &mut Writer) {
    let (x, y) = (px(area.x), px(area.y));
    let (width, height) = (px(area.width), px(area.height));
    let attributes =
        [("class", class), ("x", &x), ("y", &y), ("width", &width), ("height", &height), ("rx", radius)];
    writer.empty("rect", &attributes);
}

fn label(label: &Label, writer: &mut Writer) {
    let (x, y) = (px(label.x), px(label.y));
    if label.tone == Tone::OnThread {
        // There can be a thousand of these: what they share is in the style sheet.
        writer.text("text", &[("class", tone_class(label.tone)), ("x", &x), ("y", &y)], &label.text);
        return;
    }
    let size = px(label.font.size);
    let anchor = match label.anchor {
        Anchor::Start => "",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    let weight = match label.font.weight {
        Weight::Regular => "",
        Weight::Bold => "bold",
    };
    writer.text(
        "text",
        &[
            ("class", tone_class(label.tone)),
            ("x", &x),
            ("y", &y),
            ("font-size", &size),
            ("font-weight", weight),
            ("text-anchor", anchor),
        ],
        &label.text,
    );
}
