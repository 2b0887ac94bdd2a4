//! The reports and diagrams that are looked at: of captures, of recordings, of made-up measurements, and one whose names
//! would be programs in a page that took them for such.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::bench::fleet;
use crate::program;
use crate::suite::lint;

/// A report that was made.
pub struct PageFile {
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Whether axe-core examines it: it takes minutes for a table with 100,000 cells.
    pub is_examined: bool,
}

/// The machine whose names become [`EVIL`].
const SPEC: &str = "2x(2c 4G); dist=21; dev=net:eth0@0; dev=gpu:0@1; kernel=6.12.5";

/// Everything that was made.
pub struct Made {
    pub reports: Vec<PageFile>,
    /// Files with the ending `mmd`, by name.
    pub diagrams: Vec<String>,
}

/// A report by its documents: commands of nodewise that print one, and made-up ones.
struct Recipe {
    name: &'static str,
    commands: &'static [&'static [&'static str]],
    made_up: &'static [&'static str],
    is_examined: bool,
}

const RECIPES: [Recipe; 3] = [
    Recipe {
        name: "devices",
        commands: &[
            &["show", "--machine", "data/captures/32em64t-2n8c+dax+nvme+mic+dimms.tar.bz2"],
            &["doctor", "--machine", "data/captures/32em64t-2n8c+dax+nvme+mic+dimms.tar.bz2"],
        ],
        made_up: &[],
        is_examined: true,
    },
    Recipe {
        name: "eight-nodes",
        commands: &[
            &["show", "--machine", "data/captures/16amd64-8n2c-cpusets.tar.bz2"],
            &["doctor", "--from", "data/recordings/swap-beside-free.nwr"],
        ],
        made_up: &["latency-8", "loaded-8", "sweep-8", "bandwidth-8", "c2c-8", "io-8"],
        is_examined: true,
    },
    Recipe {
        name: "64-nodes",
        commands: &[&["show", "--machine", "data/captures/256ia64-64n2s2c.tar.bz2"]],
        made_up: &["latency-64", "bandwidth-64"],
        is_examined: false,
    },
];

/// The pages of a report of this machine.
const LIVE: &str = "doctor,latency,loaded,bandwidth,c2c,io";

/// The largest report on a thousand hosts.
const MOST_FLEET: u64 = 5_000_000;

/// A name that leaves an attribute, an element and a script, and would drive a terminal.
const EVIL: &str = "</script><script>window.pwned=1</script><img src=x onerror=\"window.pwned=1\">\
                    \"onload=\"window.pwned=1\" ']]><!-- \u{1b}[2J\u{202e}";

/// Makes everything.
pub fn make(root: &Path, nodewise: &Path, folder: &Path, live: bool) -> Result<Made> {
    // A test of the views writes the documents of measurements.
    let mut tests = program::cargo(root);
    tests.args(["test", "--package", "nodewise-view", "--test", "view", "--", "documents::"]);
    program::quiet(lint::while_compiling(&mut tests))?;
    let maker = Maker { root, nodewise, folder };
    let mut reports = Vec::new();
    for recipe in &RECIPES {
        reports.push(maker.report(recipe)?);
    }
    let (before, now) = (maker.file("devices.html"), maker.file("eight-nodes.html"));
    maker.nodewise(&["report", "--extract", &now, "--into", &maker.emptied("extracted")?])?;
    reports.push(maker.written(
        "compared",
        &["--from", &maker.file("extracted/eight-nodes-0.json"), "--against", &before],
        true,
    )?);
    reports.push(maker.hostile()?);
    reports.push(maker.fleet("fleet", 24, true)?);
    // Of a thousand hosts axe-core would look for minutes.
    reports.push(maker.fleet("fleet-1000", 1000, false)?);
    if live {
        reports.push(maker.written("live", &["--quick", "--with", LIVE], true)?);
    }
    Ok(Made { reports, diagrams: maker.diagrams()? })
}

struct Maker<'a> {
    root: &'a Path,
    nodewise: &'a Path,
    folder: &'a Path,
}

impl Maker<'_> {
    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// A folder of this name with nothing in it.
    fn emptied(&self, name: &str) -> Result<String> {
        let folder = self.folder.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder.display().to_string())
    }

    /// The output of nodewise; exit code 1 is a finding.
    fn nodewise(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(self.nodewise);
        let line = program::line(command.current_dir(self.root).args(words));
        let output = command.output().context(line.clone())?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(matches!(output.status.code(), Some(0 | 1)), "{line}: {}\n{said}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    fn report(&self, recipe: &Recipe) -> Result<PageFile> {
        let mut words = Vec::new();
        for (at, command) in recipe.commands.iter().enumerate() {
            let file = self.file(&format!("{}-{at}.json", recipe.name));
            fs::write(&file, self.nodewise(&[command, &["--json"][..]].concat())?)?;
            words.extend(["--from".to_owned(), file]);
        }
        let documents = self.root.join("target/tmp/documents");
        for name in recipe.made_up {
            words.extend(["--from".to_owned(), documents.join(format!("{name}.json")).display().to_string()]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.written(recipe.name, &words, recipe.is_examined)
    }

    fn written(&self, name: &str, words: &[&str], is_examined: bool) -> Result<PageFile> {
        let file = self.file(&format!("{name}.html"));
        self.nodewise(&[&["report", "-o", &file], words].concat())?;
        Ok(PageFile { name: name.to_owned(), bytes: fs::metadata(&file)?.len(), is_examined })
    }

    /// A report on this many hosts.
    fn fleet(&self, name: &str, hosts: usize, is_examined: bool) -> Result<PageFile> {
        let surveys = self.folder.join(format!("{name}-surveys"));
        fleet::make(self.nodewise, &surveys, hosts)?;
        let file = self.file(&format!("{name}.html"));
        self.nodewise(&["fleet", "report", &surveys.display().to_string(), "--html", &file])?;
        let bytes = fs::metadata(&file)?.len();
        ensure!(bytes < MOST_FLEET, "{name}.html has {bytes} bytes");
        Ok(PageFile { name: name.to_owned(), bytes, is_examined })
    }

    /// A report of a machine, findings and figures whose names are [`EVIL`].
    fn hostile(&self) -> Result<PageFile> {
        let folder = PathBuf::from(self.emptied("hostile")?);
        let mut machine: Value =
            serde_json::from_str(&self.nodewise(&["show", "--json", "--machine", SPEC])?)?;
        machine["architecture"] = EVIL.into();
        machine["cpu_models"] = json!([{ "name": EVIL, "cpus": "0-3" }]);
        machine["product"] = json!({ "vendor": EVIL, "name": EVIL, "firmware_version": EVIL });
        for device in machine["devices"].as_array_mut().context("no devices")? {
            device["names"][0]["name"] = EVIL.into();
        }
        let mut findings: Value =
            serde_json::from_str(&fs::read_to_string(self.folder.join("eight-nodes-1.json"))?)?;
        poison(&mut findings);
        let figures = fs::read_to_string(self.root.join("target/tmp/documents/latency-8.json"))?;
        let mut figures: Value = serde_json::from_str(&figures)?;
        let Some(model) = figures["conditions"]["cpu_model"].as_str() else { bail!("no cpu_model") };
        ensure!(!model.is_empty());
        figures["conditions"]["cpu_model"] = EVIL.into();
        let mut words = Vec::new();
        for (name, text) in [
            ("machine.json", machine.to_string()),
            ("doctor.json", findings.to_string()),
            ("\"onload=\"pwned=1\"<script>.json", figures.to_string()),
        ] {
            let file = folder.join(name);
            fs::write(&file, text)?;
            words.extend(["--from".to_owned(), file.display().to_string()]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.written("hostile", &words, true)
    }

    /// The diagram of each capture, and of a machine with hostile names.
    fn diagrams(&self) -> Result<Vec<String>> {
        let captures = self.root.join("data/captures");
        let mut machines = Vec::new();
        for entry in fs::read_dir(&captures)? {
            let path = entry?.path();
            let name = path.file_name().context("an entry has a name")?.to_string_lossy().into_owned();
            machines.push((name.trim_end_matches(".tar.bz2").to_owned(), path.display().to_string()));
        }
        machines.sort();
        machines.push(("hostile".to_owned(), self.file("hostile/machine.json")));
        for (name, machine) in &machines {
            let text = self.nodewise(&["export", "mermaid", "--machine", machine])?;
            fs::write(self.folder.join(format!("{name}.mmd")), text)?;
        }
        Ok(machines.into_iter().map(|(name, _)| name).collect())
    }
}

/// Puts [`EVIL`] into every text of a document but the name of its schema.
fn poison(value: &mut Value) {
    match value {
        Value::String(text) => *text = EVIL.to_owned(),
        Value::Array(items) => items.iter_mut().for_each(poison),
        Value::Object(fields) => {
            fields.iter_mut().filter(|(key, _)| *key != "schema").for_each(|(_, value)| poison(value));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
