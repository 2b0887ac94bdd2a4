//! `nodewise.hugepages/1` and `nodewise.hugepages-change/1`.

use serde::Serialize;

use super::pretty;
use crate::digest::hugepages::{PoolChange, Pools, PoolsChange};

/// The schema of pools.
pub const SCHEMA: &str = "nodewise.hugepages/1";
/// The schema of pools that a boot file asks for.
pub const BOOT_SCHEMA: &str = "nodewise.hugepages-boot/1";
/// The schema of a change of pools.
pub const CHANGE_SCHEMA: &str = "nodewise.hugepages-change/1";

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    pools: Vec<PoolJson>,
    sizes: Vec<SizeJson>,
}

#[derive(Serialize)]
struct PoolJson {
    node: u32,
    page_size_bytes: u64,
    total_pages: Option<u64>,
    free_pages: Option<u64>,
    surplus_pages: Option<u64>,
    could_add_pages: Option<u64>,
}

#[derive(Serialize)]
struct SizeJson {
    page_size_bytes: u64,
    reserved_pages: Option<u64>,
    overcommit_pages: Option<u64>,
}

/// Writes pools as JSON.
pub fn hugepages(pools: &Pools) -> String {
    let pool = |pool: &crate::digest::hugepages::Pool| PoolJson {
        node: pool.node.number(),
        page_size_bytes: pool.page_size.get(),
        total_pages: pool.total,
        free_pages: pool.free,
        surplus_pages: pool.surplus,
        could_add_pages: pool.could_add,
    };
    let size = |whole: &crate::digest::hugepages::WholePool| SizeJson {
        page_size_bytes: whole.page_size.get(),
        reserved_pages: whole.reserved,
        overcommit_pages: whole.overcommit,
    };
    pretty(&Document {
        schema: SCHEMA,
        pools: pools.pools.iter().map(pool).collect(),
        sizes: pools.whole.iter().map(size).collect(),
    })
}

#[derive(Serialize)]
struct ChangeJson<'a> {
    schema: &'static str,
    page_size_bytes: u64,
    dry_run: bool,
    done: bool,
    given_back: bool,
    journal: Option<&'a str>,
    pools: Vec<PoolChangeJson<'a>>,
}

#[derive(Serialize)]
struct PoolChangeJson<'a> {
    node: u32,
    before_pages: u64,
    asked_pages: u64,
    after_pages: u64,
    after_each_try_pages: &'a [u64],
    compactions: u32,
    largest_free_block_bytes: Option<u64>,
    refused: Option<&'a str>,
}

/// Writes a change of pools as JSON.
pub fn change(change: &PoolsChange) -> String {
    pretty(&ChangeJson {
        schema: CHANGE_SCHEMA,
        page_size_bytes: change.page_size.get(),
        dry_run: change.is_dry,
        done: change.is_done(),
        given_back: change.given_back,
        journal: change.journal.as_deref(),
        pools: change.pools.iter().map(pool_change).collect(),
    })
}

fn pool_change(pool: &PoolChange) -> PoolChangeJson<'_> {
    PoolChangeJson {
        node: pool.node.number(),
        before_pages: pool.before,
        asked_pages: pool.asked,
        after_pages: pool.after(),
        after_each_try_pages: &pool.tries,
        compactions: pool.compactions,
        largest_free_block_bytes: pool.largest_free.map(nodewise_machine::Bytes::get),
        refused: pool.refused.as_deref(),
    }
}
