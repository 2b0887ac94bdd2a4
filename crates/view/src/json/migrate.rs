//! `nodewise.migrate/1`.

use serde::Serialize;

use super::pretty;
use crate::digest::migrate::{Amount, Migration};

/// The schema.
pub const SCHEMA: &str = "nodewise.migrate/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    pid: u32,
    name: &'a str,
    started_at_ticks: u64,
    ending: &'static str,
    plan: Vec<FlowJson<'a>>,
    before: Vec<AmountJson>,
    after: Option<Vec<AmountJson>>,
    moved_bytes: u64,
    gone_bytes: u64,
    failed: Vec<FailedJson<'a>>,
    calls: u64,
    took_s: f64,
    paused_s: f64,
    listing_s: f64,
    notes: &'a [String],
    undo: Option<&'a str>,
}

#[derive(Serialize)]
struct FlowJson<'a> {
    from: u32,
    to: &'a str,
    size_bytes: u64,
}

#[derive(Serialize)]
struct AmountJson {
    kind: &'static str,
    node: u32,
    size_bytes: u64,
}

#[derive(Serialize)]
struct FailedJson<'a> {
    reason: &'static str,
    errno: Option<i32>,
    sentence: &'a str,
    size_bytes: u64,
}

fn amounts(amounts: &[Amount]) -> Vec<AmountJson> {
    let amount =
        |of: &Amount| AmountJson { kind: of.kind, node: of.node.number(), size_bytes: of.size.get() };
    amounts.iter().map(amount).collect()
}

/// Writes a migration as JSON.
pub fn migrate(migration: &Migration) -> String {
    let plan = migration.plan.iter().map(|flow| FlowJson {
        from: flow.from.number(),
        to: &flow.to,
        size_bytes: flow.size.get(),
    });
    let failed = migration.failed.iter().map(|failed| FailedJson {
        reason: failed.reason,
        errno: failed.errno,
        sentence: &failed.sentence,
        size_bytes: failed.size.get(),
    });
    pretty(&Document {
        schema: SCHEMA,
        pid: migration.pid,
        name: &migration.name,
        started_at_ticks: migration.started_at_ticks,
        ending: migration.ending.word(),
        plan: plan.collect(),
        before: amounts(&migration.before),
        after: migration.after.as_deref().map(amounts),
        moved_bytes: migration.moved.get(),
        gone_bytes: migration.gone.get(),
        failed: failed.collect(),
        calls: migration.calls,
        took_s: migration.took.as_secs_f64(),
        paused_s: migration.paused.as_secs_f64(),
        listing_s: migration.listing.as_secs_f64(),
        notes: &migration.notes,
        undo: migration.undo.as_deref(),
    })
}
