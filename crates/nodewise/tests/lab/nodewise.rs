//! Running nodewise and the probe in the guest.

use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use nodewise_conformance::ScriptKind;
use nodewise_machine::Machine;
use serde_json::Value;

use crate::checks::Load;
use crate::guest::Plan;
use crate::random::Random;

/// The facts that checks know: the layout that was asked for, and the program under test.
pub struct Context {
    /// The machine of the spec.
    pub wanted: Machine,
    /// The machine as nodewise sees it in the guest.
    pub seen: Machine,
    /// Numbers of the drawn scripts that are played.
    pub scripts: Range<u64>,
    /// Their kinds.
    pub kinds: Vec<ScriptKind>,
    /// Memory that moves, in a guest for that.
    pub load: Option<Load>,
    /// How long programs run under each manager, in a guest for that.
    pub length: Option<Duration>,
    nodewise: PathBuf,
}

/// The findings of the probe.
pub struct Probed {
    /// The page number of the first page: its address / 4096.
    pub first_page: u64,
    /// The node of every page; -1 for none.
    pub nodes: Vec<i64>,
    /// CPUs it may run on.
    pub cpus: String,
    /// Its policy, in the kernel's words.
    pub policy: String,
    /// The node of the CPU it ran on at the end.
    pub cpu_node: u32,
}

impl Context {
    pub fn new(plan: &Plan, nodewise: &str) -> Self {
        let wanted = nodewise_machine::spec::machine(&plan.spec).expect("the layouts are specs");
        let (scripts, kinds) = (plan.scripts.clone(), plan.kinds.clone());
        let (load, length) = (plan.load, plan.length);
        let mut context =
            Self { seen: wanted.clone(), wanted, scripts, kinds, load, length, nodewise: nodewise.into() };
        context.seen = context.machine().expect("show --json prints a machine file");
        context
    }

    /// The machine as nodewise sees it now.
    pub fn machine(&self) -> Result<Machine, String> {
        let json = self.output(&["show", "--json"])?;
        nodewise_source::machine_file::from_json(&String::from_utf8_lossy(&json.stdout))
            .map_err(|error| error.to_string())
    }

    /// The kernel's `nr_node_ids`: one more than the highest node that can be.
    pub fn nr_node_ids(&self) -> u32 {
        self.seen.possible_nodes.last().map_or(1, |node| node.number() + 1)
    }

    /// Numbers for one purpose: others on every machine.
    pub fn random(&self, purpose: u64) -> Random {
        Random::new(self.scripts.start + (purpose << 32))
    }

    /// Runs nodewise with these arguments.
    pub fn output(&self, arguments: &[&str]) -> Result<Output, String> {
        Command::new(&self.nodewise).args(arguments).output().map_err(|error| format!("nodewise: {error}"))
    }

    /// Runs nodewise and reads what it prints as JSON.
    pub fn json(&self, arguments: &[&str]) -> Result<Value, String> {
        let output = self.output(arguments)?;
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text)
            .map_err(|error| format!("{arguments:?}: {error}: {text}\n{}", complaint(&output)))
    }

    /// Runs the probe under `nodewise run` with these options (separated by blanks).
    pub fn probe(&self, options: &str, kib: u64, kind: &str) -> Result<Probed, String> {
        let mut command = Command::new(&self.nodewise);
        command.arg("run").args(options.split_whitespace()).arg("--").args(self.probe_words(kib, kind));
        probed(options, command)
    }

    /// The command line of the probe.
    pub fn probe_words(&self, kib: u64, kind: &str) -> Vec<String> {
        let own = std::env::current_exe().expect("a test knows its own path");
        vec![own.to_string_lossy().into_owned(), "--probe".to_owned(), kib.to_string(), kind.to_owned()]
    }

    /// The path of nodewise.
    pub fn path(&self) -> &str {
        self.nodewise.to_str().expect("the path of a build is text")
    }
}

/// Runs a command that ends in the probe.
pub fn probed(what: &str, mut command: Command) -> Result<Probed, String> {
    let output = command.output().map_err(|error| format!("{what}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{what}: {}: {}", output.status, complaint(&output)));
    }
    let value: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("{what}: {error}"))?;
    let nodes = value["nodes"].as_array().expect("the probe prints nodes");
    Ok(Probed {
        first_page: value["address"].as_u64().expect("the probe prints its address") / 4096,
        nodes: nodes.iter().map(|node| node.as_i64().expect("nodes are numbers")).collect(),
        cpus: value["cpus"].as_str().expect("the probe prints its CPUs").to_owned(),
        policy: value["policy"].as_str().expect("the probe prints its policy").to_owned(),
        cpu_node: value["cpu_node"].as_u64().expect("the probe prints its node") as u32,
    })
}

pub fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}
