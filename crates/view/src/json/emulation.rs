//! `nodewise.emulation-status/1`, `-plan/1`, `-verify/1` and `-change/1`.

use serde::Serialize;

use super::pretty;
use crate::digest::emulation::{Board, Changed, Planned, Status, Verified};

/// The schema of the state.
pub const STATUS_SCHEMA: &str = "nodewise.emulation-status/1";
/// The schema of a plan.
pub const PLAN_SCHEMA: &str = "nodewise.emulation-plan/1";
/// The schema of a verification.
pub const VERIFY_SCHEMA: &str = "nodewise.emulation-verify/1";
/// The schema of a change of boot files.
pub const CHANGE_SCHEMA: &str = "nodewise.emulation-change/1";

#[derive(Serialize)]
struct StatusJson<'a> {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_supported: Option<bool>,
    supported_by: &'a str,
    requests: Vec<RequestJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_files: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_emulated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hardware_node_count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignored: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_log: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    board: Option<BoardJson<'a>>,
    without_effect: Vec<VainJson<'a>>,
    advice: &'a [String],
}

#[derive(Serialize)]
struct RequestJson<'a> {
    place: &'a str,
    start: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fake: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
}

#[derive(Serialize)]
struct VainJson<'a> {
    path: &'a str,
    line: u32,
}

#[derive(Serialize)]
struct BoardJson<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    banklow: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_banklow_set: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bank_layout: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    banklow_unknown: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_loader_built: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_card_queue_asked: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_card_queue_used: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sleep: Option<&'a str>,
    sleep_ways: &'a [String],
}

fn board(board: &Board) -> BoardJson<'_> {
    let known = board.banklow.as_ref().and_then(|banklow| banklow.as_ref().ok());
    BoardJson {
        model: &board.model,
        banklow: known.map(|banklow| banklow.value),
        is_banklow_set: known.map(|banklow| banklow.is_set),
        bank_layout: known.map(|banklow| banklow.layout),
        banklow_unknown: board
            .banklow
            .as_ref()
            .and_then(|banklow| banklow.as_ref().err().map(String::as_str)),
        boot_loader_built: board.boot_loader.as_deref(),
        is_card_queue_asked: board.card_queue_asked,
        is_card_queue_used: board.card_queue_used,
        sleep: board.sleep.as_ref().map(|(_, chosen)| chosen.as_str()),
        sleep_ways: board.sleep.as_ref().map_or(&[], |(ways, _)| ways),
    }
}

/// Writes what a machine can, was asked for and has.
pub fn status(status: &Status) -> String {
    let effect = status.effect.as_ref();
    pretty(&StatusJson {
        schema: STATUS_SCHEMA,
        image: status.image.as_deref(),
        kernel: status.kernel.as_deref(),
        is_supported: status.support.is_there,
        supported_by: &status.support.by,
        requests: status
            .requests
            .iter()
            .map(|request| RequestJson {
                place: &request.place,
                start: request.when.word(),
                fake: request.fake.as_deref(),
                policy: request.policy.as_deref(),
            })
            .collect(),
        boot_files: status.boot_files.as_deref(),
        node_count: effect.map(|effect| effect.nodes),
        is_emulated: effect.and_then(|effect| effect.is_emulated),
        hardware_node_count: effect.and_then(|effect| effect.hardware_nodes),
        policy: effect.and_then(|effect| effect.policy.as_deref()),
        ignored: status.ignored.as_deref(),
        no_log: status.no_log.as_deref(),
        board: status.board.as_ref().map(board),
        without_effect: status.vain.iter().map(|(path, line)| VainJson { path, line: *line }).collect(),
        advice: &status.advice,
    })
}

#[derive(Serialize)]
struct PlanJson<'a> {
    schema: &'static str,
    word: &'a str,
    kernel: &'a str,
    ranges_from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed_architecture: Option<&'static str>,
    nodes: Vec<NodeJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distances: Option<Vec<Vec<Option<u32>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_as_asked: Option<&'a str>,
}

#[derive(Serialize)]
struct NodeJson {
    node: u32,
    hardware_node: u32,
    memory_bytes: u64,
    ranges: Vec<RangeJson>,
    cpus: String,
    fallback_nodes: Vec<u32>,
}

#[derive(Serialize)]
struct RangeJson {
    first_byte: u64,
    last_byte: u64,
}

/// Writes what an emulation would be.
pub fn plan(planned: &Planned<'_>) -> String {
    let node =
        |node: &nodewise_model::fake::outcome::EmulatedNode, order: &[nodewise_machine::NodeId]| NodeJson {
            node: node.id.number(),
            hardware_node: node.physical.number(),
            memory_bytes: node.memory.get(),
            ranges: node
                .ranges
                .iter()
                .map(|(start, end)| RangeJson { first_byte: *start, last_byte: end - 1 })
                .collect(),
            cpus: node.cpus.to_string(),
            fallback_nodes: order.iter().map(|node| node.number()).collect(),
        };
    let made = planned.made;
    pretty(&PlanJson {
        schema: PLAN_SCHEMA,
        word: planned.word,
        kernel: planned.kernel,
        ranges_from: planned.basis.word(),
        assumed_architecture: planned.basis.assumed_architecture(),
        nodes: made
            .map(|made| made.nodes.iter().map(|own| node(own, made.orders.from(own.id))).collect())
            .unwrap_or_default(),
        distances: made.map(|made| made.distances.rows().map(|(_, row)| row.to_vec()).collect()),
        not_as_asked: planned.remark,
    })
}

#[derive(Serialize)]
struct VerifyJson<'a> {
    schema: &'static str,
    holds: bool,
    checks: Vec<CheckJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    brought: Option<BroughtJson<'a>>,
    advice: &'a [String],
}

#[derive(Serialize)]
struct CheckJson<'a> {
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<bool>,
    reason: &'a str,
}

#[derive(Serialize)]
struct BroughtJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    node_count_before: Option<usize>,
    node_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_before_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_before: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_before: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    figures: &'a str,
}

/// Writes whether an emulation works.
pub fn verify(verified: &Verified) -> String {
    let brought = verified.brought.as_ref().map(|brought| BroughtJson {
        node_count_before: brought.nodes.0,
        node_count: brought.nodes.1,
        memory_before_bytes: brought.memory.map(|(before, _)| before.get()),
        memory_bytes: brought.memory.map(|(_, now)| now.get()),
        kernel_before: brought.kernel.as_ref().map(|(before, _)| before.as_str()),
        policy_before: brought.policy.as_ref().map(|(before, _)| before.as_str()),
        policy: brought.policy.as_ref().map(|(_, now)| now.as_str()),
        figures: brought.figures.text(),
    });
    let checks = verified.checks.iter();
    pretty(&VerifyJson {
        schema: VERIFY_SCHEMA,
        holds: verified.holds(),
        checks: checks
            .map(|check| CheckJson { what: check.what, holds: check.holds, reason: &check.reason })
            .collect(),
        brought,
        advice: &verified.advice,
    })
}

#[derive(Serialize)]
struct ChangeJson<'a> {
    schema: &'static str,
    is_dry: bool,
    files: Vec<FileJson<'a>>,
    right_already: &'a [String],
    remarks: &'a [String],
    next: &'a [String],
}

#[derive(Serialize)]
struct FileJson<'a> {
    path: &'a str,
    diff: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<&'a str>,
}

/// Writes a change of boot files.
pub fn changed(schema: &'static str, changed: &Changed) -> String {
    let files = changed.files.iter();
    pretty(&ChangeJson {
        schema,
        is_dry: changed.is_dry,
        files: files
            .map(|file| FileJson { path: &file.path, diff: &file.diff, backup: file.backup.as_deref() })
            .collect(),
        right_already: &changed.right,
        remarks: &changed.remarks,
        next: &changed.next,
    })
}
