//! The state of the view, and its requests to the command.

pub mod filter;
pub(crate) mod history;
mod keys;
pub mod order;
pub(crate) mod prompt;
pub(crate) mod worked_out;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::mapping::ProcessMappings;
use nodewise_machine::order::Order as _;
use nodewise_view::digest::running::{Identity, NodeRow, ProcessRow, Running, ServiceRow};

use crate::ink::{Ink, Inks};
use filter::Filter;
use history::History;
use order::Order;
use prompt::Prompt;
use worked_out::MappingsTable;

/// Where readings come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The running system.
    Live,
    /// A recording of this name.
    Recording(String),
}

/// The place of a reading in a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Time since its first sample.
    pub at: Duration,
    /// From its first sample to its last.
    pub length: Duration,
    /// A sentence about samples that are missing before this one.
    pub gap: Option<String>,
}

/// A reading: the digest of a sample and of the change before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub running: Arc<Running>,
    /// `None` on the running system.
    pub position: Option<Position>,
}

/// A place to go to in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// The sample before.
    Back,
    /// The next sample.
    On,
    /// The sample a minute before.
    MinuteBack,
    MinuteOn,
    /// The sample at a time since the beginning.
    To(Duration),
    End,
}

/// Facts that are read only while a screen shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interest {
    /// The process whose threads are read each time.
    pub threads_of: Option<u32>,
    /// Interrupts of devices.
    pub interrupts: bool,
    /// Control groups.
    pub services: bool,
}

/// A request to the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Quit,
    /// Stop, as Ctrl-Z does.
    Suspend,
    /// Draw everything again.
    Redraw,
    Pause(bool),
    /// The time between readings.
    Every(Duration),
    Interest(Interest),
    /// Read the mappings of a process; of several such requests the newest is enough.
    Mappings(Identity),
    /// Write a text to a file that must not exist.
    Save {
        name: String,
        text: String,
    },
    Seek(Seek),
}

/// A screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Screen {
    Nodes,
    Processes,
    /// One process: its nodes and threads.
    Process,
    /// Its mappings.
    Mappings,
    Devices,
    /// Control groups as services and containers.
    Services,
}

impl Screen {
    /// All of them, in the order of their digits.
    pub const ALL: [Self; 6] =
        [Self::Nodes, Self::Processes, Self::Process, Self::Mappings, Self::Devices, Self::Services];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Processes => "processes",
            Self::Process => "process",
            Self::Mappings => "mappings",
            Self::Devices => "devices",
            Self::Services => "services",
        }
    }
}

/// The mappings of a process.
#[derive(Clone, Debug, PartialEq)]
pub enum Mappings {
    /// They are being read.
    Asked(Identity),
    /// The reason in words, fit for a terminal.
    Failed(Identity, String),
    Read(Identity, Arc<ProcessMappings>),
}

impl Mappings {
    fn identity(&self) -> Identity {
        match self {
            Self::Asked(identity) | Self::Failed(identity, _) | Self::Read(identity, _) => *identity,
        }
    }
}

/// Times between readings that `+` and `-` go through.
const INTERVALS: [Duration; 8] = [
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
];

/// The state.
#[derive(Clone, Debug)]
pub struct App {
    pub(crate) origin: Origin,
    pub(crate) inks: Inks,
    pub(crate) size: (u16, u16),
    pub(crate) screen: Screen,
    pub(crate) reading: Option<Reading>,
    /// Places of the processes that are listed, in their order.
    pub(crate) listed: Vec<usize>,
    pub(crate) order: Order,
    pub(crate) filter: Filter,
    pub(crate) kernel_threads: bool,
    /// The line that keys act on, by screen.
    pub(crate) selected: BTreeMap<Screen, usize>,
    /// The process of the selected line, which may move.
    chosen: Option<Identity>,
    /// The process of the screens 3 and 4.
    pub(crate) opened: Option<Identity>,
    pub(crate) mappings: Option<Mappings>,
    /// Those that were read, as their screen shows them.
    pub(crate) mappings_table: Option<MappingsTable>,
    /// Sentences about the reading, on the screen of nodes.
    pub(crate) notes: Vec<(Ink, String)>,
    pub(crate) history: History,
    pub(crate) paused: bool,
    pub(crate) every: Duration,
    pub(crate) prompt: Option<Prompt>,
    /// A sentence until the next key.
    pub(crate) message: Option<String>,
    /// The first line of the help, while it is shown.
    pub(crate) help: Option<usize>,
    interest: Interest,
    /// Readings since that was requested.
    readings: usize,
    pub(crate) is_root: bool,
}

impl App {
    /// A view without a reading yet. A recording is paused at first.
    pub fn new(origin: Origin, every: Duration, inks: Inks) -> Self {
        Self {
            paused: matches!(origin, Origin::Recording(_)),
            origin,
            inks,
            size: (80, 24),
            screen: Screen::Processes,
            reading: None,
            listed: Vec::new(),
            order: Order::default(),
            filter: Filter::default(),
            kernel_threads: false,
            selected: BTreeMap::new(),
            chosen: None,
            opened: None,
            mappings: None,
            mappings_table: None,
            notes: Vec::new(),
            history: History::default(),
            every,
            prompt: None,
            message: None,
            help: None,
            interest: Interest::default(),
            readings: 0,
            is_root: false,
        }
    }

    /// A view whose user has all rights: what is denied is denied to root, too.
    #[must_use]
    pub fn of_root(mut self) -> Self {
        self.is_root = true;
        self
    }

    /// Takes the size of the terminal, in cells.
    pub fn resize(&mut self, width: u16, height: u16) {
        self.size = (width, height);
    }

    /// Takes a reading.
    pub fn take(&mut self, reading: Reading) {
        self.notes = worked_out::notes(&reading.running);
        self.history.add(&reading.running);
        self.reading = Some(reading);
        self.readings = self.readings.saturating_add(1);
        self.list();
    }

    /// Takes the mappings of a process, or why there are none; those of another process are dropped, also where it had
    /// the same number before.
    pub fn take_mappings(&mut self, mappings: Mappings) {
        if self.mappings.as_ref().is_some_and(|asked| asked.identity() == mappings.identity()) {
            self.set_mappings(Some(mappings));
            self.clamp();
        }
    }

    fn set_mappings(&mut self, mappings: Option<Mappings>) {
        self.mappings_table = match &mappings {
            Some(Mappings::Read(_, process)) => Some(MappingsTable::new(process)),
            _ => None,
        };
        self.mappings = mappings;
    }

    /// Words for a fact that this many readings after its request have; `None` where they have been taken.
    pub(crate) fn waiting(&self, readings: usize) -> Option<&'static str> {
        let is_early = self.origin == Origin::Live && self.readings < readings;
        is_early.then_some(if self.paused { "paused: p resumes reading" } else { "reading ..." })
    }

    /// Shows a sentence until the next key.
    pub fn say(&mut self, sentence: impl Into<String>) {
        self.message = Some(sentence.into());
    }

    /// Whether the view is paused.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Pauses the view.
    pub fn pause(&mut self) {
        self.paused = true;
    }

    pub(crate) fn running(&self) -> Option<&Running> {
        self.reading.as_ref().map(|reading| reading.running.as_ref())
    }

    /// The services of the reading: none where they were not read.
    pub(crate) fn services(&self) -> &[ServiceRow] {
        self.running().and_then(|running| running.services.as_deref()).unwrap_or_default()
    }

    pub(crate) fn nodes(&self) -> &[NodeRow] {
        self.running().map_or(&[], |running| &running.nodes)
    }

    /// The process of a line.
    pub(crate) fn listed(&self, line: usize) -> Option<&ProcessRow> {
        self.running()?.processes.get(*self.listed.get(line)?)
    }

    /// The process of the screens 3 and 4, while it exists.
    pub(crate) fn opened(&self) -> Option<&ProcessRow> {
        let opened = self.opened?;
        self.running()?.processes.iter().find(|row| row.identity == opened)
    }

    pub(crate) fn selected(&self, screen: Screen) -> usize {
        self.selected.get(&screen).copied().unwrap_or(0)
    }

    /// The lines that can be selected on a screen.
    pub(crate) fn count(&self, screen: Screen) -> usize {
        match screen {
            Screen::Nodes => self.nodes().len(),
            Screen::Processes => self.listed.len(),
            Screen::Process => self.opened().map_or(0, |row| row.tasks.len()),
            Screen::Mappings => match &self.mappings {
                Some(Mappings::Read(_, process)) => process.mappings.len(),
                _ => 0,
            },
            Screen::Devices => self.running().map_or(0, |running| running.devices.len()),
            Screen::Services => self.services().len(),
        }
    }

    /// Lists the processes again; the selection stays with its process where that is still listed.
    fn list(&mut self) {
        let mut listed = Vec::new();
        if let Some(running) = self.running() {
            let rows = &running.processes;
            let is_listed =
                |row: &ProcessRow| (self.kernel_threads || !row.kernel_thread) && self.filter.matches(row);
            listed = (0..rows.len()).filter(|at| is_listed(&rows[*at])).collect();
            listed.order_by(|one, other| self.order.compare(&rows[*one], &rows[*other]));
        }
        self.listed = listed;
        let line = self.chosen.and_then(|chosen| {
            (0..self.listed.len()).find(|line| self.listed(*line).is_some_and(|row| row.identity == chosen))
        });
        if let Some(line) = line {
            self.selected.insert(Screen::Processes, line);
        }
        self.clamp();
    }

    /// Keeps every selection inside its list.
    fn clamp(&mut self) {
        for screen in Screen::ALL {
            let last = self.count(screen).saturating_sub(1);
            let line = self.selected(screen).min(last);
            self.selected.insert(screen, line);
        }
    }
}
