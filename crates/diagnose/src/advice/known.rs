//! A value with its quality, or the reason why it is not known.

/// How good a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quality {
    /// It follows from signs, or from the program's name.
    Likely,
    /// It was seen in a window, or drawn.
    Sampled,
    /// The program's settings say it.
    Declared,
    Certain,
}

impl Quality {
    /// Its word, in text and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Likely => "likely",
            Self::Sampled => "sampled",
            Self::Declared => "declared",
            Self::Certain => "certain",
        }
    }
}

/// A value with its quality, or the reason why it is not known. Unknown is never 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Known<T> {
    Value { value: T, quality: Quality },
    Unknown { reason: String },
}

impl<T> Known<T> {
    /// A value of this quality.
    pub const fn new(value: T, quality: Quality) -> Self {
        Self::Value { value, quality }
    }

    /// A value that is certain.
    pub const fn certain(value: T) -> Self {
        Self::new(value, Quality::Certain)
    }

    /// A value that is not known.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown { reason: reason.into() }
    }

    /// The value, or the reason why there is none.
    pub fn or_unknown(value: Option<T>, quality: Quality, reason: &str) -> Self {
        value.map_or_else(|| Self::unknown(reason), |value| Self::new(value, quality))
    }

    /// The value.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Value { value, .. } => Some(value),
            Self::Unknown { .. } => None,
        }
    }

    /// Its quality.
    pub const fn quality(&self) -> Option<Quality> {
        match self {
            Self::Value { quality, .. } => Some(*quality),
            Self::Unknown { .. } => None,
        }
    }
}
