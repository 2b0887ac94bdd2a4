//! The outcome of a script, and the line by which a guest reports it to its host.

use std::time::{Duration, Instant};

use crate::arena::Arena;
use crate::difference::{Aspect, Difference, Trouble};
use crate::drawer::Drawer;
use crate::kind::ScriptId;
use crate::reproducer;
use crate::script::{Call, Script};
use crate::shrink::shrunk;
use crate::tally::Tally;
use crate::trace::Trace;

/// Plays that shrinking one script may take, and its time.
const ATTEMPTS: usize = 400;
const TIME: Duration = Duration::from_secs(120);
/// How often a script is played that differs in some plays only.
const RARE: u32 = 5;
/// How often what is left is played again.
pub const REPEATS: u32 = 3;

/// A script that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub difference: Difference,
    /// The calls that are left, in words.
    pub calls: Vec<String>,
    /// The number of calls that are left, steps inside of a fork included, and that of the drawn script.
    pub length: usize,
    pub drawn: usize,
    /// How many of [`REPEATS`] further plays differed too.
    pub repeated: u32,
    /// A C program that repeats it; empty for a script of a control group.
    pub program: String,
    /// Steps that the first play left out, and its intervals.
    pub tally: Tally,
}

/// The outcome of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No step differs; some may have been left out, for the model does not know their outcome.
    Same(Tally),
    Differs(Box<Found>),
    /// It could not be played.
    Failed(String),
}

/// Whether a script that differs is shrunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shrinking {
    Fully,
    /// Only what was not played is left out.
    Not,
}

impl Outcome {
    /// Plays a script of a machine, and shrinks it when it differs.
    pub fn new(arena: &Arena, id: ScriptId, shrinking: Shrinking) -> Self {
        let script = Drawer::script(&arena.machine, id);
        match arena.play(&script) {
            (Ok(()), trace) => Self::Same(trace.tally),
            (Err(Trouble::Failed(why)), _) => Self::Failed(why),
            (Err(Trouble::Differs(difference)), trace) => {
                Self::Differs(Box::new(Found::new(arena, &script, difference, trace, shrinking)))
            }
        }
    }

    /// The line of a script.
    pub fn line(&self, id: ScriptId) -> String {
        let number = id.to_string();
        match self {
            Self::Same(tally) => fields(&["same", &number, &tally.text()]),
            Self::Failed(why) => fields(&["failed", &number, why]),
            Self::Differs(found) => {
                let Difference { aspect, what, kernel, model } = &found.difference;
                let [length, drawn] = [found.length, found.drawn].map(|count| count.to_string());
                let (repeated, tally) = (found.repeated.to_string(), found.tally.text());
                let head = [
                    "differs",
                    &number,
                    aspect.word(),
                    what,
                    kernel,
                    model,
                    &length,
                    &drawn,
                    &repeated,
                    &tally,
                ];
                let calls = found.calls.iter().map(String::as_str);
                fields(&head.into_iter().chain([found.program.as_str()]).chain(calls).collect::<Vec<_>>())
            }
        }
    }

    /// Reads such a line: the script and its outcome.
    pub fn parse(line: &str) -> Option<(ScriptId, Self)> {
        let mut fields = line.split('\t').map(unescaped);
        let (kind, id) = (fields.next()?, ScriptId::parse(&fields.next()?)?);
        let outcome = match kind.as_str() {
            "same" => Self::Same(Tally::parse(&fields.next()?)?),
            "failed" => Self::Failed(fields.next()?),
            "differs" => {
                let word = fields.next()?;
                let aspect = Aspect::ALL.into_iter().find(|aspect| aspect.word() == word)?;
                let (what, kernel, model) = (fields.next()?, fields.next()?, fields.next()?);
                let mut count = || fields.next()?.parse::<usize>().ok();
                let [length, drawn, repeated] = [count()?, count()?, count()?];
                let tally = Tally::parse(&fields.next()?)?;
                let program = fields.next()?;
                Self::Differs(Box::new(Found {
                    difference: Difference { aspect, what, kernel, model },
                    calls: fields.collect(),
                    length,
                    drawn,
                    repeated: repeated.try_into().ok()?,
                    program,
                    tally,
                }))
            }
            _ => return None,
        };
        Some((id, outcome))
    }
}

impl Found {
    fn new(arena: &Arena, script: &Script, first: Difference, trace: Trace, shrinking: Shrinking) -> Self {
        let played = script.without(trace.played..script.calls.len());
        let (aspect, tally) = (first.aspect, trace.tally);
        let end = Instant::now() + TIME;
        let differs = |script: &Script| {
            let (done, _) = arena.play(script);
            matches!(done, Err(Trouble::Differs(difference)) if difference.aspect == aspect)
        };
        let small = if shrinking == Shrinking::Fully {
            // Whose turn a page is depends on its address or its file's inode, which other plays have others of.
            let always = (0..REPEATS).all(|_| differs(&played));
            let plays = if always { 1 } else { RARE };
            let any = |script: &Script| (0..plays).any(|_| Instant::now() < end && differs(script));
            shrunk(played, ATTEMPTS, any)
        } else {
            played
        };
        let mut last = (first, trace);
        let mut repeated = 0;
        for _ in 0..REPEATS {
            if let (Err(Trouble::Differs(difference)), trace) = arena.play(&small) {
                repeated += 1;
                last = (difference, trace);
            }
        }
        let (difference, trace) = last;
        let program = if small.calls.iter().any(|call| matches!(call, Call::Group(_) | Call::Cache(_))) {
            String::new()
        } else {
            reproducer::program(&small, &trace, &arena.machine, Some(&difference))
        };
        let (length, drawn) = (small.length(), script.length());
        Self { difference, calls: small.lines(), length, drawn, repeated, program, tally }
    }
}

/// Fields in one line.
fn fields(fields: &[&str]) -> String {
    fields.iter().map(|field| escaped(field)).collect::<Vec<_>>().join("\t")
}

fn escaped(field: &str) -> String {
    field.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r")
}

fn unescaped(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut rest = field.chars();
    while let Some(c) = rest.next() {
        let meant = if c == '\\' { rest.next() } else { Some(c) };
        text.extend(match (c, meant) {
            ('\\', Some('n')) => Some('\n'),
            ('\\', Some('t')) => Some('\t'),
            ('\\', Some('r')) => Some('\r'),
            (_, meant) => meant,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::ScriptKind;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    #[test]
    fn a_line_that_is_none_is_refused() {
        for line in [
            "",
            "same",
            "same\tx",
            "same\t7",
            "same\tthp-7",
            "differs\tthp-1\tanswer",
            "other\tthp-1",
            "differs\tthp-1\tx\ta\tb\tc\t1\t2\t3\t0 0 0 0\tp",
        ] {
            assert_eq!(Outcome::parse(line), None, "{line}");
        }
        assert_eq!(
            Outcome::parse("same\tthp-7\t2 0 0 0"),
            Some((
                ScriptId { kind: ScriptKind::Thp, number: 7 },
                Outcome::Same(Tally { left_out: 2, ..Tally::default() })
            ))
        );
    }

    proptest! {
        #[test]
        fn a_line_is_read_back(
            texts: [String; 4],
            calls: Vec<String>,
            aspect in prop::sample::select(&Aspect::ALL[..]),
            kind in prop::sample::select(&ScriptKind::ALL[..]),
            number: u64,
            counts in any::<[u16; 4]>(),
        ) {
            let [what, kernel, model, program] = texts;
            let [length, drawn, repeated, left_out] = counts;
            let outcome = Outcome::Differs(Box::new(Found {
                difference: Difference { aspect, what, kernel, model },
                calls,
                length: length.into(),
                drawn: drawn.into(),
                repeated: repeated.into(),
                program,
                tally: Tally { left_out: left_out.into(), intervals: 7, widths: 9, widest: 2 },
            }));
            let id = ScriptId { kind, number };
            let line = outcome.line(id);
            prop_assert_eq!(line.lines().count(), 1);
            prop_assert_eq!(Outcome::parse(&line), Some((id, outcome)));
        }

        #[test]
        fn any_line_is_survived(line: String) {
            Outcome::parse(&line);
        }
    }
}
