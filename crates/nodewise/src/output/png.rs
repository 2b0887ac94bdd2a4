//! An SVG picture as PNG, with the fonts of this system.

use std::sync::Arc;

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Family, Query};
use resvg::usvg::{Group, Node, Options, Tree};

use crate::failure::{Failure, INTERNAL};

/// Pixels for a unit of the picture, in each direction: its smallest texts are sharp then.
const SCALE: f32 = 2.0;
/// Most pixels of a picture: half a GiB while it is drawn.
const MOST_PIXELS: f32 = (1u32 << 27) as f32;
/// Families of fonts for texts, best first: those of the pictures' style sheet, then what distributions have in their place.
const FAMILIES: [&str; 9] = [
    "Arial",
    "Helvetica",
    "Liberation Sans",
    "DejaVu Sans",
    "Noto Sans",
    "Open Sans",
    "Adwaita Sans",
    "Cantarell",
    "FreeSans",
];

/// Finds out whether texts can be drawn.
///
/// # Errors
/// A system without fonts.
pub fn check() -> Result<(), Failure> {
    fonts().map(drop)
}

/// Draws a picture.
///
/// # Errors
/// A system without fonts, or with none for the texts; a picture that is too large.
pub fn png(svg: &str) -> Result<Vec<u8>, Failure> {
    draw(svg, fonts()?)
}

/// The fonts of this system, with one of them for texts.
fn fonts() -> Result<Database, Failure> {
    let mut fonts = Database::new();
    fonts.load_system_fonts();
    let has =
        |name: &&str| fonts.query(&Query { families: &[Family::Name(name)], ..Query::default() }).is_some();
    let first = || fonts.faces().find_map(|face| face.families.first()).map(|(name, _)| name.clone());
    let family = FAMILIES.iter().find(|name| has(name)).map(|name| (*name).to_owned()).or_else(first);
    let family = family.ok_or_else(|| {
        Failure::cannot(
            "PNG needs a font, and this system has none: install DejaVu Sans (Debian: fonts-dejavu-core, Fedora: \
             dejavu-sans-fonts), or use --svg FILE",
        )
    })?;
    fonts.set_sans_serif_family(family.as_str());
    // The family that the library takes where no other has been found.
    fonts.set_serif_family(family);
    Ok(fonts)
}

fn draw(svg: &str, fonts: Database) -> Result<Vec<u8>, Failure> {
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    let tree = Tree::from_str(svg, &options)
        .map_err(|error| Failure::new(INTERNAL, format_args!("a picture cannot be read back: {error}")))?;
    let mut drawn = Drawn::default();
    drawn.add(tree.root());
    drawn.check(svg.matches("<text").count())?;
    let (width, height) = ((tree.size().width() * SCALE).ceil(), (tree.size().height() * SCALE).ceil());
    let pixels = Some(()).filter(|()| width * height <= MOST_PIXELS);
    let mut pixels = pixels.and_then(|()| Pixmap::new(width as u32, height as u32)).ok_or_else(|| {
        Failure::cannot(format_args!(
            "a picture of {width} x {height} pixels is too large for PNG: use --svg FILE"
        ))
    })?;
    // Where the last pixels of a page are not whole.
    pixels.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels
        .encode_png()
        .map_err(|error| Failure::new(INTERNAL, format_args!("a picture cannot be written as PNG: {error}")))
}

/// The texts that have found a font: the library leaves out others without a word.
#[derive(Debug, Default)]
struct Drawn {
    texts: usize,
    glyphs: usize,
    /// Glyphs whose characters no font has; a box is drawn for each.
    boxes: usize,
}

impl Drawn {
    fn add(&mut self, group: &Group) {
        for node in group.children() {
            match node {
                Node::Group(group) => self.add(group),
                Node::Text(text) => {
                    self.texts += 1;
                    for glyph in text.layouted().iter().flat_map(|span| &span.positioned_glyphs) {
                        self.glyphs += 1;
                        self.boxes += usize::from(glyph.id.0 == 0);
                    }
                }
                Node::Path(_) | Node::Image(_) => {}
            }
        }
    }

    /// Compares them with the texts of the picture.
    fn check(&self, texts: usize) -> Result<(), Failure> {
        if self.texts == texts && (texts == 0 || self.boxes * 2 < self.glyphs) {
            return Ok(());
        }
        Err(Failure::cannot(format_args!(
            "the fonts of this system draw {} of {texts} texts, with {} of {} letters: install DejaVu Sans, or use \
             --svg FILE",
            self.texts,
            self.glyphs - self.boxes,
            self.glyphs
        )))
    }
}

#[cfg(test)]
mod tests {
    use nodewise_machine::spec;
    use nodewise_view::svg::{Caches, Frame, Label, Theme, layout, machine_svg};

    use super::*;

    const MACHINE: &str =
        "2x(2x(4c2t 64G l3=32M/4c)) (128G tier=22); dist=11,21; dev=net:eth0@1; dev=gpu:0@2";

    fn machine() -> nodewise_machine::Machine {
        spec::machine(MACHINE).unwrap()
    }

    fn pixels(svg: &str) -> Pixmap {
        Pixmap::decode_png(&png(svg).unwrap()).unwrap()
    }

    fn labels<'f>(frame: &'f Frame, into: &mut Vec<&'f Label>) {
        into.extend(&frame.labels);
        frame.children.iter().for_each(|child| labels(child, into));
    }

    #[test]
    fn every_label_is_drawn_at_its_place_in_two_pixels_for_a_unit() {
        let svg = machine_svg(&machine(), Caches::All, Theme::Light);
        let without: String = svg
            .split("<text")
            .enumerate()
            .map(|(at, part)| if at == 0 { part } else { part.split_once("</text>").unwrap().1 })
            .collect();
        let (drawn, bare) = (pixels(&svg), pixels(&without));
        let page = layout(&machine(), Caches::All);
        let size = |pixels: &Pixmap| (pixels.width(), pixels.height());
        let expected = |length: f64| (length * 2.0).ceil() as u32;
        assert_eq!(size(&drawn), (expected(page.area.width), expected(page.area.height)));
        assert_eq!(size(&bare), size(&drawn));
        let mut all = Vec::new();
        labels(&page, &mut all);
        assert!(all.len() > 20, "{}", all.len());
        for label in all {
            let area = label.area();
            let (left, right) = ((area.x * 2.0) as u32, (area.right() * 2.0) as u32);
            let (top, bottom) = ((area.y * 2.0) as u32, (area.bottom() * 2.0) as u32);
            let places = (top..bottom).flat_map(|y| (left..right).map(move |x| (x, y)));
            let inked = places.filter(|(x, y)| drawn.pixel(*x, *y) != bare.pixel(*x, *y)).count();
            let all = ((right - left) * (bottom - top)) as usize;
            assert!(inked * 25 > all, "{inked} of {all} pixels: {label:?}");
        }
    }

    #[test]
    fn texts_never_vanish_in_silence() {
        let svg = machine_svg(&machine(), Caches::LastLevel, Theme::Light);
        let failure = draw(&svg, Database::new()).unwrap_err();
        assert!(failure.message.contains("draw 0 of ") && failure.message.contains("--svg"), "{failure:?}");
        let drawn = |texts, glyphs, boxes| Drawn { texts, glyphs, boxes };
        assert!(drawn(2, 9, 1).check(2).is_ok());
        assert!(drawn(0, 0, 0).check(0).is_ok());
        assert!(drawn(2, 9, 8).check(2).is_err());
        assert!(drawn(1, 9, 0).check(2).is_err());
    }

    #[test]
    fn a_picture_that_memory_cannot_hold_is_refused() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40000\" height=\"40000\"/>";
        let failure = png(svg).unwrap_err();
        assert!(failure.message.contains("80000 x 80000 pixels"), "{failure:?}");
    }
}
