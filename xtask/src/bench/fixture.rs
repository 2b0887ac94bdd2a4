//! Processes that are looked at while they do nothing.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// A process that ends with this value.
pub struct Holder(Child);

impl Holder {
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // One that has ended already needs nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process with this many mappings: anonymous pages, readable and writable in turn, so that the
/// kernel does not join neighbours.
pub fn mappings(count: u32) -> Result<Holder> {
    let script = format!(
        "import mmap, sys\n\
         maps = [mmap.mmap(-1, 4096, prot=1 + 2 * (i % 2)) for i in range({count})]\n\
         print(len(maps), flush=True)\n\
         sys.stdin.read()"
    );
    let mut command = Command::new("python3");
    command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start python3")?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    let holder = Holder(child);
    anyhow::ensure!(line.trim() == count.to_string(), "python3 made no {count} mappings");
    Ok(holder)
}

/// This many processes that sleep.
pub fn sleepers(count: usize) -> Result<Vec<Holder>> {
    let sleeper = || {
        let child = Command::new("sleep").arg("3600").spawn().context("cannot start sleep")?;
        Ok(Holder(child))
    };
    (0..count).map(|_| sleeper()).collect()
}
