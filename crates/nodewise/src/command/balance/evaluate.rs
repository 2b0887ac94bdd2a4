//! `balance --evaluate`: it switches itself on and off in blocks whose order is drawn, and compares them.
//!
//! Before each block without it, what the block before moved goes back: otherwise all blocks after the first one with
//! it would have its effect, and the comparison would be with itself. Moving there and back is in the beginning of
//! blocks, which does not count.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nodewise_diagnose::balance::{Limits, RemoteTime};
use nodewise_experiment::command::once::run_once;
use nodewise_experiment::executor::Ending;
use nodewise_experiment::metric::Pattern;
use nodewise_experiment::switching::{
    Blocks, Evaluation, FEWEST, Outcome as Compares, Pair, Scale, Switch, Verdict,
};
use nodewise_machine::placement::Placement;
use nodewise_machine::printable::printable;
use nodewise_source::balance_journal::{BlockEntry, Entry, EvaluatedEntry};
use nodewise_source::sample::Moment;
use nodewise_stats::{Direction, median};
use nodewise_view::text::balance::evaluation::{self, Compared, Evaluated};

use super::undo::{Parts, take_back};
use super::{Session, kept, limits};
use crate::cli::Global;
use crate::cli::balance::Balance;
use crate::command::tune::words;
use crate::failure::{Failure, Outcome};
use crate::{measuring, output};

/// Exit code where balance harms.
const HARMS: u8 = 1;
/// Windows that the part of a block that counts must hold.
const COUNTED: u32 = 2;
/// Part of a block that does not count.
const WASH_OUT: u32 = 3;
/// Pairs without a value in a row after which it gives up.
const MOST_LEFT_OUT: usize = 3;

/// The command whose time or number is compared.
#[derive(Clone)]
struct Command {
    words: Vec<OsString>,
    number: Option<(Pattern, Direction)>,
    limit: Duration,
}

/// Runs the verb.
pub(super) fn run(args: &Balance, global: &Global) -> Outcome {
    let blocks = blocks(args)?;
    let command = command(args)?;
    let compared = match &command {
        None => Compared::RemoteShare,
        Some(Command { number: None, .. }) => Compared::Time,
        Some(Command { number: Some((_, direction)), .. }) => Compared::Number(*direction),
    };
    let interrupt = measuring::interrupt()?;
    // Each block with it moves the memory of a process once more.
    let limits = Limits { per_day: f64::MAX, ..limits(args) };
    let session = Session::begin(args, "balance --evaluate", limits, &interrupt)?;
    session.say(format_args!("{}", evaluation::findable(&blocks, compared)))?;
    let idle = args.window * args.windows;
    if blocks.wash_out < idle {
        session.say(format_args!(
            "nothing moves in the first {idle:?} of a block, and only {:?} of it do not count: a longer \
             --wash-out shows more of the difference",
            blocks.wash_out
        ))?;
    }
    let mut run = Running {
        session,
        blocks,
        compared,
        command,
        interrupt,
        evaluation: Evaluation::new(compares(compared)),
        left_out: Vec::new(),
        in_a_row: 0,
        seen: Vec::new(),
    };
    let ended = run.pairs();
    run.finish(ended, global)
}

fn compares(compared: Compared) -> Compares {
    match compared {
        Compared::Time => Compares { scale: Scale::Ratio, direction: Direction::LowerIsBetter },
        Compared::Number(direction) => Compares { scale: Scale::Ratio, direction },
        Compared::RemoteShare => Compares { scale: Scale::Difference, direction: Direction::LowerIsBetter },
    }
}

fn blocks(args: &Balance) -> Result<Blocks, Failure> {
    let options = &args.evaluation;
    let wash_out = options.wash_out.unwrap_or(options.block / WASH_OUT);
    let counted = options.block.saturating_sub(wash_out);
    if counted < args.window * COUNTED {
        return Err(Failure::usage(format_args!(
            "{counted:?} of a block of {:?} count: expected {COUNTED} windows of {:?} at least (a longer --block, a \
             shorter --wash-out or --window)",
            options.block, args.window
        )));
    }
    Blocks::within(options.time, options.block, wash_out, measuring::seed(options.seed)).map_err(|few| {
        Failure::usage(format_args!(
            "--time {:?} has room for {} pairs of blocks: {FEWEST} are needed to find anything (--time {:?} or more, or \
             a shorter --block)",
            options.time, few.pairs, few.needed
        ))
    })
}

fn command(args: &Balance) -> Result<Option<Command>, Failure> {
    let options = &args.evaluation;
    let Some(text) = &options.metric_command else { return Ok(None) };
    let wrong =
        |option: &str, error: &dyn std::fmt::Display| Failure::usage(format_args!("{option}: {error}"));
    let words: Vec<OsString> = words::split(text)
        .map_err(|error| wrong("--metric-command", &error))?
        .into_iter()
        .map(Into::into)
        .collect();
    if words.is_empty() {
        return Err(Failure::usage("--metric-command names no command"));
    }
    let direction =
        if options.higher_is_better { Direction::HigherIsBetter } else { Direction::LowerIsBetter };
    let pattern = |text: &String| Pattern::new(text).map_err(|error| wrong("--metric-regex", &error));
    let number = options.metric_regex.as_ref().map(pattern).transpose()?.map(|pattern| (pattern, direction));
    Ok(Some(Command { words, number, limit: options.block }))
}

impl Command {
    /// Runs it one time after the other until a moment, once at least; the median of its values.
    fn value(&self, end: Instant, interrupt: &AtomicBool) -> Result<f64, String> {
        let mut values = Vec::new();
        while values.is_empty() || (Instant::now() < end && !interrupt.load(Ordering::Relaxed)) {
            values.push(self.run(interrupt)?);
        }
        median(&values).ok_or_else(|| "a value that is not a number".to_owned())
    }

    fn run(&self, interrupt: &AtomicBool) -> Result<f64, String> {
        let begun = Instant::now();
        let printed = run_once(&self.words, &Placement::default(), self.limit, interrupt)?;
        let took = begun.elapsed().as_secs_f64();
        if printed.ending != Ending::Done {
            let complaint =
                printed.complaint.map_or_else(String::new, |line| format!(": {}", printable(&line)));
            return Err(format!("the command ended with {}{complaint}", printed.ending));
        }
        match &self.number {
            None => Ok(took),
            Some((pattern, _)) => pattern.number(&printed.stdout).map_err(|error| error.to_string()),
        }
    }
}

/// A block that has ended.
#[derive(Clone, Debug)]
struct Block {
    switch: Switch,
    value: Result<f64, String>,
    remote: RemoteTime,
    /// The part of the time in which programs waited for memory, from 0 to 1.
    stalled: Option<f64>,
}

/// An evaluation that runs.
struct Running<'a> {
    session: Session<'a>,
    blocks: Blocks,
    compared: Compared,
    command: Option<Command>,
    interrupt: Arc<AtomicBool>,
    evaluation: Evaluation,
    /// Why pairs do not count.
    left_out: Vec<String>,
    in_a_row: usize,
    /// The blocks of all pairs.
    seen: Vec<Block>,
}

impl Running<'_> {
    /// Pairs of blocks until the answer is known, the time is over, or the user wants an end.
    fn pairs(&mut self) -> Result<(), Failure> {
        for pair in 1..=self.blocks.pairs {
            let mut both = Vec::new();
            for switch in self.blocks.order(pair) {
                let Some(block) = self.block(switch)? else { return Ok(()) };
                self.show(pair, &block)?;
                both.push(block);
            }
            self.add(both);
            if self.in_a_row >= MOST_LEFT_OUT {
                let why = self.left_out.last().map_or("no value", String::as_str);
                return Err(Failure::cannot(format_args!(
                    "{MOST_LEFT_OUT} pairs of blocks in a row without a value: {why}"
                )));
            }
            if self.evaluation.verdict() != Verdict::Open {
                return Ok(());
            }
        }
        Ok(())
    }

    fn add(&mut self, both: Vec<Block>) {
        let value = |switch: Switch| {
            let block = both.iter().find(|block| block.switch == switch);
            block.map_or_else(|| Err("no such block".to_owned()), |block| block.value.clone())
        };
        let added = value(Switch::Off).and_then(|off| {
            let on = value(Switch::On)?;
            if self.evaluation.add(Pair { off, on }) {
                Ok(())
            } else {
                Err("values that cannot be compared".to_owned())
            }
        });
        self.in_a_row = added.as_ref().map_or(self.in_a_row + 1, |()| 0);
        self.left_out.extend(added.err());
        self.seen.extend(both);
    }

    /// One block; `None` where the user has ended it.
    fn block(&mut self, switch: Switch) -> Result<Option<Block>, Failure> {
        let begun = Instant::now();
        let mut end = begun + self.blocks.length;
        if switch == Switch::Off {
            self.session.take_all_back()?;
        } else if self.session.switch == Switch::Off {
            self.session.controller = self.session.controller.renewed();
        }
        (self.session.switch, self.session.until) = (switch, Some(end));
        if !self.windows(begun + self.blocks.wash_out)? {
            return Ok(None);
        }
        end = end_of_block(end, Instant::now(), self.blocks);
        self.session.until = Some(end);
        self.session.remote = RemoteTime::default();
        let before = self.session.watcher.stalled();
        let measured = self.command.clone().map(|command| {
            let interrupt = Arc::clone(&self.interrupt);
            thread::spawn(move || command.value(end, &interrupt))
        });
        let goes_on = self.windows(end)?;
        let remote = self.session.remote;
        let value = match measured {
            // The last run of the command may take longer than the block.
            Some(thread) => {
                thread.join().unwrap_or_else(|_| Err("the command could not be watched".to_owned()))
            }
            None => remote.share().ok_or_else(|| "no program of --min-size was at work".to_owned()),
        };
        if !goes_on || self.interrupt.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let stalled = before.zip(self.session.watcher.stalled()).and_then(|(before, after)| {
            let time = after.0.checked_sub(before.0).filter(|time| !time.is_zero())?;
            Some(after.1.checked_sub(before.1)?.as_secs_f64() / time.as_secs_f64())
        });
        Ok(Some(Block { switch, value, remote, stalled }))
    }

    /// Windows up to a moment; `false` where the user has ended it.
    fn windows(&mut self, until: Instant) -> Result<bool, Failure> {
        let window = self.session.args.window;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if self.interrupt.load(Ordering::Relaxed) {
                return Ok(false);
            }
            // CPU time of a short window is too coarse.
            if left < window / 2 {
                measuring::wait(until, &self.interrupt, || false);
                return Ok(!self.interrupt.load(Ordering::Relaxed));
            }
            let interrupt = Arc::clone(&self.interrupt);
            if !self.session.window(left.min(window), &interrupt)? {
                return Ok(false);
            }
        }
    }

    fn show(&self, pair: u32, block: &Block) -> Result<(), Failure> {
        let entry = BlockEntry {
            pair,
            switch: block.switch.word().to_owned(),
            value: block.value.as_ref().ok().copied(),
            remote_share: block.remote.share(),
            memory_stall_share: block.stalled,
            moved_bytes: self.session.moved.get(),
            why: block.value.as_ref().err().cloned(),
        };
        self.print(Entry::Block(entry))?;
        let found = block.value.as_ref().ok().copied();
        let text = evaluation::block(pair, self.blocks.pairs, block.switch, self.compared, found);
        self.session.say(format_args!("{text}"))
    }

    fn print(&self, entry: Entry) -> Result<(), Failure> {
        if self.session.args.output.json {
            output::print_json(&kept::line("", None, entry).to_text())?;
        }
        Ok(())
    }

    /// Leaves the system as it was, and says what is known.
    fn finish(mut self, ended: Result<(), Failure>, global: &Global) -> Outcome {
        let was_interrupted = self.interrupt.load(Ordering::Relaxed);
        // Pages move no more after Ctrl-C: they stay, and undo takes them back.
        let back =
            if was_interrupted { self.session.release(|_| true) } else { self.session.take_all_back() };
        ended.and(back)?;
        let found = self.evaluated(was_interrupted);
        let style = output::style(global.color);
        self.print(Entry::Evaluated(entry(&found)))?;
        if !self.session.args.output.json {
            output::print(&evaluation::evaluated(&found, &style))?;
        }
        Ok(if found.verdict == Verdict::Harms { HARMS } else { 0 })
    }

    fn evaluated(&self, was_interrupted: bool) -> Evaluated {
        let middle = |switch: Switch, value: &dyn Fn(&Block) -> Option<f64>| {
            let values: Vec<f64> =
                self.seen.iter().filter(|block| block.switch == switch).filter_map(value).collect();
            median(&values)
        };
        let both = |value: &dyn Fn(&Block) -> Option<f64>| {
            Some([middle(Switch::Off, value)?, middle(Switch::On, value)?])
        };
        let remote = both(&|block| block.remote.share());
        Evaluated {
            compared: self.compared,
            blocks: self.blocks,
            verdict: self.evaluation.verdict(),
            pairs: self.evaluation.pairs().len(),
            left_out: self.left_out.len(),
            why_left_out: self.left_out.last().cloned(),
            effect: self.evaluation.effect(self.blocks.pairs),
            stalls: both(&|block| block.stalled).map(|both| both.map(|stalled| stalled * 100.0)),
            remote: remote.filter(|_| self.compared != Compared::RemoteShare),
            moved: self.session.moved,
            moved_back: self.session.moved_back,
            was_interrupted,
        }
    }
}

/// The end of a block whose wash-out has ended: where pages went back slowly it took longer, and what counts is still as long
/// as in other blocks.
fn end_of_block(planned: Instant, washed_out: Instant, blocks: Blocks) -> Instant {
    planned.max(washed_out + blocks.length.saturating_sub(blocks.wash_out))
}

fn entry(found: &Evaluated) -> EvaluatedEntry {
    let effect = found.effect.as_ref();
    EvaluatedEntry {
        verdict: found.verdict.word().to_owned(),
        metric: if found.compared == Compared::RemoteShare { "remote_share" } else { "command" }.to_owned(),
        pairs: found.pairs as u32,
        planned_pairs: found.blocks.pairs,
        seed: found.blocks.seed,
        off: effect.map(|effect| effect.off),
        on: effect.map(|effect| effect.on),
        effect: effect.map(|effect| effect.estimate),
        interval: effect.and_then(|effect| effect.interval).map(|interval| [interval.low, interval.high]),
        p: effect.map(|effect| effect.p),
        detectable: effect.and_then(|effect| effect.detectable),
        moved_bytes: found.moved.get(),
        moved_back_bytes: found.moved_back.get(),
    }
}

impl Session<'_> {
    /// Takes every action of this session back, the last first.
    fn take_all_back(&mut self) -> Result<(), Failure> {
        let open = self.kept.open_actions();
        for (id, identity) in std::mem::take(&mut self.ids).into_iter().rev() {
            let Some(action) = open.iter().find(|action| action.id == id) else { continue };
            let rate = Some(self.controller.limits().rate);
            let machine = self.watcher.machine();
            let back = take_back(&self.tree, machine, &mut self.kept, action, Parts::All, rate)?;
            self.moved_back += back.moved;
            self.controller.undone(identity, Moment::now().since_boot, back.moved);
            if !back.is_whole() {
                self.say(format_args!("{}", back.words(action).trim_end()))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_of_a_block_is_never_cut() {
        let seconds = Duration::from_secs;
        let blocks = Blocks { pairs: 7, length: seconds(30), wash_out: seconds(20), seed: 1 };
        let begun = Instant::now();
        let end = |after| end_of_block(begun + blocks.length, begun + seconds(after), blocks) - begun;
        assert_eq!([20, 21, 29, 45].map(end), [30, 31, 39, 55].map(seconds));
        assert_eq!(end(12), seconds(30), "a wash-out that ended early");
    }
}
