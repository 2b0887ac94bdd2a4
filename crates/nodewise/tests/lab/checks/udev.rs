//! Rules that `nodewise export udev` prints, followed by a real udev.

use std::fs;
use std::path::Path;
use std::process::Command;

use nodewise_machine::NodeId;

use super::same;
use crate::kernel;
use crate::nodewise::Context;
use crate::setting::Setting;

/// The folder for rules that last until the next boot.
const RULES: &str = "/run/udev/rules.d";
/// The daemon, which is not in PATH.
const DAEMON: [&str; 2] = ["/usr/lib/systemd/systemd-udevd", "/lib/systemd/systemd-udevd"];

fn pool(node: NodeId) -> String {
    format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages")
}

fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(words).output().map_err(|error| format!("{program}: {error}"))?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{program} {words:?}: {}", said())) }
}

/// The daemon, until this is dropped.
struct Udev;

impl Udev {
    fn start() -> Result<Self, String> {
        let daemon = DAEMON.into_iter().find(|path| Path::new(path).exists());
        run(daemon.ok_or("systemd-udevd is not installed (package udev)")?, &["--daemon"]).map(|()| Self)
    }
}

impl Drop for Udev {
    fn drop(&mut self) {
        let _ = run("udevadm", &["control", "--exit"]);
        let _ = fs::remove_dir_all("/run/udev");
    }
}

/// Pools of each node are filled as they were when the rules were written.
pub fn pools(context: &Context) -> Result<(), String> {
    let nodes: Vec<NodeId> = context.seen.nodes_with_memory().iter().collect();
    let wanted: Vec<u64> = (1..).step_by(3).zip(&nodes).map(|(pages, _)| pages).collect();
    let pools: Vec<String> = nodes.iter().map(|node| pool(*node)).collect();
    // Each is put back at the end.
    let kept = pools.iter().zip(&wanted).map(|(path, pages)| Setting::with(path, &pages.to_string()));
    let kept = kept.collect::<Result<Vec<_>, _>>()?;
    let rules = context.output(&["export", "udev"])?;
    let text = String::from_utf8_lossy(&rules.stdout);
    same("rules", text.lines().filter(|line| !line.starts_with('#')).count(), nodes.len())?;
    fs::create_dir_all(RULES).map_err(|error| format!("{RULES}: {error}"))?;
    fs::write(format!("{RULES}/99-nodewise.rules"), &rules.stdout).map_err(|error| error.to_string())?;
    kept.iter().try_for_each(|pool| pool.set("0"))?;
    let _udev = Udev::start()?;
    run("udevadm", &["trigger", "--action=add", "--subsystem-match=node"])?;
    run("udevadm", &["settle", "--timeout=120"])?;
    let found: Vec<u64> = pools
        .iter()
        .map(|path| kernel::line(path)?.parse().map_err(|error| format!("{path}: {error}")))
        .collect::<Result<_, String>>()?;
    same("pages of the pools", found, wanted)
}
