//! Events of a scenario: one thing to do, and what belongs to it.

use nodewise_machine::printable::quote;
use serde::Deserialize;

use super::{Backing, Mapping, Part, Written};

/// An `[[event]]` as it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Event {
    pub at: f64,
    program: Option<String>,
    // One thing to do.
    map: Option<String>,
    allocate: Option<String>,
    touch: Option<String>,
    free: Option<String>,
    set_policy: Option<String>,
    mbind: Option<String>,
    home_node: Option<u32>,
    move_pages: Option<String>,
    migrate_pages: Option<String>,
    run_on: Option<u32>,
    cpuset: Option<String>,
    fork: Option<String>,
    balance: Option<bool>,
    end: Option<bool>,
    hugepages: Option<u64>,
    demotion: Option<bool>,
    // What belongs to some of them.
    region: Option<String>,
    policy: Option<String>,
    huge: Option<bool>,
    pool: Option<bool>,
    file: Option<String>,
    offset: Option<String>,
    length: Option<String>,
    to: Option<String>,
    strict: Option<bool>,
    r#move: Option<bool>,
    move_all: Option<bool>,
}

/// What can be done, and what belongs to it; the last two are the system's.
const DEEDS: [(&str, &[&str]); 16] = [
    ("map", &["region", "policy", "huge", "pool", "file"]),
    ("allocate", &["region", "policy", "huge", "pool", "file"]),
    ("touch", &["offset", "length"]),
    ("free", &[]),
    ("set-policy", &[]),
    ("mbind", &["policy", "move", "move-all", "strict", "offset", "length"]),
    ("home-node", &["region", "offset", "length"]),
    ("move-pages", &["to", "move-all", "offset", "length"]),
    ("migrate-pages", &["to"]),
    ("run-on", &[]),
    ("cpuset", &[]),
    ("fork", &[]),
    ("balance", &[]),
    ("end", &[]),
    ("hugepages", &[]),
    ("demotion", &[]),
];

/// Reads what is to be done, and by whom.
///
/// # Errors
/// What is wrong, as a sentence.
pub(super) fn act(event: &Event) -> Result<(String, Written), String> {
    let deed = deed(event)?;
    belongs(event, deed)?;
    let systems = matches!(deed, "hugepages" | "demotion");
    let program = match (&event.program, systems) {
        (Some(program), _) => program.clone(),
        (None, true) => String::new(),
        (None, false) => return Err(format!("{deed} needs a program: program = \"NAME\"")),
    };
    Ok((program, written(event)?))
}

/// The one thing that an event does.
fn deed(event: &Event) -> Result<&'static str, String> {
    let given = [
        event.map.is_some(),
        event.allocate.is_some(),
        event.touch.is_some(),
        event.free.is_some(),
        event.set_policy.is_some(),
        event.mbind.is_some(),
        event.home_node.is_some(),
        event.move_pages.is_some(),
        event.migrate_pages.is_some(),
        event.run_on.is_some(),
        event.cpuset.is_some(),
        event.fork.is_some(),
        event.balance == Some(true),
        event.end == Some(true),
        event.hugepages.is_some(),
        event.demotion.is_some(),
    ];
    let deeds: Vec<&str> =
        DEEDS.iter().zip(given).filter(|(_, given)| *given).map(|((deed, _), _)| *deed).collect();
    match deeds.as_slice() {
        [deed] => Ok(deed),
        _ => {
            let known: Vec<&str> = DEEDS.iter().map(|(deed, _)| *deed).collect();
            let whose =
                event.program.as_ref().map_or_else(String::new, |name| format!(" of {}", quote(name)));
            let what = match deeds.len() {
                0 => "nothing to do".to_owned(),
                count => format!("{count} things to do ({})", deeds.join(", ")),
            };
            Err(format!("the event{whose} has {what}: expected one of {}", known.join(", ")))
        }
    }
}

/// Checks that what else is given belongs to what is done.
fn belongs(event: &Event, deed: &str) -> Result<(), String> {
    let given = [
        ("region", event.region.is_some()),
        ("policy", event.policy.is_some()),
        ("huge", event.huge.is_some()),
        ("pool", event.pool.is_some()),
        ("file", event.file.is_some()),
        ("offset", event.offset.is_some()),
        ("length", event.length.is_some()),
        ("to", event.to.is_some()),
        ("strict", event.strict.is_some()),
        ("move", event.r#move.is_some()),
        ("move-all", event.move_all.is_some()),
    ];
    let own = DEEDS.iter().find(|(name, _)| *name == deed).map_or(&[][..], |(_, own)| *own);
    let Some((key, _)) = given.iter().find(|(key, given)| *given && !own.contains(key)) else {
        return Ok(());
    };
    let of: Vec<&str> = DEEDS.iter().filter(|(_, own)| own.contains(key)).map(|(deed, _)| *deed).collect();
    Err(format!("{key} belongs to {}, and not to {deed}", of.join(", ")))
}

fn written(event: &Event) -> Result<Written, String> {
    let is = |flag: Option<bool>| flag.unwrap_or(false);
    let needed = |value: &Option<String>, what: &str| value.clone().ok_or_else(|| what.to_owned());
    let part = |region: &String| Part {
        region: region.clone(),
        offset: event.offset.clone(),
        length: event.length.clone(),
    };
    if let Some(size) = &event.map {
        return Ok(Written::Map(mapping(event, size)?));
    }
    if let Some(size) = &event.allocate {
        return Ok(Written::Allocate(mapping(event, size)?));
    }
    if let Some(region) = &event.mbind {
        let policy = needed(&event.policy, "mbind needs a policy, as in policy = \"bind:0\"")?;
        let (strict, moves, moves_all) = (is(event.strict), is(event.r#move), is(event.move_all));
        return Ok(Written::Mbind { part: part(region), policy, strict, moves, moves_all });
    }
    if let Some(node) = event.home_node {
        let region = needed(&event.region, "home-node needs a region, as in region = \"heap\"")?;
        return Ok(Written::HomeNode { part: part(&region), node });
    }
    if let Some(region) = &event.move_pages {
        let to = needed(&event.to, "move-pages needs a node to move to, as in to = \"1\"")?;
        return Ok(Written::MovePages { part: part(region), to, all: is(event.move_all) });
    }
    if let Some(old) = &event.migrate_pages {
        let new = needed(&event.to, "migrate-pages needs nodes to move to, as in to = \"1\"")?;
        return Ok(Written::MigratePages { old: old.clone(), new });
    }
    /// What is to be done with a text.
    type Make = fn(String) -> Written;
    let texts: [(&Option<String>, Make); 4] = [
        (&event.free, Written::Free),
        (&event.set_policy, Written::SetPolicy),
        (&event.cpuset, Written::Cpuset),
        (&event.fork, Written::Fork),
    ];
    if let Some(region) = &event.touch {
        return Ok(Written::Touch(part(region)));
    }
    if let Some((Some(text), make)) = texts.into_iter().find(|(text, _)| text.is_some()) {
        return Ok(make(text.clone()));
    }
    Ok(match (event.run_on, event.hugepages, event.demotion, event.balance) {
        (Some(node), ..) => Written::RunOn(node),
        (_, Some(pages), ..) => Written::HugePages(pages),
        (_, _, Some(enabled), _) => Written::Demotion(enabled),
        (.., Some(true)) => Written::Balance,
        _ => Written::End,
    })
}

fn mapping(event: &Event, size: &str) -> Result<Mapping, String> {
    let kinds = [event.huge == Some(true), event.pool == Some(true), event.file.is_some()];
    if kinds.into_iter().filter(|given| *given).count() > 1 {
        return Err("memory is one of huge, pool and file".to_owned());
    }
    let backing = match (&event.file, kinds) {
        (Some(file), _) => Backing::File(file.clone()),
        (None, [true, ..]) => Backing::Huge,
        (None, [_, true, _]) => Backing::Pool,
        (None, _) => Backing::Small,
    };
    let (region, policy) = (event.region.clone(), event.policy.clone());
    Ok(Mapping { size: size.to_owned(), region, backing, policy })
}
