//! Oddities in a file.

use nodewise_machine::printable::printable;
use nodewise_machine::{Oddity, OddityKind};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

struct KindWord(OddityKind);

impl Serialize for KindWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<'de> Deserialize<'de> for KindWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        OddityKind::from_word(&word)
            .map(Self)
            .ok_or_else(|| D::Error::custom("unknown kind of oddity, expected one as \"cpu-offline\""))
    }
}

#[derive(Deserialize, Serialize)]
pub(super) struct OddityFile {
    kind: KindWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    text: String,
}

impl From<&Oddity> for OddityFile {
    fn from(oddity: &Oddity) -> Self {
        let Oddity { kind, path, line, text } = oddity.clone();
        Self { kind: KindWord(kind), path, line, text }
    }
}

impl From<OddityFile> for Oddity {
    /// An oddity's words go to a terminal as they are, so those of a foreign file are made fit here.
    fn from(oddity: OddityFile) -> Self {
        Self {
            kind: oddity.kind.0,
            path: oddity.path.map(|path| printable(&path).into_owned()),
            line: oddity.line,
            text: printable(&oddity.text).into_owned(),
        }
    }
}
