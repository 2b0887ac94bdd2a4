//! `nodewise.shm/1` and `nodewise.shm-object/1`.

use serde::Serialize;

use super::pretty;
use crate::digest::shm::{Object, Shared};

/// The schema of a list.
pub const SCHEMA: &str = "nodewise.shm/1";
/// The schema of one object.
pub const OBJECT_SCHEMA: &str = "nodewise.shm-object/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    segments: Vec<SegmentJson>,
    mounts: Vec<MountJson<'a>>,
}

#[derive(Serialize)]
struct SegmentJson {
    key: i32,
    id: u32,
    user: u32,
    mode: String,
    size_bytes: u64,
    resident_bytes: Option<u64>,
    swapped_bytes: Option<u64>,
    attaches: u64,
}

#[derive(Serialize)]
struct MountJson<'a> {
    folder: &'a str,
    kind: &'a str,
    size_bytes: Option<u64>,
    policy: Option<&'a str>,
    huge: Option<&'a str>,
}

/// Writes shared memory as JSON.
pub fn shm(shared: &Shared) -> String {
    let segments = shared.segments.iter().map(|segment| SegmentJson {
        key: segment.key,
        id: segment.id,
        user: segment.user,
        mode: format!("{:03o}", segment.mode & 0o777),
        size_bytes: segment.size.get(),
        resident_bytes: segment.resident.map(nodewise_machine::Bytes::get),
        swapped_bytes: segment.swapped.map(nodewise_machine::Bytes::get),
        attaches: segment.attaches,
    });
    let mounts = shared.mounts.iter().map(|mount| MountJson {
        folder: &mount.folder,
        kind: &mount.kind,
        size_bytes: mount.size.map(nodewise_machine::Bytes::get),
        policy: mount.policy.as_deref(),
        huge: mount.huge.as_deref(),
    });
    pretty(&Document { schema: SCHEMA, segments: segments.collect(), mounts: mounts.collect() })
}

#[derive(Serialize)]
struct ObjectJson<'a> {
    schema: &'static str,
    name: &'a str,
    size_bytes: u64,
    nodes: Vec<NodeJson>,
    absent_bytes: u64,
    policies: Vec<PolicyJson<'a>>,
    misplaced_bytes: Option<u64>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct NodeJson {
    node: u32,
    size_bytes: u64,
}

#[derive(Serialize)]
struct PolicyJson<'a> {
    offset_bytes: u64,
    length_bytes: u64,
    policy: &'a str,
}

/// Writes one segment or file as JSON.
pub fn object(object: &Object) -> String {
    let nodes =
        object.nodes.iter().map(|(node, size)| NodeJson { node: node.number(), size_bytes: size.get() });
    let policies = object.policies.iter().map(|range| PolicyJson {
        offset_bytes: range.offset,
        length_bytes: range.length,
        policy: &range.policy,
    });
    pretty(&ObjectJson {
        schema: OBJECT_SCHEMA,
        name: &object.name,
        size_bytes: object.size.get(),
        nodes: nodes.collect(),
        absent_bytes: object.absent.get(),
        policies: policies.collect(),
        misplaced_bytes: object.misplaced.map(nodewise_machine::Bytes::get),
        notes: &object.notes,
    })
}
