//! Keys and their effects.

use nodewise_machine::duration;

use super::filter::Filter;
use super::order::SortBy;
use super::prompt::{Prompt, Purpose, Typing};
use super::{App, Effect, INTERVALS, Interest, Mappings, Origin, Screen, Seek};
use crate::key::Key;
use crate::screen;

impl App {
    /// Takes a key, and says what the command is to do.
    pub fn handle(&mut self, key: Key) -> Vec<Effect> {
        let mut effects = Vec::new();
        match key {
            Key::Control('z') => effects.push(Effect::Suspend),
            Key::Control('l') => effects.push(Effect::Redraw),
            Key::Control('c') if self.prompt.is_none() => effects.push(Effect::Quit),
            _ if self.prompt.is_some() => self.typed(key, &mut effects),
            _ => {
                self.message = None;
                if self.help.is_some() {
                    self.in_help(key, &mut effects)
                } else {
                    self.on_screen(key, &mut effects)
                }
            }
        }
        let interest = self.interest();
        if interest != self.interest {
            self.interest = interest;
            self.readings = 0;
            effects.push(Effect::Interest(interest));
        }
        effects
    }

    /// Facts that the screen shown needs.
    fn interest(&self) -> Interest {
        let threads_of = (self.screen == Screen::Process).then_some(self.opened).flatten();
        Interest {
            threads_of: threads_of.map(|identity| identity.pid.number()),
            interrupts: self.screen == Screen::Devices,
            services: self.screen == Screen::Services,
        }
    }

    fn in_help(&mut self, key: Key, effects: &mut Vec<Effect>) {
        let last = screen::help::last(self.size.1);
        // The terminal may have become higher.
        let first = self.help.unwrap_or(0).min(last);
        self.help = match key {
            Key::Char('q') => {
                effects.push(Effect::Quit);
                self.help
            }
            Key::Down | Key::Char('j') => Some((first + 1).min(last)),
            Key::Up | Key::Char('k') => Some(first.saturating_sub(1)),
            Key::PageDown | Key::Char(' ') => Some((first + self.page()).min(last)),
            Key::PageUp => Some(first.saturating_sub(self.page())),
            Key::Home => Some(0),
            Key::End => Some(last),
            _ => None,
        };
    }

    fn on_screen(&mut self, key: Key, effects: &mut Vec<Effect>) {
        match key {
            Key::Char('q') | Key::Function(10) => effects.push(Effect::Quit),
            Key::Char('?' | 'h') | Key::Function(1) => self.help = Some(0),
            Key::Char(digit @ '1'..='6') => {
                let at = digit as usize - '1' as usize;
                self.go(Screen::ALL[at], effects);
            }
            Key::Tab | Key::Right => self.turn(1, effects),
            Key::BackTab | Key::Left => self.turn(-1, effects),
            Key::Down | Key::Char('j') => self.step(1),
            Key::Up | Key::Char('k') => self.step(-1),
            Key::PageDown => self.step(self.page() as isize),
            Key::PageUp => self.step(-(self.page() as isize)),
            Key::Home => self.step(isize::MIN),
            Key::End => self.step(isize::MAX),
            Key::Enter => self.enter(effects),
            Key::Escape | Key::Backspace => self.back(effects),
            Key::Char('/') | Key::Function(4) => {
                let text = self.filter.text().to_owned();
                self.prompt = Some(Prompt::new(Purpose::Filter(text.clone()), text));
                self.go(Screen::Processes, effects);
            }
            Key::Char('\\') => self.filter_by(Filter::default()),
            Key::Char('s' | '>') | Key::Function(6) => self.sort_by(self.order.by.neighbour(1)),
            Key::Char('<') => self.sort_by(self.order.by.neighbour(-1)),
            Key::Char('r') => {
                self.order.reversed = !self.order.reversed;
                self.list();
            }
            Key::Char('K') => {
                self.kernel_threads = !self.kernel_threads;
                self.list();
            }
            Key::Char('e') => self.prompt = Some(Prompt::new(Purpose::Export, "")),
            Key::Char('m') => self.say_migration(),
            Key::Char('p' | ' ') => {
                self.paused = !self.paused;
                effects.push(Effect::Pause(self.paused));
            }
            Key::Char('+' | '-' | '[' | ']' | '{' | '}' | 'g' | 'G') => self.in_time(key, effects),
            _ => {}
        }
    }

    /// Keys for the time between readings, and for places of a recording.
    fn in_time(&mut self, key: Key, effects: &mut Vec<Effect>) {
        let is_live = self.origin == Origin::Live;
        match key {
            Key::Char('+' | '-') => {
                let longer = INTERVALS.into_iter().find(|interval| *interval > self.every);
                let shorter = INTERVALS.into_iter().rev().find(|interval| *interval < self.every);
                let next = if key == Key::Char('+') { longer } else { shorter };
                if let Some(next) = next {
                    self.every = next;
                    effects.push(Effect::Every(next));
                }
            }
            _ if is_live => {
                self.say("these keys are for recordings: nodewise top --from FILE");
            }
            Key::Char('g') => self.prompt = Some(Prompt::new(Purpose::Time, "")),
            _ => {
                self.paused = true;
                effects.push(Effect::Pause(true));
                effects.push(Effect::Seek(match key {
                    Key::Char('[') => Seek::Back,
                    Key::Char(']') => Seek::On,
                    Key::Char('{') => Seek::MinuteBack,
                    Key::Char('}') => Seek::MinuteOn,
                    _ => Seek::End,
                }));
            }
        }
    }

    /// Lines of a page of the lists, about.
    fn page(&self) -> usize {
        usize::from(self.size.1.saturating_sub(10).max(1))
    }

    /// Moves the selection, and stays inside.
    fn step(&mut self, by: isize) {
        let last = self.count(self.screen).saturating_sub(1);
        let line = self.selected(self.screen).saturating_add_signed(by).min(last);
        self.selected.insert(self.screen, line);
        if self.screen == Screen::Processes {
            self.chosen = self.listed(line).map(|row| row.identity);
        }
    }

    fn turn(&mut self, by: isize, effects: &mut Vec<Effect>) {
        let at = Screen::ALL.iter().position(|screen| *screen == self.screen).unwrap_or(0) as isize;
        let next = (at + by).rem_euclid(Screen::ALL.len() as isize) as usize;
        self.go(Screen::ALL[next], effects);
    }

    /// Shows a screen. Those of one process show the selected one.
    fn go(&mut self, screen: Screen, effects: &mut Vec<Effect>) {
        let of_one = |screen| matches!(screen, Screen::Process | Screen::Mappings);
        if of_one(screen) && !of_one(self.screen) {
            self.opened = self.listed(self.selected(Screen::Processes)).map(|row| row.identity);
            self.selected.insert(Screen::Process, 0);
        }
        self.screen = screen;
        if screen == Screen::Mappings {
            self.ask_for_mappings(effects, false);
        }
        self.clamp();
    }

    fn ask_for_mappings(&mut self, effects: &mut Vec<Effect>, again: bool) {
        let Some(opened) = self.opened else { return self.set_mappings(None) };
        let is_known = match &self.mappings {
            // The answer is on its way.
            Some(Mappings::Asked(asked)) => *asked == opened,
            Some(known) => !again && known.identity() == opened,
            None => false,
        };
        if is_known {
            return;
        }
        self.selected.insert(Screen::Mappings, 0);
        if self.origin == Origin::Live {
            self.set_mappings(Some(Mappings::Asked(opened)));
            effects.push(Effect::Mappings(opened));
        } else {
            let why = "top shows no mappings of a recording: nodewise maps --from does".to_owned();
            self.set_mappings(Some(Mappings::Failed(opened, why)));
        }
    }

    fn enter(&mut self, effects: &mut Vec<Effect>) {
        match self.screen {
            Screen::Nodes => {
                let node = self.nodes().get(self.selected(Screen::Nodes)).map(|row| row.node);
                if let Some(filter) = node.and_then(|node| Filter::parse(&format!("node={node}")).ok()) {
                    self.filter_by(filter);
                    self.go(Screen::Processes, effects);
                }
            }
            Screen::Processes => self.go(Screen::Process, effects),
            Screen::Process => self.go(Screen::Mappings, effects),
            Screen::Mappings => self.ask_for_mappings(effects, true),
            Screen::Services => {
                let selected = self.selected(Screen::Services);
                if let Some(filter) = self.services().get(selected).map(|row| Filter::unit(&row.path)) {
                    self.filter_by(filter);
                    self.go(Screen::Processes, effects);
                }
            }
            Screen::Devices => {}
        }
    }

    fn back(&mut self, effects: &mut Vec<Effect>) {
        match self.screen {
            Screen::Mappings => self.go(Screen::Process, effects),
            Screen::Processes => self.filter_by(Filter::default()),
            _ => self.go(Screen::Processes, effects),
        }
    }

    fn filter_by(&mut self, filter: Filter) {
        self.filter = filter;
        self.list();
    }

    fn sort_by(&mut self, by: SortBy) {
        self.order.by = by;
        self.list();
    }

    /// The command that would move the stranded memory of the selected process to where it runs.
    fn say_migration(&mut self) {
        let row = match self.screen {
            Screen::Process | Screen::Mappings => self.opened(),
            _ => self.listed(self.selected(Screen::Processes)),
        };
        let Some(row) = row else { return self.say("no process selected") };
        let pid = row.identity.pid;
        let stranded = row.locality.as_ref().and_then(|locality| locality.stranded.as_ref());
        let stranded = stranded.filter(|stranded| !stranded.nodes.is_empty());
        let ran = row.cpu.as_ref().and_then(|cpu| cpu.certain.iter().max_by_key(|(_, time)| **time));
        let words = match (stranded, ran) {
            (Some(stranded), Some((to, _))) => format!(
                "to move {} to where it ran: nodewise migrate {pid} --from-nodes {} --to {to}",
                stranded.size, stranded.nodes
            ),
            (Some(_), None) => {
                format!("process {pid} did not run, so there is no node to move its memory to")
            }
            (None, _) if row.pages.is_none() => format!("the memory of process {pid} by node is not known"),
            (None, _) => format!("process {pid} has no stranded memory"),
        };
        self.say(words);
    }

    /// Takes a key for the text that is being typed.
    fn typed(&mut self, key: Key, effects: &mut Vec<Effect>) {
        let Some(mut prompt) = self.prompt.take() else { return };
        let state = prompt.take(key);
        match (&prompt.purpose, state) {
            (Purpose::Filter(before), Typing::GivenUp) => {
                let before = Filter::parse(before).unwrap_or_default();
                self.filter_by(before);
            }
            (_, Typing::GivenUp) => {}
            (Purpose::Filter(_), _) => match Filter::parse(&prompt.text) {
                Ok(filter) => {
                    self.message = None;
                    self.filter_by(filter);
                    self.prompt = (state != Typing::Done).then_some(prompt);
                }
                // It stays until the text is right; while a term is typed, it is not yet.
                Err(refused) => {
                    if state == Typing::Done {
                        self.say(refused);
                    }
                    self.prompt = Some(prompt);
                }
            },
            (Purpose::Export, Typing::Done) => {
                if !prompt.text.is_empty() {
                    effects.push(Effect::Save { name: prompt.text, text: screen::as_text(self) });
                }
            }
            (Purpose::Time, Typing::Done) => match duration::moment(prompt.text.trim()) {
                Ok(at) => {
                    self.paused = true;
                    effects.extend([Effect::Pause(true), Effect::Seek(Seek::To(at))]);
                }
                Err(refused) => {
                    self.say(refused.to_string());
                    self.prompt = Some(prompt);
                }
            },
            _ => self.prompt = Some(prompt),
        }
    }
}
