//! Runs a server with a client: the server under the placement, the client beside it, and what is
//! compared is the client's time, or a number that the client prints.
//!
//! A run goes like this: no one may answer at the server's port yet; the server starts under the
//! placement; it is waited for until it is [`Ready`]; the client runs to its end; the server is asked to
//! stop. Its pages are looked at while the client runs, and the counters hold both of them.
//!
//! The client is not a part of what is placed. Where the placement leaves CPUs free the client runs on
//! these, as a client on another machine would take none of the server's; elsewhere it may run
//! anywhere. Its memory is placed as the kernel does by itself.

mod ready;
mod server;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nodewise_machine::CpuSet;
use nodewise_syscall::Finished;

use crate::command::environment::Padding;
use crate::command::output::Output;
use crate::command::supervise::Supervision;
use crate::command::{Counters, Program, judge, no_output, setup};
use crate::evidence::{Counter, Evidence};
use crate::executor::{Arm, Ending, Executor, Run, Surroundings, Witness};
use crate::fidelity::Look;
use crate::metric::Metrics;
use nodewise_machine::placement::Placement;
use server::Server;

pub use ready::{Ready, ReadyError};

/// How long a server may take to be ready, and to stop after SIGTERM, before SIGKILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From its start until it is ready.
    pub ready: Duration,
    /// From SIGTERM until it has ended.
    pub stop: Duration,
}

impl Patience {
    /// A minute to be ready, and ten seconds to stop.
    pub const DEFAULT: Self = Self { ready: Duration::from_secs(60), stop: Duration::from_secs(10) };
}

/// A server and its client.
#[derive(Clone, Debug)]
pub struct Service {
    /// The server; it stays in the foreground.
    pub server: Program,
    pub ready: Ready,
    /// The client; its time limit is that of a run.
    pub client: Program,
    /// How long is waited for the server.
    pub patience: Patience,
}

/// Runs a server under the placements of arms, and its client.
pub struct ServeExecutor<'a> {
    service: Service,
    metrics: Metrics,
    padding: Padding,
    cpus: CpuSet,
    counters: Vec<Counter>,
    limit: Option<Duration>,
    witness: &'a mut dyn Witness,
    interrupt: &'a AtomicBool,
}

impl<'a> ServeExecutor<'a> {
    /// An executor for the arms of a plan, on these CPUs.
    pub fn new(
        service: Service,
        plan: &crate::study::Plan,
        cpus: CpuSet,
        witness: &'a mut dyn Witness,
        interrupt: &'a AtomicBool,
    ) -> Self {
        let padding = Padding::over(plan.arms().iter().map(|arm| &arm.environment));
        let metrics = plan.metrics();
        Self { service, metrics, padding, cpus, counters: Vec::new(), limit: None, witness, interrupt }
    }

    /// The executor with events counted in the server; those that cannot be counted are passed over.
    #[must_use]
    pub fn with_counters(self, counters: impl IntoIterator<Item = Counter>) -> Self {
        Self { counters: counters.into_iter().collect(), ..self }
    }

    fn try_run(&mut self, arm: &Arm) -> Result<Run, Ending> {
        self.service.ready.free().map_err(|error| Ending::Service(error.to_string()))?;
        self.witness.before();
        let counting = Counters::open(&self.counters);
        let server = Server::start(&self.service.server, arm, self.padding)?;
        let driven = self.drive(arm, server);
        let surroundings = self.witness.after();
        let evidence = Evidence { events: counting.read(), ..self.witness.evidence() };
        let Driven { run, server, client } = driven?;
        let own = client.saturating_add(server.usage.cpu_time());
        let usage = Some(server.usage);
        Ok(Run { usage, surroundings, evidence: Evidence { own: Some(own), ..evidence }, ..run })
    }

    /// Waits for the server, runs the client, and stops the server.
    fn drive(&mut self, arm: &Arm, server: Server) -> Result<Driven, Ending> {
        let Service { ready, patience, .. } = &self.service;
        let (limit, stop) = (patience.ready, patience.stop);
        let is_ready = server.wait_until(ready, limit, self.interrupt);
        let driven = is_ready.and_then(|()| self.client(arm, &server));
        let left = server.end_by_itself();
        let complaint = server.complaint();
        // Gently, whatever happened before: it may have files to close.
        let stopped = server.stop(stop);
        let (run, client) = driven?;
        let run = match (left, run.ending) {
            (_, Ending::Interrupted) => Run { ending: Ending::Interrupted, ..run },
            (Some(how), _) => {
                let what = format!("the server {how} while the client ran");
                Run { ending: Ending::Service(what), complaint, ..run }
            }
            (
                None,
                ending @ (Ending::Code(_) | Ending::Signal(_) | Ending::TimedOut(_) | Ending::Stopped(_)),
            ) => Run { ending: Ending::Service(format!("the client {ending}")), ..run },
            (None, ending) => Run { ending, ..run },
        };
        Ok(Driven { run, server: stopped?, client })
    }

    /// Runs the client; gives its time on CPUs, too.
    fn client(&mut self, arm: &Arm, server: &Server) -> Result<(Run, Duration), Ending> {
        let program = &self.service.client;
        let no_output = |error: std::io::Error| Ending::NotStarted(no_output(&error));
        let output = Output::new().map_err(no_output)?;
        let command = program.command(arm, self.padding, &output).map_err(no_output)?;
        let setup = setup(&beside(&arm.placement, &self.cpus));
        let mut witness = OfServer { witness: &mut *self.witness, server: server.id() };
        let limit = program.limited(self.limit);
        let supervision = Supervision { limit, interrupt: self.interrupt, witness: &mut witness };
        let ended = supervision.run(|| setup.spawn_guarded(command)).map_err(|error| {
            Ending::Service(format!("the client could not be started: {}", program.start_error(&error)))
        })?;
        let used = ended.finished.usage.cpu_time();
        Ok((judge(ended, &self.metrics, &arm.placement, &output), used))
    }
}

/// The rest of a server and its client.
struct Driven {
    run: Run,
    server: Finished,
    client: Duration,
}

impl Executor for ServeExecutor<'_> {
    fn limit(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }

    fn run(&mut self, arm: &Arm) -> Run {
        self.try_run(arm).unwrap_or_else(Run::ended)
    }
}

/// Where the client of a server under this placement runs: on the CPUs that it leaves.
fn beside(placement: &Placement, cpus: &CpuSet) -> Placement {
    let left = placement.cpus.as_ref().map(|taken| cpus.difference(taken));
    match left.filter(|left| !left.is_empty()) {
        Some(left) => Placement::on_cpus(left),
        None => Placement::DEFAULT,
    }
}

/// Looks at the server's pages while the client runs.
struct OfServer<'a> {
    witness: &'a mut dyn Witness,
    server: u32,
}

impl Witness for OfServer<'_> {
    fn before(&mut self) {}
    fn look(&mut self, _client: u32) -> Look {
        self.witness.look(self.server)
    }
    fn is_stopped(&mut self, client: u32) -> bool {
        self.witness.is_stopped(client) || self.witness.is_stopped(self.server)
    }
    fn after(&mut self) -> Surroundings {
        Surroundings::default()
    }
}

#[cfg(test)]
mod tests;
