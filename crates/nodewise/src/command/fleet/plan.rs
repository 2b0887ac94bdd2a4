//! `nodewise fleet plan`: scripts into a directory.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use nodewise_machine::order::Order as _;
use nodewise_machine::plural::plural;
use nodewise_machine::printable::{io_words, printable, quote};
use nodewise_source::capture::{Overwrite, write_file};
use nodewise_view::digest::provenance::date;
use nodewise_view::plan::{FleetEngine, PlanFile, files, is_namespace};

use super::files::hosts;
use crate::cli::fleet::FleetPlan;
use crate::command::survey::check_run;
use crate::failure::{Failure, Outcome};
use crate::output;

/// The path of nodewise in the image that packaging/Containerfile makes.
const IN_IMAGE: &str = "/usr/bin/nodewise";

/// Writes a plan.
pub fn run(args: &FleetPlan) -> Outcome {
    let run = match &args.run {
        Some(run) => run.clone(),
        None => stamp(),
    };
    check_run(&run)?;
    let targets = args.ssh.as_deref().map(hosts).transpose()?;
    if targets.as_ref().is_some_and(Vec::is_empty) {
        return Err(Failure::usage("--ssh: the file lists no host"));
    }
    let engine = match (&args.slurm, &targets, &args.image) {
        (Some(place), _, _) => slurm(place, args)?,
        (None, Some(targets), _) => FleetEngine::Ssh { targets, parallel: args.parallel },
        (None, None, image) => kubernetes(image.as_deref().unwrap_or_default(), args)?,
    };
    let mut verbs = args.parts.verbs.clone();
    verbs.order();
    verbs.dedup();
    let verbs: Vec<&str> = verbs.iter().map(|verb| verb.name()).collect();
    let plan = nodewise_view::plan::FleetPlan {
        run: &run,
        verbs: &verbs.join(","),
        program: &program(args, engine)?,
        engine,
    };
    let made = files(&plan);
    write(&args.output, &made)?;
    let known = targets.map(|targets| targets.len());
    let hosts = known.map(|hosts| format!(" for {}", plural(hosts, "host"))).unwrap_or_default();
    let folder = printable(&args.output.to_string_lossy()).into_owned();
    output::say(&format!("wrote run {run}{hosts} to {folder}: nodewise fleet run {folder} starts it"));
    Ok(0)
}

fn slurm<'a>(place: &'a str, args: &'a FleetPlan) -> Result<FleetEngine<'a>, Failure> {
    if place.is_empty() || place.starts_with('-') || place.contains(char::is_control) {
        return Err(Failure::usage(format_args!(
            "--slurm: {} is neither a partition nor a list of nodes",
            quote(place)
        )));
    }
    if let Some(option) = args.option.iter().find(|option| !option.starts_with('-')) {
        return Err(Failure::usage(format_args!(
            "--option: {} is not an option of sbatch: expected one as in --account=ops",
            quote(option)
        )));
    }
    let deadline_minutes = args.deadline.as_secs().div_ceil(60);
    Ok(FleetEngine::Slurm { place, options: &args.option, deadline_minutes })
}

fn kubernetes<'a>(image: &'a str, args: &'a FleetPlan) -> Result<FleetEngine<'a>, Failure> {
    if !is_namespace(&args.namespace) {
        return Err(Failure::usage(format_args!(
            "--namespace: {} is not a namespace: expected small letters, digits and hyphens",
            quote(&args.namespace)
        )));
    }
    if image.is_empty() || image.contains(char::is_whitespace) || image.contains(char::is_control) {
        return Err(Failure::usage(format_args!("--image: {} is not an image", quote(image))));
    }
    Ok(FleetEngine::Kubernetes { image, namespace: &args.namespace, nodes: args.count })
}

/// The path of nodewise on the hosts.
fn program(args: &FleetPlan, engine: FleetEngine<'_>) -> Result<String, Failure> {
    match (&args.program, engine) {
        (Some(program), _) if program.is_empty() || program.contains(char::is_control) => {
            Err(Failure::usage(format_args!("--program: {} is not a path", quote(program))))
        }
        (Some(program), _) => Ok(program.clone()),
        (None, FleetEngine::Slurm { .. }) => {
            let own = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
            own.ok_or_else(|| Failure::usage("the path of this program is not known: --program names it"))
        }
        (None, FleetEngine::Ssh { .. }) => Ok("nodewise".to_owned()),
        (None, FleetEngine::Kubernetes { .. }) => Ok(IN_IMAGE.to_owned()),
    }
}

/// Writes all files, or none where one of them exists.
fn write(folder: &Path, made: &[PlanFile]) -> Result<(), Failure> {
    let shown = || quote(&folder.display().to_string());
    if let Some(file) = made.iter().find(|file| folder.join(file.name).symlink_metadata().is_ok()) {
        return Err(Failure::usage(format_args!(
            "--output: {} has a {} already: every plan has a directory of its own",
            shown(),
            file.name
        )));
    }
    fs::create_dir_all(folder.join("results"))
        .map_err(|error| Failure::cannot(format_args!("cannot make {}: {}", shown(), io_words(&error))))?;
    for file in made {
        let path = folder.join(file.name);
        write_file(&path, file.text.as_bytes(), Overwrite::Refuse).map_err(Failure::cannot)?;
        if file.is_program {
            fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(|error| {
                Failure::cannot(format_args!("cannot make {} a program: {}", file.name, io_words(&error)))
            })?;
        }
    }
    Ok(())
}

/// The time as the name of a run: `20261126-231542`, in UTC.
fn stamp() -> String {
    let now = SystemTime::now();
    let digits: String = date(now).unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() % 60);
    let (day, minute) = digits.split_at(digits.len().min(8));
    format!("{day}-{minute}{seconds:02}")
}
