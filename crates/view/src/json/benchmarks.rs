//! `nodewise.benchmarks/1`: what a suite holds, and what is missing here to run it.

use std::collections::BTreeMap;

use nodewise_experiment::suite::{Benchmark, Need, Origin, Suite, Threads};
use serde::Serialize;

use super::pretty;
use super::tune::MetricJson;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.benchmarks/1";

/// Writes a suite as JSON, indented, with a line end. `lacking` are the needs that are not here, `install`
/// the line that installs those of Debian, `versions` the packages of programs that are here.
pub fn benchmarks(
    suite: &Suite,
    lacking: &[&Need],
    install: Option<&str>,
    versions: &BTreeMap<String, Option<String>>,
) -> String {
    pretty(&Document {
        schema: SCHEMA,
        suite: &suite.title,
        about: suite.about.as_deref(),
        install,
        benchmarks: suite
            .benchmarks
            .iter()
            .map(|one| BenchmarkJson::from_benchmark(one, lacking, versions))
            .collect(),
    })
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    suite: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    install: Option<&'a str>,
    benchmarks: Vec<BenchmarkJson<'a>>,
}

#[derive(Serialize)]
struct BenchmarkJson<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<&'a str>,
    command: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    prepare: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prepare_each: Option<&'a str>,
    metric: MetricJson<'a>,
    threads: Vec<ThreadsJson>,
    memory_traffic: bool,
    time_limit_s: u64,
    needs: Vec<NeedJson<'a>>,
}

/// A number, or `all`.
#[derive(Serialize)]
#[serde(untagged)]
enum ThreadsJson {
    Count(u32),
    Word(&'static str),
}

#[derive(Serialize)]
struct NeedJson<'a> {
    program: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<&'a str>,
    there: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
}

impl<'a> BenchmarkJson<'a> {
    fn from_benchmark(
        benchmark: &'a Benchmark,
        lacking: &[&Need],
        versions: &'a BTreeMap<String, Option<String>>,
    ) -> Self {
        let threads = |threads: &Threads| match threads {
            Threads::Count(count) => ThreadsJson::Count(*count),
            Threads::All => ThreadsJson::Word("all"),
        };
        let need = |need: &'a Need| {
            let (package, address) = match &need.origin {
                Origin::Package(package) => (Some(package.as_str()), None),
                Origin::Address(address) => (None, Some(address.as_str())),
            };
            let version = versions.get(&need.program).and_then(Option::as_deref);
            let there = !lacking.contains(&need);
            NeedJson { program: &need.program, package, address, there, version }
        };
        let unit = Some(benchmark.metric.unit.as_str()).filter(|unit| !unit.is_empty());
        Self {
            name: &benchmark.name,
            about: benchmark.about.as_deref(),
            command: benchmark.command.text(),
            prepare: benchmark.prepare.as_ref().map(|command| command.text()),
            prepare_each: benchmark.prepare_each.as_ref().map(|command| command.text()),
            metric: MetricJson::from_metric(&benchmark.metric.metric).with_unit(unit),
            threads: benchmark.threads.iter().map(threads).collect(),
            memory_traffic: benchmark.memory_traffic,
            time_limit_s: benchmark.timeout.as_secs(),
            needs: benchmark.needs.iter().map(need).collect(),
        }
    }
}
