//! A finding of any survey: what its instrument shows, or how far that can be believed.

use super::Noise;

/// A finding of a survey. `F` has the instrument's own kinds; noise is the same for all.
#[derive(Clone, Debug, PartialEq)]
pub enum SurveyFinding<F> {
    Shown(F),
    /// How far all of it can be believed.
    Noise(Noise),
}

impl<F> SurveyFinding<F> {
    /// Whether the finding says that figures may not repeat, here and now. An early end is not a disturbance.
    pub const fn is_noise(&self) -> bool {
        matches!(self, Self::Noise(noise) if noise.is_disturbance())
    }
}
