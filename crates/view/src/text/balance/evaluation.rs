//! The evaluation of `nodewise balance`: what a time can show, its blocks, and what they have shown.

use std::time::Duration;

use nodewise_experiment::switching::{Blocks, Effect, Switch, Verdict};
use nodewise_machine::Bytes;
use nodewise_machine::plural::plural;
use nodewise_stats::{Direction, Interval};

use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};

/// The compared quantity, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The time of a command, in seconds.
    Time,
    /// A number that a command prints.
    Number(Direction),
    /// The part of the CPU time that went to remote memory.
    RemoteShare,
}

/// An evaluation that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    pub compared: Compared,
    pub blocks: Blocks,
    pub verdict: Verdict,
    /// Pairs that count, and those that do not, with the last reason.
    pub pairs: usize,
    pub left_out: usize,
    pub why_left_out: Option<String>,
    pub effect: Option<Effect>,
    /// The part of the time in which programs waited for memory, in percent: off and on.
    pub stalls: Option<[f64; 2]>,
    /// The remote shares off and on, where a command decides.
    pub remote: Option<[f64; 2]>,
    pub moved: Bytes,
    pub moved_back: Bytes,
    /// Whether the user has ended it.
    pub was_interrupted: bool,
}

/// The smallest difference that the time can show, before anything is changed.
pub fn findable(blocks: &Blocks, compared: Compared) -> String {
    let found = blocks.findable();
    let what = match compared {
        Compared::RemoteShare => "a lower remote share (speed is not measured without --metric-command)",
        _ => "an effect",
    };
    format!(
        "{} of blocks of {:?}, {:?} of each not counted: {what} is found with 80 % power if balance is better in {:.0} % \
         of pairs, that is, by {:.1} standard deviations of a pair's difference; seed {}",
        plural(blocks.pairs, "pair"),
        blocks.length,
        rounded(blocks.wash_out),
        found.share * 100.0,
        found.deviations,
        blocks.seed
    )
}

/// To whole milliseconds.
const fn rounded(time: Duration) -> Duration {
    Duration::from_millis(time.as_millis() as u64)
}

/// A value of a block.
pub fn value(compared: Compared, value: f64) -> String {
    match compared {
        Compared::Time => format!("{value:.3} s"),
        Compared::Number(_) => format!("{value:.4}"),
        Compared::RemoteShare => format!("{:.1} %", value * 100.0),
    }
}

/// A difference of on to off.
fn difference(compared: Compared, value: f64) -> String {
    match compared {
        Compared::RemoteShare => format!("{:+.1} points", value * 100.0),
        _ => format!("{:+.1} %", (value - 1.0) * 100.0),
    }
}

/// A block that has ended.
pub fn block(pair: u32, pairs: u32, switch: Switch, compared: Compared, found: Option<f64>) -> String {
    let found = found.map_or_else(|| "no value".to_owned(), |found| value(compared, found));
    format!("pair {pair} of {pairs}, {}: {found}", switch.word())
}

/// Writes what the blocks have shown, the conclusion first.
pub fn evaluated(found: &Evaluated, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading("Evaluation", &conclusion(found));
    let line = |page: &mut Page, text: String| page.line(4, &Line::from(format!("  {text}")));
    let shown = if found.was_interrupted { ", ended by the user" } else { "" };
    let pairs = found.pairs;
    line(
        &mut page,
        format!(
            "{pairs} of {} of blocks{shown}; seed {}",
            plural(found.blocks.pairs, "pair"),
            found.blocks.seed
        ),
    );
    if let Some(effect) = &found.effect {
        let of = |shown: f64| value(found.compared, shown);
        let name = match found.compared {
            Compared::Time => "time of the command",
            Compared::Number(_) => "the command's number",
            Compared::RemoteShare => "remote share",
        };
        line(&mut page, format!("{name}: {} off, {} on (medians)", of(effect.off), of(effect.on)));
        line(&mut page, format!("difference: {}", statistics(found.compared, effect)));
    }
    if let Some([off, on]) = found.remote {
        line(&mut page, format!("remote share: {:.1} % off, {:.1} % on", off * 100.0, on * 100.0));
    }
    if let Some([off, on]) = found.stalls {
        line(
            &mut page,
            format!("programs waited for memory: {off:.1} % of the time off, {on:.1} % on (PSI some)"),
        );
    }
    if found.left_out > 0 {
        let why = found.why_left_out.as_deref().unwrap_or("a block without a value");
        line(&mut page, format!("{} left out: {why}", plural(found.left_out, "pair")));
    }
    line(&mut page, format!("{} moved, {} of it back", found.moved + found.moved_back, found.moved_back));
    if found.was_interrupted && found.moved > found.moved_back {
        page.line(
            4,
            &Line::from("  ")
                .with(Ink::Notable, "pages of the last block are where it moved them: balance undo --all"),
        );
    }
    page.finish()
}

fn statistics(compared: Compared, effect: &Effect) -> String {
    let of = |value: f64| difference(compared, value);
    let interval = effect.interval.map_or_else(
        || "no interval from so few pairs".to_owned(),
        |Interval { low, high }| format!("95 % interval {} to {}", of(low), of(high)),
    );
    let noise = effect.noise.map_or_else(String::new, |noise| {
        format!("; two blocks without balance differ by {} ", of(noise).trim_start_matches('+'))
    });
    format!("{}, {interval}, p = {:.3}{}", of(effect.estimate), effect.p, noise.trim_end())
}

fn conclusion(found: &Evaluated) -> String {
    let Some(effect) = &found.effect else {
        return "nothing is known: no pair of blocks has ended".to_owned();
    };
    let by = difference(found.compared, effect.estimate);
    match (found.verdict, found.compared) {
        (Verdict::Helps, Compared::RemoteShare) => {
            format!("lower remote share with balance ({by}); speed not measured")
        }
        (Verdict::Harms, Compared::RemoteShare) => {
            format!("higher remote share with balance ({by}); speed not measured")
        }
        (Verdict::Helps, _) => format!("balance helps ({by})"),
        (Verdict::Harms, _) => format!("balance harms ({by})"),
        (Verdict::Open, _) => match effect.detectable {
            Some(least) => {
                format!(
                    "no difference detected (one of {} would be, with 80 % power)",
                    difference(found.compared, least)
                )
            }
            None => "no difference detected: how large one would have to be is unknown after so few pairs"
                .to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Blocks {
        Blocks { pairs: 12, length: Duration::from_secs(600), wash_out: Duration::from_secs(200), seed: 5 }
    }

    fn example(compared: Compared, verdict: Verdict) -> Evaluated {
        let effect = Effect {
            off: 0.412,
            on: 0.03,
            estimate: if compared == Compared::RemoteShare { -0.382 } else { 0.95 },
            interval: None,
            p: 0.01,
            noise: None,
            detectable: Some(if compared == Compared::RemoteShare { -0.02 } else { 0.97 }),
        };
        Evaluated {
            compared,
            blocks: blocks(),
            verdict,
            pairs: 9,
            left_out: 1,
            why_left_out: Some("\"x\" failed".to_owned()),
            effect: Some(effect),
            stalls: Some([0.25, 0.0]),
            remote: None,
            moved: Bytes::from_gib(2),
            moved_back: Bytes::from_gib(1),
            was_interrupted: false,
        }
    }

    fn check(compared: Compared, verdict: Verdict, expected: &[&str]) {
        let text = evaluated(&example(compared, verdict), &Style::plain(200));
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        expected.iter().for_each(|part| assert!(flat.contains(part), "{part}: {text}"));
    }

    #[test]
    fn the_conclusion_says_speed_only_where_a_command_was_measured() {
        check(
            Compared::RemoteShare,
            Verdict::Helps,
            &[
                "Evaluation lower remote share with balance (-38.2 points); speed not measured",
                "9 of 12 pairs of blocks; seed 5",
                "remote share: 41.2 % off, 3.0 % on",
                "no interval from so few pairs, p = 0.010",
                "0.2 % of the time off, 0.0 % on",
                "1 pair left out: \"x\" failed",
                "3 GiB moved, 1 GiB of it back",
            ],
        );
        check(
            Compared::Time,
            Verdict::Helps,
            &["balance helps (-5.0 %)", "time of the command: 0.412 s off"],
        );
        let number = Compared::Number(Direction::HigherIsBetter);
        check(number, Verdict::Harms, &["balance harms (-5.0 %)"]);
        check(number, Verdict::Open, &["no difference detected (one of -3.0 % would be, with 80 % power)"]);
    }

    #[test]
    fn an_evaluation_that_is_ended_says_where_pages_are_and_what_is_not_known() {
        let mut found = example(Compared::Time, Verdict::Open);
        (found.effect, found.was_interrupted) = (None, true);
        let text = evaluated(&found, &Style::plain(200));
        assert!(text.contains("nothing is known") && text.contains("ended by the user"), "{text}");
        assert!(text.contains("balance undo --all"), "{text}");
        let before = findable(&blocks(), Compared::RemoteShare);
        assert!(
            before.starts_with("12 pairs of blocks of 600s, 200s of each not counted: a lower remote share"),
            "{before}"
        );
        assert!(before.contains("in 92 % of pairs, that is, by 1.4 standard deviations"), "{before}");
    }
}
