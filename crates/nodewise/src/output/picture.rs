//! Pictures in files that options name: SVG, and PNG drawn from it.

use nodewise_view::svg::Theme;

use super::Destination;
#[cfg(any(feature = "png", test))]
use super::png;
use crate::failure::Failure;

/// The files that `--svg` and `--png` name.
#[derive(Clone, Copy, Debug)]
pub struct Pictures<'a> {
    svg: Option<&'a Destination>,
    png: Option<&'a Destination>,
}

impl<'a> Pictures<'a> {
    /// Those of the two options.
    pub const fn new(svg: &'a Option<Destination>, png: &'a Option<Destination>) -> Self {
        Self { svg: svg.as_ref(), png: png.as_ref() }
    }

    /// Whether there is one at all.
    pub const fn are_wanted(&self) -> bool {
        self.svg.is_some() || self.png.is_some()
    }

    /// Finds out whether they can be drawn and written, without changing anything.
    ///
    /// # Errors
    /// A file that cannot be written; PNG without the feature or without a font.
    pub fn check(&self) -> Result<(), Failure> {
        if self.png.is_some() {
            png::check()?;
        }
        self.svg.into_iter().chain(self.png).try_for_each(Destination::check)
    }

    /// Draws a picture into them.
    ///
    /// # Errors
    /// The first that cannot be drawn or written; the other is written anyway.
    pub fn draw(&self, svg: impl Fn(Theme) -> String) -> Result<(), Failure> {
        let drawn = self.svg.map_or(Ok(()), |file| file.write(svg(Theme::Auto).as_bytes()));
        // A viewer of PNG cannot choose between colours.
        let painted = self.png.map_or(Ok(()), |file| file.write(&png::png(&svg(Theme::Light))?));
        drawn.and(painted)
    }
}

/// The place of PNG in a build without it.
#[cfg(not(any(feature = "png", test)))]
mod png {
    use super::Failure;

    pub fn check() -> Result<(), Failure> {
        Err(Failure::cannot(
            "this nodewise was built without PNG: --svg FILE and `rsvg-convert -z 2 -o x.png FILE` make one, or build \
             with `cargo build --release --features png`",
        ))
    }

    pub fn png(_: &str) -> Result<Vec<u8>, Failure> {
        check().map(|()| Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use nodewise_machine::spec;
    use nodewise_view::svg::{Caches, machine_svg};

    use super::*;

    #[test]
    fn one_picture_goes_into_both_files() {
        let folder = tempfile::tempdir().unwrap();
        let [svg, png] = ["a.svg", "a.png"].map(|name| folder.path().join(name));
        let [to_svg, to_png] =
            [&svg, &png].map(|path| Some(Destination::from(path.clone().into_os_string())));
        let pictures = Pictures::new(&to_svg, &to_png);
        pictures.check().unwrap();
        let machine = spec::machine("2x(2c 1G); dist=21").unwrap();
        pictures.draw(|theme| machine_svg(&machine, Caches::LastLevel, theme)).unwrap();
        assert!(std::fs::read_to_string(svg).unwrap().starts_with("<svg "));
        let drawn = std::fs::read(png).unwrap();
        assert!(drawn.starts_with(b"\x89PNG\r\n\x1a\n") && drawn.len() > 5000, "{} bytes", drawn.len());
    }
}
