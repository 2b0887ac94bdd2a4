//! Programs that are looked at, from outside: starting them and asking them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nodewise_machine::CpuSet;
use nodewise_syscall::{Errno, Task, affinity};
use serde_json::Value;

use crate::nodewise::Context;

/// Bytes by node.
pub type ByNode = BTreeMap<u32, u64>;

/// The numbers of the threads of a process.
pub fn threads(pid: u32) -> Result<Vec<u32>, String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).map_err(|error| error.to_string())?;
    let number = |entry: fs::DirEntry| entry.file_name().to_string_lossy().parse();
    let numbers: Result<_, _> = tasks.filter_map(Result::ok).map(number).collect();
    numbers.map_err(|_| format!("a thread of {pid} without a number"))
}

/// Lets every thread of a process run on these CPUs.
pub fn allow(pid: u32, cpus: &CpuSet) -> Result<(), String> {
    for thread in threads(pid)? {
        match affinity::set_cpus(Task::new(thread).ok_or("thread 0")?, cpus) {
            // A thread that took the memory may have ended meanwhile.
            Err(error) if error.errno == Errno::ESRCH => {}
            set => set.map_err(|error| error.to_string())?,
        }
    }
    Ok(())
}

/// A program of `observed.rs` that runs; it ends when dropped.
pub struct Observed {
    /// Its way of taking memory, for messages.
    pub name: String,
    pub pid: u32,
    /// Where its memory begins, and how long it is.
    pub address: u64,
    pub length: u64,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Its mappings at one moment, by their first address: name, memory in transparent huge pages, bytes by node.
pub type Mappings = BTreeMap<u64, Pages>;

/// The pages of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pages {
    pub name: String,
    pub huge: u64,
    pub nodes: ByNode,
}

impl Observed {
    /// Starts it, as words behind these: `nodewise run --membind=1 --`.
    pub fn start(name: &str, before: &[&str], way: &str) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        Self::start_file(&own, name, before, way)
    }

    /// Starts the same program from another file.
    pub fn start_file(own: &Path, name: &str, before: &[&str], way: &str) -> Result<Self, String> {
        let mut words = before.iter().map(std::ffi::OsString::from).collect::<Vec<_>>();
        words.extend([own.into(), "--observed".into()]);
        words.extend(way.split_whitespace().map(Into::into));
        let mut command = Command::new(&words[0]);
        let started = command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| format!("{name}: {error}"))?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut observed =
            Self { name: name.to_owned(), pid: 0, address: 0, length: 0, child, input, output };
        let place = observed.line()?;
        let number = |key: &str| place[key].as_u64().ok_or_else(|| format!("{name}: {place}"));
        (observed.address, observed.length) = (number("address")?, number("length")?);
        observed.pid = u32::try_from(number("pid")?).map_err(|error| error.to_string())?;
        Ok(observed)
    }

    fn line(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|error| format!("{}: {error}", self.name))?;
        serde_json::from_str(&line).map_err(|error| format!("{}: {error}: {line:?}", self.name))
    }

    /// Asks it.
    pub fn ask(&mut self, question: &str) -> Result<Value, String> {
        let input = self.input.as_mut().ok_or("it has ended")?;
        writeln!(input, "{question}").map_err(|error| format!("{}: {error}", self.name))?;
        self.line()
    }

    /// Its pages, by its own count.
    pub fn pages(&mut self) -> Result<Mappings, String> {
        let answer = self.ask("pages")?;
        let bytes = |nodes: &Value| -> Option<ByNode> {
            nodes.as_object()?.iter().map(|(node, size)| Some((node.parse().ok()?, size.as_u64()?))).collect()
        };
        let mapping = |mapping: &Value| {
            let start = u64::from_str_radix(mapping["start"].as_str()?, 16).ok()?;
            let name = mapping["name"].as_str()?.to_owned();
            Some((
                start,
                Pages { name, huge: mapping["huge_bytes"].as_u64()?, nodes: bytes(&mapping["nodes"])? },
            ))
        };
        let mappings = answer["mappings"].as_array().into_iter().flatten().map(mapping);
        mappings.collect::<Option<_>>().ok_or_else(|| format!("{}: {answer}", self.name))
    }

    /// Some pages of its memory by node, by its own count.
    pub fn sampled(&mut self) -> Result<ByNode, String> {
        let answer = self.ask("sampled")?;
        let nodes = answer["nodes"].as_object().into_iter().flatten();
        let each = nodes.map(|(node, count)| Some((node.parse().ok()?, count.as_u64()?)));
        each.collect::<Option<_>>().ok_or_else(|| format!("{}: {answer}", self.name))
    }

    /// CPU time that it spent between two moments, in seconds by node.
    pub fn time(&mut self, from: f64, to: f64) -> Result<BTreeMap<u32, f64>, String> {
        let answer = self.ask("time")?;
        let mut nodes = BTreeMap::new();
        for slice in answer["slices"].as_array().into_iter().flatten() {
            let (ended, used) = (slice[0].as_f64(), slice[2].as_f64());
            let (Some(ended), Some(used), Some(node)) = (ended, used, slice[1].as_u64()) else {
                return Err(format!("{}: {slice}", self.name));
            };
            if from < ended && ended <= to {
                *nodes.entry(node as u32).or_insert(0.0) += used;
            }
        }
        Ok(nodes)
    }

    /// CPU time that it spent since this was asked last, in seconds by node.
    pub fn spent(&mut self) -> Result<BTreeMap<u32, f64>, String> {
        let answer = self.ask("spent")?;
        let nodes = answer["nodes"].as_object().into_iter().flatten();
        let each = nodes.map(|(node, used)| Some((node.parse().ok()?, used.as_f64()?)));
        each.collect::<Option<_>>().ok_or_else(|| format!("{}: {answer}", self.name))
    }

    /// `maps` of it.
    pub fn maps(&self, context: &Context, more: &[&str]) -> Result<Value, String> {
        let pid = self.pid.to_string();
        context.json(&[&["maps", &pid, "--json"], more].concat())
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        // Without questions it ends, and so does a shell that waits for it.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// The sizes of an array of nodes in nodewise's JSON.
pub fn by_node(nodes: &Value) -> ByNode {
    let nodes = nodes.as_array().into_iter().flatten();
    nodes.filter_map(|on| Some((on["node"].as_u64()? as u32, on["size_bytes"].as_u64()?))).collect()
}
