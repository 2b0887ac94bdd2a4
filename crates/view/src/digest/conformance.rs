//! Scripts that were played in a kernel and in the model: what was the same, and what differs.

/// A check of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCheck {
    /// The release that booted, else that of the image; `None` where neither names one.
    pub kernel: Option<String>,
    /// The image file.
    pub image: String,
    /// The release whose rules the model follows, and the nearest that the model was compared with.
    pub model: String,
    pub compared: String,
    /// The kinds of scripts, in the order in which they are played.
    pub kinds: Vec<&'static str>,
    /// The number of the first drawn machine; `None` for a machine that was named.
    pub seed: Option<u64>,
    pub machines: Vec<CheckedMachine>,
}

/// A machine, and its scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedMachine {
    pub spec: String,
    /// Words for its kernel's command line, and for QEMU.
    pub append: Option<String>,
    pub qemu: Option<String>,
    /// The engine of its guest, `kvm` or `tcg`; `None` where none started.
    pub engine: Option<&'static str>,
    /// By number.
    pub scripts: Vec<CheckedScript>,
    /// The time that the guest took, boot included.
    pub seconds: u64,
}

/// A script of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptName {
    /// A word such as `thp`.
    pub kind: &'static str,
    pub number: u64,
}

/// A script that was to be played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedScript {
    pub name: ScriptName,
    pub outcome: ScriptOutcome,
    pub inexact: Inexact,
}

/// The parts of a script that the model does not say exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Inexact {
    /// Steps that were left out, for the model does not know their outcome.
    pub left_out: u64,
    /// Figures that the model states as an interval.
    pub intervals: u64,
    /// The sum of their widths and the largest, in thousandths of the limits that they belong to.
    pub widths: u64,
    pub widest: u64,
}

impl Inexact {
    /// The mean width, in thousandths; `None` without intervals.
    pub const fn mean(self) -> Option<u64> {
        self.widths.checked_div(self.intervals)
    }
}

/// The outcome of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptOutcome {
    Same,
    Differs(Box<ScriptDifference>),
    /// Why it could not be played.
    Failed(String),
}

/// A script that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptDifference {
    /// A word such as `pages`.
    pub aspect: &'static str,
    pub what: String,
    pub kernel: String,
    pub model: String,
    /// The calls that are left, in words.
    pub calls: Vec<String>,
    /// The number of calls that are left, and of the drawn script.
    pub length: usize,
    pub drawn: usize,
    /// How many of `plays` further plays differed too.
    pub repeated: u32,
    pub plays: u32,
    /// A C program that repeats it, and its file where it was written to one; empty for a script of a control group.
    pub program: String,
    pub file: Option<String>,
}

impl KernelCheck {
    /// The scripts of a kind on all machines, or all scripts.
    fn scripts(&self, kind: Option<&str>) -> impl Iterator<Item = &CheckedScript> {
        let all = self.machines.iter().flat_map(|machine| &machine.scripts);
        all.filter(move |script| kind.is_none_or(|kind| script.name.kind == kind))
    }

    /// The parts of the scripts of a kind, or of all, that the model does not say exactly.
    pub fn inexact(&self, kind: Option<&str>) -> Inexact {
        self.scripts(kind).map(|script| script.inexact).fold(Inexact::default(), |sum, own| Inexact {
            left_out: sum.left_out + own.left_out,
            intervals: sum.intervals + own.intervals,
            widths: sum.widths + own.widths,
            widest: sum.widest.max(own.widest),
        })
    }

    /// The number of scripts that passed, that differ, and that could not be played.
    pub fn counts(&self) -> (usize, usize, usize) {
        self.counts_of(None)
    }

    /// The same of one kind.
    pub fn counts_of(&self, kind: Option<&str>) -> (usize, usize, usize) {
        let count =
            |is: fn(&ScriptOutcome) -> bool| self.scripts(kind).filter(|script| is(&script.outcome)).count();
        (
            count(|outcome| matches!(outcome, ScriptOutcome::Same)),
            count(|outcome| matches!(outcome, ScriptOutcome::Differs(_))),
            count(|outcome| matches!(outcome, ScriptOutcome::Failed(_))),
        )
    }
}
