//! `nodewise record`.

mod mappings;

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nodewise_machine::Bytes;
use nodewise_machine::printable::io_words;
use nodewise_source::record::{Header, Rotation, Writer};
use nodewise_source::sample::{
    BandwidthScope, InterruptScope, Moment, PageOptions, ProcessScope, Sample, SampleOptions, Sampler,
    ThreadScope,
};
use nodewise_source::tree::Tree;
use nodewise_source::{Detail, boot};

use crate::cli::Global;
use crate::cli::record::Record as Args;
use crate::command::capture::{machine_file, shown};
use crate::command::run::not_executed;
use crate::failure::{Failure, INTERNAL, Outcome};
use crate::live_counters::LiveCounters;
use crate::live_pages::LiveDrawer;
use crate::{input, measuring, output};

use mappings::Mapped;

/// How often the file is made safe on disk.
const SAFE_EVERY: Duration = Duration::from_secs(60);

/// The share of the time that looking for the pages of processes may take.
const FOR_PAGES: f64 = 0.005;

/// Runs the verb.
pub fn run(args: &Args, global: &Global) -> Outcome {
    let interrupt = measuring::interrupt()?;
    let input = input::load(&global.machine, Detail::Full)?;
    let tree = Tree::live();
    let header = Header::new(env!("CARGO_PKG_VERSION"), args.every, boot::mark(&tree).ok().flatten())
        .with_machine_file(&machine_file(&input, false))
        .map_err(|error| Failure::new(INTERNAL, error))?;
    room(&header, args.max_size)?;
    let mut mapped = Mapped::new(&args.maps, measuring::seed(None));
    mapped.check(!args.command.is_empty())?;
    let file = open(&args.output, args.force)?;
    let options = SampleOptions {
        processes: ProcessScope::All,
        threads: ThreadScope::Busy(BTreeSet::new()),
        groups: true,
        interrupts: if args.irq { InterruptScope::Queues } else { InterruptScope::None },
        bandwidth: BandwidthScope::IfCounted,
        controllers: BandwidthScope::IfCounted,
        pages: Some(PageOptions { budget: args.every.mul_f64(FOR_PAGES), ..PageOptions::default() }),
    };
    let drawer = LiveDrawer::new(measuring::seed(None));
    let mut sampler = Sampler::new(tree, options).drawing(Box::new(drawer)).counting(Box::new(LiveCounters));
    // A recording that --force replaces is lost only for a program that starts.
    let mut child = start(args).inspect_err(|_| {
        if !args.force {
            let _ = std::fs::remove_file(&args.output);
        }
    })?;
    let mut recorder = Recorder::begin(file, &args.output, header, args.max_size)?;
    let result = record(args, &mut sampler, &mut mapped, &mut recorder, child.as_mut(), &interrupt);
    // The file is whole whatever happened; the program is waited for as its shell would.
    let finished = recorder.finish();
    let status = child.as_mut().map(Child::wait).transpose();
    result.and(finished)?;
    let status =
        status.map_err(|error| Failure::new(INTERNAL, format_args!("cannot wait: {}", io_words(&error))))?;
    Ok(status.map_or(0, exit_code))
}

fn start(args: &Args) -> Result<Option<Child>, Failure> {
    let Some((program, arguments)) = args.command.split_first() else { return Ok(None) };
    let child = Command::new(program).args(arguments).spawn();
    child.map(Some).map_err(|error| not_executed(program, &error))
}

/// Refuses a size that the description of the machine nearly fills: it is in each of the two files.
fn room(header: &Header, max_size: Option<Bytes>) -> Result<(), Failure> {
    let Some(max_size) = max_size else { return Ok(()) };
    let least = Bytes::new(header.length().saturating_mul(8));
    if max_size >= least {
        return Ok(());
    }
    Err(Failure::usage(format_args!(
        "--max-size {max_size}: the description of this machine takes {} of each of two files: expected at least {least}",
        Bytes::new(header.length())
    )))
}

/// The program's code, or 128 and its signal as a shell has it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    u8::try_from(code.unwrap_or(0)).unwrap_or(1)
}

/// Takes samples until something ends it.
fn record(
    args: &Args,
    sampler: &mut Sampler,
    mapped: &mut Mapped,
    recorder: &mut Recorder,
    mut child: Option<&mut Child>,
    interrupt: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let began = Instant::now();
    let mut next = began;
    let mut has_ended = false;
    loop {
        recorder.push(&take(sampler, mapped))?;
        // A sample that came late moves the ones behind it: none is taken twice.
        next = (next + args.every).max(Instant::now());
        measuring::wait(next, interrupt, || {
            has_ended = args.limit.is_some_and(|limit| began.elapsed() >= limit)
                || child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)));
            has_ended
        });
        if has_ended || interrupt.load(Ordering::Relaxed) {
            // The last moment is as wanted as the first.
            return recorder.push(&take(sampler, mapped));
        }
    }
}

/// The running system now.
fn take(sampler: &mut Sampler, mapped: &mut Mapped) -> Sample {
    let mut sample = sampler.sample(Moment::now());
    mapped.add_to(&mut sample);
    sample
}

/// Opens the file, and leaves what is in it.
fn open(path: &Path, force: bool) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(false)
    } else {
        options.create_new(true)
    };
    options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::cannot(format_args!(
            "{} exists: name another file, or overwrite it with --force",
            shown(path)
        )),
        _ => cannot_write(path, &error),
    })
}

/// The file, and the one before it.
struct Recorder {
    path: PathBuf,
    header: Header,
    /// Size of one file.
    most_bytes: Option<u64>,
    /// `None` only while one file follows another, and after a failure.
    writer: Option<Writer<File>>,
    samples: u64,
    began: Instant,
    safe: Instant,
    bytes_before: u64,
}

impl Recorder {
    fn begin(file: File, path: &Path, header: Header, max_size: Option<Bytes>) -> Result<Self, Failure> {
        let most_bytes = max_size.map(|size| size.get() / 2);
        let writer = file.set_len(0).and_then(|()| Writer::begin(file, &header, most_bytes));
        let writer = writer.map_err(|error| cannot_write(path, &error))?;
        let now = Instant::now();
        Ok(Self {
            path: path.to_owned(),
            header,
            most_bytes,
            writer: Some(writer),
            samples: 0,
            began: now,
            safe: now,
            bytes_before: 0,
        })
    }

    fn push(&mut self, sample: &Sample) -> Result<(), Failure> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let pushed = writer.push(sample).and_then(|rotation| {
            if self.safe.elapsed() >= SAFE_EVERY {
                self.safe = Instant::now();
                writer.file().sync_data()?;
            }
            Ok(rotation)
        });
        self.samples += 1;
        match pushed {
            Ok(Rotation::Stay) => Ok(()),
            Ok(Rotation::Due) => self.rotate().map_err(|error| self.lost(&error)),
            Err(error) => Err(self.lost(&error)),
        }
    }

    /// Ends this file, which becomes the old one, and begins another.
    fn rotate(&mut self) -> io::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        self.bytes_before = writer.written();
        writer.finish()?.sync_data()?;
        let mut old = self.path.clone().into_os_string();
        old.push(".old");
        std::fs::rename(&self.path, &old)?;
        let file = OpenOptions::new().write(true).create_new(true).open(&self.path)?;
        self.writer = Some(Writer::begin(file, &self.header, self.most_bytes)?);
        Ok(())
    }

    fn lost(&mut self, error: &io::Error) -> Failure {
        self.writer = None;
        Failure::cannot(format_args!(
            "cannot write {}: {}; it holds the samples until then, but for the last 10 s at most",
            shown(&self.path),
            io_words(error)
        ))
    }

    fn finish(mut self) -> Result<(), Failure> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let flushed = writer.finish().and_then(|file| {
            file.sync_data()?;
            file.metadata()
        });
        let length = flushed.map_err(|error| cannot_write(&self.path, &error))?.len();
        let seconds = self.began.elapsed().as_secs_f64();
        let old =
            if self.bytes_before == 0 { String::new() } else { " and the file before it (.old)".to_owned() };
        output::say(&format!(
            "wrote {} samples in {seconds:.0} s to {}{old}, {}",
            self.samples,
            shown(&self.path),
            Bytes::new(length + self.bytes_before)
        ));
        Ok(())
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::cannot(format_args!("cannot write {}: {}", shown(path), io_words(error)))
}

#[cfg(test)]
mod tests;
