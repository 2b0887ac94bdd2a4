//! How colours are seen: by everybody, and by readers who see no red or no green.
//!
//! sRGB is IEC 61966-2-1, CIELAB that of CIE 15 with the white D65. The simulations are the matrices of
//! Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
//! Deficiency", IEEE TVCG 15 (2009), severity 1.0, on linear RGB. The difference is CIEDE2000, as in Sharma,
//! Wu and Dalal, "The CIEDE2000 Color-Difference Formula", Color Research & Application 30 (2005).

/// A kind of colour vision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vision {
    /// All three kinds of cones.
    Normal,
    Deuteranopia,
    Protanopia,
}

impl Vision {
    pub(super) const ALL: [Self; 3] = [Self::Normal, Self::Deuteranopia, Self::Protanopia];

    const fn matrix(self) -> [[f64; 3]; 3] {
        match self {
            Self::Normal => [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            Self::Deuteranopia => [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_820, 0.042_940, 0.968_881],
            ],
            Self::Protanopia => [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
        }
    }

    /// A colour of a style sheet as it is seen, in CIELAB.
    pub(super) fn lab(self, colour: &str) -> Lab {
        let linear = linear(colour);
        let seen = self.matrix().map(|row| {
            row.iter().zip(&linear).map(|(part, value)| part * value).sum::<f64>().clamp(0.0, 1.0)
        });
        Lab::from_linear_rgb(seen)
    }
}

/// The parts of a colour, linear, from 0 to 1.
pub(super) fn linear(colour: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

/// The luminance of a colour, from 0 to 1 (WCAG 2.2, "relative luminance").
pub(super) fn luminance(colour: &str) -> f64 {
    let [red, green, blue] = linear(colour);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// The contrast of two colours (WCAG 2.2, "contrast ratio").
pub(super) fn contrast(a: &str, b: &str) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// A colour in CIELAB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lab {
    pub(super) lightness: f64,
    a: f64,
    b: f64,
}

impl Lab {
    const fn new([lightness, a, b]: [f64; 3]) -> Self {
        Self { lightness, a, b }
    }

    fn from_linear_rgb([red, green, blue]: [f64; 3]) -> Self {
        let x = (0.412_456_4 * red + 0.357_576_1 * green + 0.180_437_5 * blue) / 0.950_47;
        let y = 0.212_672_9 * red + 0.715_152_2 * green + 0.072_175_0 * blue;
        let z = (0.019_333_9 * red + 0.119_192_0 * green + 0.950_304_1 * blue) / 1.088_83;
        let part = |value: f64| {
            if value > 216.0 / 24_389.0 { value.cbrt() } else { (24_389.0 / 27.0 * value + 16.0) / 116.0 }
        };
        let [x, y, z] = [x, y, z].map(part);
        Self::new([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])
    }

    /// The hue angle in degrees, from 0 to 360; 0 for greys. The first axis stretched by a factor.
    fn hue(self, stretch: f64) -> f64 {
        let (a, b) = (self.a * stretch, self.b);
        if a == 0.0 && b == 0.0 { 0.0 } else { b.atan2(a).to_degrees().rem_euclid(360.0) }
    }

    /// CIEDE2000 with all weights 1; the names and numbers are those of the paper's equations.
    pub(super) fn difference(self, other: Self) -> f64 {
        let seventh = |chroma: f64| (chroma.powi(7) / (chroma.powi(7) + 25_f64.powi(7))).sqrt();
        let mean_chroma = f64::midpoint(self.a.hypot(self.b), other.a.hypot(other.b));
        let stretch = 1.0 + 0.5 * (1.0 - seventh(mean_chroma)); // (4), (5)
        let chromas = [self, other].map(|lab| (lab.a * stretch).hypot(lab.b)); // (6)
        let hues = [self, other].map(|lab| lab.hue(stretch)); // (7)
        let grey = chromas[0] * chromas[1] == 0.0;
        let turn = match hues[1] - hues[0] {
            _ if grey => 0.0,
            turn if turn > 180.0 => turn - 360.0,
            turn if turn < -180.0 => turn + 360.0,
            turn => turn,
        }; // (10)
        let by_hue = 2.0 * (chromas[0] * chromas[1]).sqrt() * (turn / 2.0).to_radians().sin(); // (11)
        let lightness = f64::midpoint(self.lightness, other.lightness); // (12)
        let chroma = f64::midpoint(chromas[0], chromas[1]); // (13)
        let hue = match hues[0] + hues[1] {
            sum if grey => sum,
            sum if (hues[0] - hues[1]).abs() <= 180.0 => sum / 2.0,
            sum if sum < 360.0 => (sum + 360.0) / 2.0,
            sum => (sum - 360.0) / 2.0,
        }; // (14)
        let cos = |degrees: f64| degrees.to_radians().cos();
        let t = 1.0 - 0.17 * cos(hue - 30.0) + 0.24 * cos(2.0 * hue) + 0.32 * cos(3.0 * hue + 6.0)
            - 0.20 * cos(4.0 * hue - 63.0); // (15)
        let rotation = 30.0 * (-((hue - 275.0) / 25.0).powi(2)).exp(); // (16)
        let off_middle = (lightness - 50.0).powi(2);
        let of_lightness = 1.0 + 0.015 * off_middle / (20.0 + off_middle).sqrt(); // (18)
        let (of_chroma, of_hue) = (1.0 + 0.045 * chroma, 1.0 + 0.015 * chroma * t); // (19), (20)
        let rotated = -(2.0 * rotation).to_radians().sin() * 2.0 * seventh(chroma); // (17), (21)
        let lightness = (other.lightness - self.lightness) / of_lightness;
        let (chroma, hue) = ((chromas[1] - chromas[0]) / of_chroma, by_hue / of_hue);
        (lightness.powi(2) + chroma.powi(2) + hue.powi(2) + rotated * chroma * hue).max(0.0).sqrt() // (22)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_that_of_the_published_pairs() {
        // Sharma, Wu and Dalal (2005), table 1: pairs on which wrong implementations fail.
        let pairs = [
            ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
            ([50.0, 3.1571, -77.2803], [50.0, 0.0, -82.7485], 2.8615),
            ([50.0, 2.8361, -74.0200], [50.0, 0.0, -82.7485], 3.4412),
            ([50.0, -1.3802, -84.2814], [50.0, 0.0, -82.7485], 1.0000),
            ([50.0, 0.0, 0.0], [50.0, -1.0, 2.0], 2.3669),
            ([50.0, 2.4900, -0.0010], [50.0, -2.4900, 0.0009], 7.1792),
            ([50.0, 2.4900, -0.0010], [50.0, -2.4900, 0.0011], 7.2195),
            ([50.0, 2.5, 0.0], [50.0, 0.0, -2.5], 4.3065),
            ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
            ([50.0, 2.5, 0.0], [61.0, -5.0, 29.0], 22.8977),
            ([50.0, 2.5, 0.0], [56.0, -27.0, -3.0], 31.9030),
            ([50.0, 2.5, 0.0], [58.0, 24.0, 15.0], 19.4535),
            ([60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387], 1.2644),
            ([2.0776, 0.0795, -1.1350], [0.9033, -0.0636, -0.5514], 0.9082),
        ];
        for (a, b, expected) in pairs {
            for (a, b) in [(a, b), (b, a)] {
                let found = Lab::new(a).difference(Lab::new(b));
                assert!((found - expected).abs() < 1e-4, "{a:?} {b:?}: {found}, expected {expected}");
            }
        }
    }

    #[test]
    fn white_black_and_red_are_where_they_belong() {
        let lab = |colour| Vision::Normal.lab(colour);
        assert!((lab("#ffffff").lightness - 100.0).abs() < 0.01 && lab("#000000").lightness.abs() < 0.01);
        // CIELAB of sRGB's red: 53.2, 80.1, 67.2.
        assert!(lab("#ff0000").difference(Lab::new([53.24, 80.09, 67.20])) < 0.05);
        // Red and green of a traffic light: far apart, and near for those who see no green.
        let between = |vision: Vision| vision.lab("#b04a3a").difference(vision.lab("#6f7a2b"));
        assert!(between(Vision::Normal) > 30.0 && between(Vision::Deuteranopia) < 12.0);
    }
}
