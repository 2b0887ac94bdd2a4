//! Records of one machine with one node, and of simulated trees: run in this process.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::rc::Rc;

use nodewise_compat::{Call, Settings, Tool, numactl};
use nodewise_machine::{CpuSet, NodeSet};
use nodewise_source::tree::Tree;
use nodewise_syscall::Errno;

use crate::answer::Answer;
use crate::record::Record;
use crate::scripted::Scripted;
use crate::words;

/// The bytes that a stream has got so far.
#[derive(Clone, Default)]
struct Stream(Rc<RefCell<Vec<u8>>>);

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a recorded command on these files, with the settings given.
pub fn run(record: &Record, tree: &Tree, settings: Settings) -> Answer {
    let mut kernel = Scripted::new(NodeSet::from([0]), CpuSet::from([0, 1]));
    let mut words = words::command_words(&record.cmd);
    if words[0] == "seccomp-run" {
        let number: i32 = words[1].parse().expect("a number of an error");
        kernel.blocked = Some(Errno::new(number));
        words.drain(..4);
    }
    let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let mut before = Answer::default();
    loop {
        match words[0].to_str() {
            Some("numactl") => (),
            Some("true") => return before,
            other => panic!("{other:?} is no command of this file"),
        }
        let call =
            Call { settings, explains: || false, ..Call::new(Tool::Numactl, words.split_off(1), tree) };
        let (out, err) = (Stream::default(), Stream::default());
        let status = numactl::run(&call, &kernel, &mut out.clone(), &mut err.clone());
        match kernel.executed.take() {
            // What the kernel's refusal to execute made it write is not written where it executes.
            Some(command) => words = command,
            None => {
                before.append(status.into(), &out.0.borrow(), &err.0.borrow());
                return before;
            }
        }
    }
}
