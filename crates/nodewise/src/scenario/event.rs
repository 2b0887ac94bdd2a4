//! Events of a scenario: one thing to do, and what belongs to it.

use nodewise_machine::printable::quote;
use serde::Deserialize;

use super::{Backing, FilePart, Mapping, Part, Written};

/// An `[[event]]` as it is in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Event {
    pub at: f64,
    program: Option<String>,
    // One thing to do.
    map: Option<String>,
    allocate: Option<String>,
    touch: Option<String>,
    read: Option<String>,
    write: Option<String>,
    free: Option<String>,
    set_policy: Option<String>,
    mbind: Option<String>,
    home_node: Option<u32>,
    move_pages: Option<String>,
    migrate_pages: Option<String>,
    mremap: Option<String>,
    oom_score_adj: Option<i32>,
    run_on: Option<u32>,
    cpuset: Option<String>,
    fork: Option<String>,
    thread: Option<String>,
    balance: Option<bool>,
    end: Option<bool>,
    hugepages: Option<u64>,
    demotion: Option<bool>,
    sync: Option<bool>,
    drop_caches: Option<bool>,
    limit: Option<super::Group>,
    join: Option<String>,
    // What belongs to some of them.
    region: Option<String>,
    policy: Option<String>,
    first_page: Option<u64>,
    huge: Option<bool>,
    pool: Option<bool>,
    file: Option<String>,
    private_file: Option<String>,
    size: Option<String>,
    offset: Option<String>,
    length: Option<String>,
    to: Option<String>,
    strict: Option<bool>,
    r#move: Option<bool>,
    move_all: Option<bool>,
    r#for: Option<f64>,
    touches: Option<String>,
    sweep: Option<bool>,
}

/// The longest time of a forecast: a day.
const MOST_SECONDS: f64 = 86_400.0;

/// One thing to do, with what its key says.
enum Deed<'e> {
    Map(&'e String),
    Allocate(&'e String),
    Touch(&'e String),
    Read(&'e String),
    Write(&'e String),
    Free(&'e String),
    SetPolicy(&'e String),
    Mbind(&'e String),
    HomeNode(u32),
    MovePages(&'e String),
    MigratePages(&'e String),
    Remap(&'e String),
    OomScoreAdj(i32),
    RunOn(u32),
    Cpuset(&'e String),
    Fork(&'e String),
    Thread(&'e String),
    Balance,
    End,
    HugePages(u64),
    Demotion(bool),
    Sync,
    DropCaches,
    Limit(&'e super::Group),
    Join(&'e String),
}

/// A deed that can be done: its key, the keys that belong to it, and what an event says there.
type Known<'e> = (&'static str, &'static [&'static str], Option<Deed<'e>>);

fn known(event: &Event) -> [Known<'_>; 25] {
    const MAPPING: &[&str] = &["region", "policy", "huge", "pool", "file", "private-file", "first-page"];
    const FILE: &[&str] = &["file", "offset"];
    let set = |flag: Option<bool>, deed: Deed<'static>| flag.filter(|is| *is).map(|_| deed);
    [
        ("map", MAPPING, event.map.as_ref().map(Deed::Map)),
        ("allocate", MAPPING, event.allocate.as_ref().map(Deed::Allocate)),
        ("touch", &["offset", "length"], event.touch.as_ref().map(Deed::Touch)),
        ("read", FILE, event.read.as_ref().map(Deed::Read)),
        ("write", FILE, event.write.as_ref().map(Deed::Write)),
        ("free", &[], event.free.as_ref().map(Deed::Free)),
        ("set-policy", &[], event.set_policy.as_ref().map(Deed::SetPolicy)),
        (
            "mbind",
            &["policy", "move", "move-all", "strict", "offset", "length"],
            event.mbind.as_ref().map(Deed::Mbind),
        ),
        ("home-node", &["region", "offset", "length"], event.home_node.map(Deed::HomeNode)),
        (
            "move-pages",
            &["to", "move-all", "offset", "length"],
            event.move_pages.as_ref().map(Deed::MovePages),
        ),
        ("migrate-pages", &["to"], event.migrate_pages.as_ref().map(Deed::MigratePages)),
        ("mremap", &["size", "first-page"], event.mremap.as_ref().map(Deed::Remap)),
        ("oom-score-adj", &[], event.oom_score_adj.map(Deed::OomScoreAdj)),
        ("run-on", &[], event.run_on.map(Deed::RunOn)),
        ("cpuset", &[], event.cpuset.as_ref().map(Deed::Cpuset)),
        ("fork", &[], event.fork.as_ref().map(Deed::Fork)),
        ("thread", &[], event.thread.as_ref().map(Deed::Thread)),
        ("balance", &["for", "touches", "sweep"], set(event.balance, Deed::Balance)),
        ("end", &[], set(event.end, Deed::End)),
        ("hugepages", &[], event.hugepages.map(Deed::HugePages)),
        ("demotion", &[], event.demotion.map(Deed::Demotion)),
        ("sync", &[], set(event.sync, Deed::Sync)),
        ("drop-caches", &[], set(event.drop_caches, Deed::DropCaches)),
        ("limit", &[], event.limit.as_ref().map(Deed::Limit)),
        ("join", &[], event.join.as_ref().map(Deed::Join)),
    ]
}

/// Reads what is to be done, and by whom.
///
/// # Errors
/// What is wrong, as a sentence.
pub(super) fn act(event: &Event) -> Result<(String, Written), String> {
    let (key, deed) = deed(event)?;
    belongs(event, key)?;
    let program = match (&event.program, &deed) {
        (Some(program), _) => program.clone(),
        // These are the system's.
        (None, Deed::HugePages(_) | Deed::Demotion(_) | Deed::Limit(_) | Deed::Sync | Deed::DropCaches) => {
            String::new()
        }
        (None, _) => return Err(format!("{key} needs a program: program = \"NAME\"")),
    };
    Ok((program, written(event, deed)?))
}

/// The one thing that an event does, with its key.
fn deed(event: &Event) -> Result<(&'static str, Deed<'_>), String> {
    let keys = known(event).map(|(key, ..)| key);
    let given = known(event).into_iter().filter_map(|(key, _, deed)| Some((key, deed?)));
    let mut given: Vec<(&str, Deed<'_>)> = given.collect();
    let what = match given.len() {
        1 => return Ok(given.remove(0)),
        0 => "nothing to do".to_owned(),
        count => {
            let given: Vec<&str> = given.iter().map(|(key, _)| *key).collect();
            format!("{count} things to do ({})", given.join(", "))
        }
    };
    let whose = event.program.as_ref().map_or_else(String::new, |name| format!(" of {}", quote(name)));
    Err(format!("the event{whose} has {what}: expected one of {}", keys.join(", ")))
}

/// Checks that what else is given belongs to what is done.
fn belongs(event: &Event, deed: &str) -> Result<(), String> {
    let given = [
        ("region", event.region.is_some()),
        ("policy", event.policy.is_some()),
        ("first-page", event.first_page.is_some()),
        ("huge", event.huge.is_some()),
        ("pool", event.pool.is_some()),
        ("file", event.file.is_some()),
        ("private-file", event.private_file.is_some()),
        ("size", event.size.is_some()),
        ("offset", event.offset.is_some()),
        ("length", event.length.is_some()),
        ("to", event.to.is_some()),
        ("strict", event.strict.is_some()),
        ("move", event.r#move.is_some()),
        ("move-all", event.move_all.is_some()),
        ("for", event.r#for.is_some()),
        ("touches", event.touches.is_some()),
        ("sweep", event.sweep.is_some()),
    ];
    for (key, _) in given.into_iter().filter(|(_, given)| *given) {
        let of = known(event).into_iter().filter(|(_, own, _)| own.contains(&key));
        let of: Vec<&str> = of.map(|(deed, ..)| deed).collect();
        if !of.contains(&deed) {
            return Err(format!("{key} belongs to {}, and not to {deed}", of.join(", ")));
        }
    }
    Ok(())
}

fn written(event: &Event, deed: Deed<'_>) -> Result<Written, String> {
    let is = |flag: Option<bool>| flag.unwrap_or(false);
    let needed = |value: &Option<String>, what: &str| value.clone().ok_or_else(|| what.to_owned());
    let part = |region: &String| Part {
        region: region.clone(),
        offset: event.offset.clone(),
        length: event.length.clone(),
    };
    Ok(match deed {
        Deed::Map(size) => Written::Map(mapping(event, size)?),
        Deed::Allocate(size) => Written::Allocate(mapping(event, size)?),
        Deed::Touch(region) => Written::Touch(part(region)),
        Deed::Read(size) => Written::Read(file_part(event, size)),
        Deed::Write(size) => Written::Write(file_part(event, size)),
        Deed::Sync => Written::Sync,
        Deed::DropCaches => Written::DropCaches,
        Deed::Free(region) => Written::Free(region.clone()),
        Deed::SetPolicy(policy) => Written::SetPolicy(policy.clone()),
        Deed::Mbind(region) => Written::Mbind {
            part: part(region),
            policy: needed(&event.policy, "mbind needs a policy, as in policy = \"bind:0\"")?,
            strict: is(event.strict),
            moves: is(event.r#move),
            moves_all: is(event.move_all),
        },
        Deed::HomeNode(node) => {
            let region = needed(&event.region, "home-node needs a region, as in region = \"heap\"")?;
            Written::HomeNode { part: part(&region), node }
        }
        Deed::MovePages(region) => {
            let to = needed(&event.to, "move-pages needs a node to move to, as in to = \"1\"")?;
            Written::MovePages { part: part(region), to, all: is(event.move_all) }
        }
        Deed::MigratePages(old) => {
            let new = needed(&event.to, "migrate-pages needs nodes to move to, as in to = \"1\"")?;
            Written::MigratePages { old: old.clone(), new }
        }
        Deed::Remap(region) => {
            if event.size.is_none() && event.first_page.is_none() {
                return Err("mremap needs a size, as in size = \"8G\", or a first-page".to_owned());
            }
            let (size, first_page) = (event.size.clone(), event.first_page);
            Written::Remap { region: region.clone(), size, first_page }
        }
        Deed::OomScoreAdj(value) => adjusted(value)?,
        Deed::RunOn(node) => Written::RunOn(node),
        Deed::Cpuset(nodes) => Written::Cpuset(nodes.clone()),
        Deed::Fork(child) => Written::Fork(child.clone()),
        Deed::Thread(name) => Written::Thread(name.clone()),
        Deed::Balance => balance(event)?,
        Deed::End => Written::End,
        Deed::HugePages(pages) => Written::HugePages(pages),
        Deed::Demotion(enabled) => Written::Demotion(enabled),
        Deed::Limit(group) if group.nodes.is_some() => {
            return Err("limit: the nodes of a running group are set by cpuset".to_owned());
        }
        Deed::Limit(group) => Written::Limit(group.clone()),
        Deed::Join(group) => Written::Join(group.clone()),
    })
}

/// A part of a file on a disk.
fn file_part(event: &Event, size: &str) -> FilePart {
    let file = event.file.clone().unwrap_or_else(|| "data".to_owned());
    FilePart { file, offset: event.offset.clone(), size: size.to_owned() }
}

/// Time that passes, with a forecast where a time is given.
fn balance(event: &Event) -> Result<Written, String> {
    match (event.r#for, &event.touches) {
        (None, None) if event.sweep.is_none() => Ok(Written::Balance),
        (Some(seconds), Some(touches)) => {
            if !(0.0..=MOST_SECONDS).contains(&seconds) {
                return Err(format!("for is {seconds}: expected 0 to {MOST_SECONDS} seconds of CPU time"));
            }
            let (touches, sweeps) = (touches.clone(), event.sweep.unwrap_or(false));
            Ok(Written::BalanceFor { seconds, touches, sweeps })
        }
        _ => Err("a forecast needs for and touches, as in for = 60, touches = \"150-200\"".to_owned()),
    }
}

/// A value of `oom_score_adj`.
///
/// # Errors
/// One that the kernel refuses.
pub(super) fn adjusted(value: i32) -> Result<Written, String> {
    match value {
        -1000..=1000 => Ok(Written::OomScoreAdj(value)),
        _ => Err(format!("oom-score-adj is {value}: expected -1000 to 1000")),
    }
}

fn mapping(event: &Event, size: &str) -> Result<Mapping, String> {
    let kinds =
        [event.huge.is_some(), event.pool == Some(true), event.file.is_some(), event.private_file.is_some()];
    if kinds.into_iter().filter(|given| *given).count() > 1 {
        return Err("memory is one of huge, pool, file and private-file".to_owned());
    }
    let backing = match (&event.file, &event.private_file) {
        (Some(file), _) => Backing::File(file.clone()),
        (None, Some(file)) => Backing::PrivateFile(file.clone()),
        (None, None) if event.pool == Some(true) => Backing::Pool,
        (None, None) => match event.huge {
            Some(true) => Backing::Huge,
            Some(false) => Backing::NeverHuge,
            None => Backing::Small,
        },
    };
    if event.first_page.is_some() && matches!(backing, Backing::Pool | Backing::File(_)) {
        return Err("first-page is for private memory: files and pools begin with page 0".to_owned());
    }
    let (region, policy) = (event.region.clone(), event.policy.clone());
    Ok(Mapping { size: size.to_owned(), region, backing, policy, first_page: event.first_page })
}
