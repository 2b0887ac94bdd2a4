//! A real Slurm: slurmctld, and a slurmd for each of 64 virtual nodes, which stand for machines that were recorded or
//! specified. It starts and ends here, and listens on the loopback address only.

#![expect(clippy::unwrap_used, reason = "what a test does not expect is its failure")]
#![expect(clippy::print_stderr, reason = "a test that cannot run says why")]

#[path = "cli/nodewise.rs"]
#[expect(dead_code, reason = "the tests of the command line use all of it")]
mod nodewise;
#[path = "cli/fleet/recorded.rs"]
#[expect(dead_code, reason = "the tests of the command line use all of it")]
mod recorded;

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::nodewise::{command, corpus, missing, output, run, without_variables};
use crate::recorded::{Recorded, TWO_NODES, difference};

/// Nodes that run, and one more that never does.
const NODES: usize = 64;
/// How long anything may take that another program does: far more than it takes.
const PATIENCE: Duration = Duration::from_secs(180);

/// The machine of the second half of the nodes, and the hosts with something wrong.
const CAPTURE: &str = "32em64t-2n8c+dax+nvme+mic+dimms.tar.bz2";
const SLOW: usize = 11;
const SICK: usize = 47;
/// The host whose slurmd is killed, and the one that has none.
const KILLED: &str = "n4";
const DEAD: usize = NODES + 1;

/// A running cluster. It ends with this value.
struct Cluster {
    folder: tempfile::TempDir,
    conf: PathBuf,
    controller: Child,
    daemons: Vec<Child>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in std::iter::once(&mut self.controller).chain(&mut self.daemons) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The reason why this machine has no Slurm.
fn lacking() -> Option<&'static str> {
    let is_there = |program: &str| {
        ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
            .iter()
            .any(|folder| Path::new(folder).join(program).exists())
    };
    let programs = [("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("sbatch", "slurm-client")];
    programs.into_iter().find(|(program, _)| !is_there(program)).map(|(_, package)| package)
}

/// The first of this many free ports in a row.
fn free_ports(count: usize) -> u16 {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let count = u16::try_from(count).unwrap();
    // Below those that the kernel gives to clients.
    let first = u16::try_from(12_000 + std::process::id() % 10_000).unwrap();
    let mut starts = (0..40).map(|at| 12_000 + (first - 12_000 + at * 257) % 18_000);
    starts.find(|start| (*start..start + count).all(is_free)).expect("there are free ports")
}

fn daemon(name: &str, words: &[&str], log: &Path) -> Child {
    let log = fs::File::create(log).unwrap();
    without_variables(name).args(words).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

impl Cluster {
    /// Starts everything and waits until all nodes are idle.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display().to_string();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let host = host.split('.').next().unwrap();
        let id = output(without_variables("id").arg("-un")).ok();
        let user = id.trim();
        let port = free_ports(NODES + 2);
        fs::create_dir(folder.path().join("state")).unwrap();
        for node in 1..=DEAD {
            fs::create_dir(folder.path().join(format!("spool.n{node}"))).unwrap();
        }
        let conf = folder.path().join("slurm.conf");
        let text = format!(
            "ClusterName=nodewise\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\nSlurmUser={user}\nSlurmdUser={user}\n\
             AuthType=auth/none\nAuthInfo=cred_expire=10\nCredType=cred/none\nCommunicationParameters=NoCtldInAddrAny,NoInAddrAny\n\
             StateSaveLocation={place}/state\nSlurmdSpoolDir={place}/spool.%n\nSlurmctldPidFile={place}/slurmctld.pid\n\
             SlurmdPidFile={place}/slurmd.%n.pid\nSlurmctldLogFile={place}/slurmctld.log\nSlurmdLogFile={place}/slurmd.%n.log\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMailProg=/bin/true\nSlurmdParameters=config_overrides\n\
             ReturnToService=2\nSelectType=select/cons_tres\nSchedulerParameters=batch_sched_delay=0,sched_interval=2\n\
             NodeName=n[1-{DEAD}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{}-{}] CPUs=1\n\
             PartitionName=compute Nodes=ALL Default=YES State=UP\n",
            port + 1,
            usize::from(port) + DEAD,
        );
        fs::write(&conf, text).unwrap();
        let file = conf.display().to_string();
        let controller = daemon("slurmctld", &["-D", "-f", &file], &folder.path().join("slurmctld.err"));
        let mut cluster = Self { folder, conf, controller, daemons: Vec::new() };
        for node in 1..=NODES {
            let daemon = cluster.slurmd(&format!("n{node}"));
            cluster.daemons.push(daemon);
        }
        cluster.wait("nodes are idle", || {
            let idle = cluster.slurm("sinfo", &["-h", "-N", "-t", "idle", "-o", "%N"]);
            idle.lines().count() >= NODES
        });
        cluster
    }

    fn slurmd(&self, node: &str) -> Child {
        let conf = self.conf.display().to_string();
        daemon("slurmd", &["-D", "-f", &conf, "-N", node], &self.path(&format!("slurmd.{node}.err")))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text_path(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// The output of a command of Slurm, however it ends.
    fn slurm(&self, name: &str, words: &[&str]) -> String {
        output(without_variables(name).args(words).env("SLURM_CONF", &self.conf)).stdout
    }

    /// Waits for something that other programs do.
    #[track_caller]
    fn wait(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let began = Instant::now();
        while !is_so() {
            let log = || fs::read_to_string(self.path("slurmctld.log")).unwrap_or_default();
            assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}\n{}", log());
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// The words that a plan needs to be played here: in place of nodewise a script that adds the records of its node.
    fn program(&self) -> String {
        let records = self.path("records");
        fs::create_dir(&records).unwrap();
        let machines = [machine_file(TWO_NODES), machine_file(&capture())];
        for node in 1..=DEAD {
            let host = format!("n{node}");
            let mut machine = machines[usize::from(node > NODES / 2)].clone();
            machine["settings"]["numa_balancing"] = u32::from(node != SICK).into();
            fs::write(records.join(format!("{host}.json")), machine.to_string()).unwrap();
            let slow = difference(node) * if node == SLOW { 1.3 } else { 1.0 };
            Recorded { machine: "", host: &host, attempt: 0, slowness: &[slow, slow] }.words(&records);
        }
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = survey ] || exec {nodewise} \"$@\"\ncd {records} || exit 9\n\
             if [ -e wait.$SLURMD_NODENAME ]; then touch began.$SLURMD_NODENAME; sleep 5; fi\n\
             cd \"$OLDPWD\"\nrecord={records}/$SLURMD_NODENAME\n\
             exec {nodewise} \"$@\" --machine $record.json --from $record.latency --from $record.bandwidth\n",
            nodewise = nodewise::path(),
            records = records.display(),
        );
        let program = self.path("nodewise-of-node");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        program.display().to_string()
    }

    /// Plans a survey of these nodes.
    fn plan(&self, name: &str, nodes: &str, program: &str) -> String {
        let plan = self.text_path(name);
        run(&["fleet", "plan", "--slurm", nodes, "--program", program, "--run", name, "-o", &plan]).ok();
        plan
    }

    /// `fleet run`, which has not begun yet.
    fn follow(&self, plan: &str, limit: &str) -> Command {
        let mut follow = command(["fleet", "run", plan, "--for", limit]);
        follow.env("SLURM_CONF", &self.conf);
        follow
    }
}

fn capture() -> String {
    let found = corpus("captures").into_iter().find(|path| path.ends_with(CAPTURE));
    found.expect("the capture exists").display().to_string()
}

fn machine_file(machine: &str) -> Value {
    run(&["show", "--json", "--machine", machine]).ok_json()
}

fn hosts(list: &Value) -> BTreeSet<&str> {
    list.as_array().unwrap().iter().map(|one| one["host"].as_str().unwrap()).collect()
}

#[test]
fn a_cluster_is_surveyed_and_what_is_wrong_is_found() {
    if let Some(package) = lacking() {
        missing(&format!("Slurm is not complete: Debian's package {package} has what is missing"));
        return;
    }
    let cluster = Cluster::start();
    let program = cluster.program();
    whole(&cluster, &program);
    broken(&cluster, &program);
}

/// All nodes answer.
fn whole(cluster: &Cluster, program: &str) {
    let plan = cluster.plan("whole", &format!("n[1-{NODES}]"), program);
    let began = Instant::now();
    let ran = output(&mut cluster.follow(&plan, "3m"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let merged = Path::new(&plan).join("fleet.txt");
    cluster.wait("the report is written", || merged.exists());
    eprintln!("{NODES} nodes surveyed and reported in {:.1} s", began.elapsed().as_secs_f64());
    let report: Value =
        serde_json::from_str(&fs::read_to_string(Path::new(&plan).join("fleet.json")).unwrap()).unwrap();
    assert_eq!(report["hosts_surveyed"], NODES);
    let groups = report["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{groups:?}");
    assert_eq!(hosts(&report["outliers"]), [format!("n{SLOW}").as_str()].into());
    assert_eq!(hosts(&report["deviations"]), [format!("n{SICK}").as_str()].into());
    for list in ["missing", "failed", "refused", "repeated"] {
        assert_eq!(report[list], Value::Array(Vec::new()), "{list}");
    }
    let is_recorded = |host: &Value| host["recorded"].as_array().is_some_and(|parts| parts.len() == 3);
    assert!(report["hosts"].as_array().unwrap().iter().all(is_recorded));
    shuffled(cluster, &plan);
}

/// The report is the same for any order of names and for copies.
fn shuffled(cluster: &Cluster, plan: &str) {
    let surveys: Vec<Vec<u8>> = fs::read_dir(Path::new(plan).join("results"))
        .unwrap()
        .map(|entry| fs::read(entry.unwrap().path()).unwrap())
        .collect();
    let mut random = nodewise_stats::random::Random::new(19);
    let mut expected = None;
    for round in 0..100 {
        let folder = cluster.path("shuffled");
        fs::create_dir(&folder).unwrap();
        let copies = (0..random.index(20)).map(|_| random.index(surveys.len()));
        let mut order: Vec<usize> = copies.chain(0..surveys.len()).collect();
        random.shuffle(&mut order);
        for (at, survey) in order.iter().enumerate() {
            fs::write(folder.join(format!("{at}.json")), &surveys[*survey]).unwrap();
        }
        let report = run(&["fleet", "report", folder.to_str().unwrap(), "--json"]).stdout;
        assert!(!report.is_empty());
        assert_eq!(*expected.get_or_insert_with(|| report.clone()), report, "round {round}");
        fs::remove_dir_all(&folder).unwrap();
    }
}

/// A slurmd is killed while its task runs, and a host never answers.
fn broken(cluster: &Cluster, program: &str) {
    let wait = cluster.path(&format!("records/wait.{KILLED}"));
    fs::write(&wait, "").unwrap();
    let plan = cluster.plan("broken", &format!("n[1-8],n{DEAD}"), program);
    let mut following = cluster.follow(&plan, "100ms");
    output(&mut following);
    cluster.wait("the task of the node runs", || cluster.path(&format!("records/began.{KILLED}")).exists());
    let pid = fs::read_to_string(cluster.path(&format!("slurmd.{KILLED}.pid"))).unwrap();
    output(without_variables("kill").args(["-9", pid.trim()]));
    fs::remove_file(&wait).unwrap();
    // What the controller finds out by itself after SlurmdTimeout.
    let down = format!("NodeName={KILLED}");
    cluster.slurm("scontrol", &["update", &down, "State=DOWN", "Reason=killed"]);
    let mut again = cluster.slurmd(KILLED);
    cluster.slurm("scontrol", &["update", &down, "State=RESUME"]);
    let second = Path::new(&plan).join(format!("results/{KILLED}.1.json"));
    cluster.wait("the task is requeued and has run again", || second.exists());
    cluster.wait("the others have answered", || {
        (1..=8).all(|node| {
            Path::new(&plan).join("results").join(format!("n{node}.{}.json", u8::from(node == 4))).exists()
        })
    });
    let report: Value = run(&["fleet", "report", &plan, "--json"]).json();
    assert_eq!(report["hosts_surveyed"], 8, "{report}");
    assert_eq!(report["missing"], serde_json::json!([format!("n{DEAD}")]));
    let line = report["hosts"].as_array().unwrap().iter().find(|host| host["host"] == KILLED).unwrap();
    assert_eq!(line["attempt"], 1);
    cluster.slurm("scancel", &["--name=nodewise-broken"]);
    let _ = again.kill();
    let _ = again.wait();
}
