//! Drawn scripts, played by the kernel and by the model side by side: the answer to every call, the
//! node of every page after it, and the policies.

use std::collections::BTreeSet;
use std::mem::{Discriminant, discriminant};
use std::path::Path;
use std::process::Command;

use nodewise_conformance::cache::CacheStep;
use nodewise_conformance::difference::Aspect;
use nodewise_conformance::script::Call;
use nodewise_conformance::{
    Arena, Difference, Drawer, Found, Outcome, Prediction, Script, ScriptId, ScriptKind, Shrinking, Trouble,
    kernel, program, reproducer,
};
use nodewise_machine::MemPolicy;
use nodewise_model::oracle::Task;
use nodewise_model::oracle::task::Surroundings;
use nodewise_model::release::Change;
use nodewise_model::simulate::{Act, FilePart, GroupLimits};
use nodewise_model::thp::TransparentHuge;
use nodewise_model::{Release, Weights};

use super::counters::differs_twice;
use super::model::{memory, release};
use super::moving::expect;
use super::same;
use crate::nodewise::Context;

/// Scripts that are reported in full when many differ.
const MOST_TOLD: usize = 3;
/// The word that makes this program the one that a script starts.
pub const PROGRAM: &str = "--pages";

/// Plays the scripts of the guest.
pub fn play(context: &Context) -> Result<(), String> {
    let arena = arena(context, Prediction::new(release(context)))?;
    let of = |kind: &ScriptKind| {
        let kind = *kind;
        context.scripts.clone().map(move |number| ScriptId { kind, number })
    };
    let ids: Vec<ScriptId> = context.kinds.iter().flat_map(of).collect();
    all_same(context, &arena, ids)
}

/// Scripts of each further kind; fewer of pools, which take longer.
const OF_KIND: u64 = 40;
const POOLS: u64 = 20;

/// Scripts of the kinds beside calls, on one machine.
pub fn kinds(context: &Context) -> Result<(), String> {
    let arena = arena(context, Prediction::new(release(context)))?;
    let kinds = [
        (ScriptKind::Thp, OF_KIND),
        (ScriptKind::Threads, OF_KIND),
        (ScriptKind::Pools, POOLS),
        (ScriptKind::Groups, OF_KIND),
        (ScriptKind::Swap, OF_KIND),
    ];
    let ids =
        kinds.into_iter().flat_map(|(kind, count)| (0..count).map(move |number| ScriptId { kind, number }));
    all_same(context, &arena, ids)
}

/// Scripts of page cache, each of which reads hundreds of megabytes.
const OF_CACHE: u64 = 10;

/// Scripts of page cache, on one machine.
pub fn cache(context: &Context) -> Result<(), String> {
    let arena = arena(context, Prediction::new(release(context)))?;
    all_same(context, &arena, (0..OF_CACHE).map(|number| ScriptId { kind: ScriptKind::Cache, number }))
}

/// Fails with the scripts that differ.
fn all_same(context: &Context, arena: &Arena, ids: impl IntoIterator<Item = ScriptId>) -> Result<(), String> {
    let mut wrong = Vec::new();
    for id in ids {
        let script = Drawer::script(&context.seen, id);
        let outcome = differs_twice(|| {
            let (done, trace) = arena.play(&script);
            let Err(why) = done else { return Ok(Ok(())) };
            let counted = matches!(&why, Trouble::Differs(Difference { aspect: Aspect::Counters, .. }));
            let played = script.without(trace.played..script.calls.len()).lines();
            let why = format!("script {id}: {why}\n  after {}", played.join("\n        "));
            if counted { Ok(Err(why)) } else { Err(why) }
        });
        wrong.extend(outcome.err());
    }
    let count = wrong.len();
    wrong.truncate(MOST_TOLD);
    if wrong.is_empty() { Ok(()) } else { Err(format!("{count} scripts differ:\n{}", wrong.join("\n"))) }
}

fn arena(context: &Context, prediction: Prediction) -> Result<Arena, String> {
    kernel::lower_watermarks()?;
    let own = std::env::current_exe().expect("a test knows its own path");
    let program = vec![own.to_string_lossy().into_owned(), PROGRAM.to_owned()];
    Arena::new(context.seen.clone(), memory(context)?, prediction, program)
}

/// Is the program that a script starts.
pub fn program(pages: &str) {
    let pages = pages.parse().expect("a number of pages");
    println!("{}", program::run(pages).expect("pages for a program of a script"));
}

/// Drawn scripts that are played until one differs.
const MOST_DRAWN: u64 = 200;
/// The most calls that show it.
const MOST_CALLS: usize = 6;
/// Scripts that become programs, at least: enough for nearly all kinds of calls. One of them starts a program.
const PROGRAMS: usize = 4;

/// A model without weights for weighted interleaving is found, with few calls, and a program shows it.
pub fn wrong_rule(context: &Context) -> Result<(), String> {
    let forget = |around| Surroundings { weights: Weights::new(), ..around };
    let prediction = Prediction { adjusted: forget, ..Prediction::new(release(context)) };
    let found = wrong(context, prediction, ScriptKind::Calls, "weighted interleave")?;
    let (code, output) = compiled("wrong", &found.program)?;
    same(&format!("exit code of\n{}\n{output}", found.program), code, Some(1))?;
    expect(output.contains("<- differs"), || output.clone())
}

/// A wrong rule of each further kind is found, with few calls: a setting of huge pages that does not count, a thread that
/// begins without the policy of the one that starts it, and the pools of another release.
pub fn wrong_rules_of_kinds(context: &Context) -> Result<(), String> {
    let right = Prediction::new(release(context));
    let ignores_setting = |call: &Call, task: &mut Task| {
        if let Call::HugePages(..) = call {
            task.set_huge_pages(TransparentHuge::ADVISED);
        }
    };
    let thp = Prediction { spoiled: ignores_setting, ..right };
    wrong(context, thp, ScriptKind::Thp, "transparent_hugepage/enabled")?;
    let forgets_policy = |call: &Call, task: &mut Task| {
        if let Call::Thread(_) = call {
            let _ = task.set_policy(&MemPolicy::DEFAULT);
        }
    };
    wrong(context, Prediction { spoiled: forgets_policy, ..right }, ScriptKind::Threads, "in thread")?;
    let is_new = right.release.has(Change::NodeCountWithoutSurplus);
    let other = if is_new { Release::new(6, 1) } else { Release::REFERENCE };
    let pools = Prediction { release: other, ..right };
    wrong(context, pools, ScriptKind::Pools, "nr_hugepages").map(drop)
}

/// The same of groups: a limit that is higher than what is written, and with swap one beyond which a program is killed.
pub fn wrong_rules_of_groups(context: &Context) -> Result<(), String> {
    let right = Prediction::new(release(context));
    let doubled = |act: Act| match act {
        Act::Limit { group, parent, limits } => {
            let limits = GroupLimits { max: limits.max.map(|max| max * 2), ..limits };
            Act::Limit { group, parent, limits }
        }
        act => act,
    };
    wrong(context, Prediction { altered: doubled, ..right }, ScriptKind::Groups, "memory.max")?;
    let without_swap = |act: Act| match act {
        Act::Limit { group, parent, limits } => {
            Act::Limit { group, parent, limits: GroupLimits { swap_max: Some(0), ..limits } }
        }
        act => act,
    };
    let swap = Prediction { altered: without_swap, ..right };
    wrong(context, swap, ScriptKind::Swap, "memory.swap.max").map(drop)
}

/// The same of page cache: half of a file that is not cached, and pages that `drop_caches` drops before they are on the disk.
pub fn wrong_rules_of_cache(context: &Context) -> Result<(), String> {
    let right = Prediction::new(release(context));
    let halved = |act: Act| match act {
        Act::Read(FilePart { file, pages }) => {
            Act::Read(FilePart { file, pages: pages.start..pages.start + (pages.end - pages.start) / 2 })
        }
        act => act,
    };
    wrong(context, Prediction { altered: halved, ..right }, ScriptKind::Cache, "reads")?;
    let clean = |act: Act| if let Act::Write(part) = act { Act::Read(part) } else { act };
    // Few scripts drop caches between writing and having all on the disk.
    let shows = |id: &ScriptId| {
        let script = Drawer::script(&context.seen, *id);
        let Some(Call::Cache(script)) = script.calls.first() else { return false };
        let steps =
            script.steps.iter().filter(|step| !matches!(step, CacheStep::Take(..) | CacheStep::Read(..)));
        let steps: Vec<&CacheStep> = steps.collect();
        steps
            .windows(2)
            .any(|pair| matches!(pair, [CacheStep::Write(_, pages), CacheStep::Drop] if pages.count > LARGE))
    };
    let ids = (0..).map(|number| ScriptId { kind: ScriptKind::Cache, number }).filter(shows);
    wrong_among(context, Prediction { altered: clean, ..right }, ids.take(MOST_CHOSEN), "drop_caches")
        .map(drop)
}

/// More pages than the kernel has beside those of the model, and the most scripts that write them before they are dropped.
const LARGE: u64 = 2048;
const MOST_CHOSEN: usize = 10;

/// The first script that differs under a wrong prediction, shrunk to few calls, one of which has these words.
fn wrong(context: &Context, prediction: Prediction, kind: ScriptKind, words: &str) -> Result<Found, String> {
    let first = context.scripts.start;
    let ids = (first..first + MOST_DRAWN).map(|number| ScriptId { kind, number });
    wrong_among(context, prediction, ids, words)
}

/// The same among these scripts.
fn wrong_among(
    context: &Context,
    prediction: Prediction,
    ids: impl Iterator<Item = ScriptId>,
    words: &str,
) -> Result<Found, String> {
    let arena = arena(context, prediction)?;
    let mut outcomes = ids.map(|id| Outcome::new(&arena, id, Shrinking::Fully));
    // Of a wrong release another rule can be found first.
    let found = outcomes.find(|outcome| match outcome {
        Outcome::Same(_) => false,
        Outcome::Differs(found) => found.calls.iter().any(|call| call.contains(words)),
        Outcome::Failed(_) => true,
    });
    let Some(Outcome::Differs(found)) = found else { return Err(format!("{words}: {found:?}")) };
    println!("{}{} of {} calls: {}", crate::guest::FIGURE, found.length, found.drawn, found.calls.join("; "));
    expect(found.length <= MOST_CALLS, || format!("{} calls: {:?}", found.length, found.calls))?;
    expect(found.repeated > 0, || format!("no play repeats {:?}", found.calls))?;
    Ok(*found)
}

/// A program in C does what the script of calls did that it was written from.
pub fn as_programs(context: &Context) -> Result<(), String> {
    let arena = arena(context, Prediction::new(release(context)))?;
    let mut kinds: Vec<Discriminant<Call>> = Vec::new();
    let mut written = BTreeSet::new();
    for number in context.scripts.start.. {
        let script = Drawer::script(&context.seen, ScriptId { kind: ScriptKind::Calls, number });
        let new: Vec<_> =
            script.calls.iter().map(discriminant).filter(|kind| !kinds.contains(kind)).collect();
        if new.is_empty() {
            continue;
        }
        kinds.extend(new);
        repeated(&arena, &script, number)?;
        written.insert(number);
        if written.len() >= PROGRAMS && kinds.contains(&discriminant(&Call::Program(0))) {
            return Ok(());
        }
    }
    Err("scripts have an end".to_owned())
}

fn repeated(arena: &Arena, script: &Script, number: u64) -> Result<(), String> {
    let (done, trace) = arena.play(script);
    done?;
    let program = reproducer::program(script, &trace, &arena.machine, None);
    let (code, output) = compiled(&format!("script-{number}"), &program)?;
    let wrong: Vec<&str> =
        output.lines().filter(|line| line.contains("<-") || line.contains("cannot")).collect();
    same(&format!("exit code of script {number}\n{}\n{program}", wrong.join("\n")), code, Some(0))
}

/// Compiles a program and runs it: its exit code, and what it writes.
fn compiled(name: &str, program: &str) -> Result<(Option<i32>, String), String> {
    let folder = Path::new("/run/nodewise-programs");
    let say = |error: std::io::Error| format!("{name}: {error}");
    std::fs::create_dir_all(folder).map_err(say)?;
    let source = folder.join(name).with_extension("c");
    std::fs::write(&source, program).map_err(say)?;
    let binary = folder.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]).args([&binary, &source]);
    let output = compiler.output().map_err(say)?;
    expect(output.status.success(), || String::from_utf8_lossy(&output.stderr).into_owned())?;
    let output = Command::new(&binary).output().map_err(say)?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8_lossy(&text).into_owned()))
}
