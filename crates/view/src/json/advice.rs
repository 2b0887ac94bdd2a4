//! `nodewise.advice/1`: the placement that a program should have.

use nodewise_diagnose::advice::{AdviceEvidence, Flip, InForce};
use nodewise_diagnose::balance::PageMove;
use nodewise_diagnose::finding::Mend;
use nodewise_diagnose::knowledge::{Application, OwnOption};
use nodewise_machine::NodeId;
use nodewise_machine::placement::Placement;
use serde::Serialize;

use super::doctor::{MendJson, SubjectJson, ValueJson};
use super::{pretty, rounded};
use crate::digest::advice::{AdviceReport, AdvisedProgram, AppliedAdvice, condition};

/// Writes the report.
pub fn advice(report: &AdviceReport<'_>) -> String {
    pretty(&AdviceJson::from_report(report))
}

#[derive(Serialize)]
struct AdviceJson<'a> {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_at_s: Option<f64>,
    /// Missing: the program was not watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    window_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<SubjectJson<'a>>,
    /// A program that was not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    other_processes: usize,
    conclusion: String,
    kind: &'static str,
    evidence: Vec<EvidenceJson>,
    row: RowJson,
    reason: String,
    /// Several: one for each instance. None: nothing is to be changed.
    placements: Vec<PlacementJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_force: Option<InForceJson<'a>>,
    next_rows: Vec<NextRowJson>,
    undecided: Vec<UndecidedJson<'a>>,
    recipes: Vec<RecipeJson<'a>>,
    at_once: Vec<MendJson<'a>>,
    ask_tune: AskJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<&'a str>,
    /// With `--apply`.
    #[serde(skip_serializing_if = "Option::is_none")]
    apply: Option<ApplyJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<ProgramJson<'a>>,
}

#[derive(Serialize)]
struct EvidenceJson {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<OwnedValueJson>,
    /// Missing: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_known: Option<String>,
}

/// A value that outlives the evidence that it was made from.
#[derive(Serialize)]
struct OwnedValueJson(serde_json::Value);

#[derive(Serialize)]
struct RowJson {
    row: &'static str,
    title: &'static str,
    conditions: Vec<String>,
}

#[derive(Serialize)]
struct PlacementJson {
    name: String,
    /// Options of `nodewise run`; missing: no option says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Vec<String>>,
}

#[derive(Serialize)]
struct InForceJson<'a> {
    state: &'static str,
    differences: &'a [String],
    not_known: &'a [String],
}

#[derive(Serialize)]
struct NextRowJson {
    row: &'static str,
    title: &'static str,
    quantity: &'static str,
    direction: &'static str,
    flips_at: OwnedValueJson,
}

#[derive(Serialize)]
struct UndecidedJson<'a> {
    row: &'static str,
    title: &'static str,
    lacks: &'a [&'static str],
}

#[derive(Serialize)]
struct RecipeJson<'a> {
    tool: &'static str,
    text: &'a str,
    notes: &'a [String],
}

#[derive(Serialize)]
struct AskJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    placements: Vec<PlacementJson>,
}

#[derive(Serialize)]
struct ProgramJson<'a> {
    id: &'a str,
    name: &'a str,
    kinds: Vec<&'static str>,
    rule: &'a str,
    reason: &'a str,
    options: Vec<OptionJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    obsolete: Option<&'a str>,
    sources: &'a [String],
    checked: &'a str,
}

#[derive(Serialize)]
struct OptionJson<'a> {
    file: &'a str,
    text: &'a str,
}

/// The undoable part of an advice: planned, or applied.
#[derive(Serialize)]
struct ApplyJson<'a> {
    dry_run: bool,
    result: String,
    steps: Vec<String>,
    pages: Vec<PageMoveJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spread_over: Option<Vec<u32>>,
    most_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<String>,
    not_applied: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_rights: Option<&'a str>,
    /// Missing: nothing was done to the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<ApplyEndJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drop_in: Option<DropInJson<'a>>,
    undo: &'a [String],
}

#[derive(Serialize)]
struct PageMoveJson {
    from: u32,
    to: u32,
    size_bytes: u64,
}

#[derive(Serialize)]
struct ApplyEndJson<'a> {
    id: u64,
    ending: &'a str,
    moved_bytes: u64,
    failed_bytes: u64,
    threads: usize,
    took_s: f64,
}

#[derive(Serialize)]
struct DropInJson<'a> {
    path: &'a str,
    diff: &'a str,
    written: bool,
    next: &'a [String],
}

impl<'a> ApplyJson<'a> {
    fn from_applied(applied: &'a AppliedAdvice) -> Self {
        let means = &applied.means;
        let page_move = |pages: &PageMove| PageMoveJson {
            from: pages.from.number(),
            to: pages.to.number(),
            size_bytes: pages.size.get(),
        };
        let end = applied.end.as_ref().map(|end| ApplyEndJson {
            id: end.id,
            ending: &end.ending,
            moved_bytes: end.moved.get(),
            failed_bytes: end.failed.get(),
            threads: end.threads,
            took_s: rounded(end.took.as_secs_f64()),
        });
        let drop_in = applied.drop_in.as_ref().map(|file| DropInJson {
            path: &file.path,
            diff: &file.diff,
            written: file.is_written,
            next: &file.next,
        });
        Self {
            dry_run: applied.is_dry,
            result: applied.result(),
            steps: applied.steps(),
            pages: means.pages.iter().map(page_move).collect(),
            spread_over: means.spread.as_ref().map(|spread| spread.over.iter().map(NodeId::number).collect()),
            most_bytes: means.size().get(),
            cpus: means.cpus.as_ref().map(|(cpus, _)| cpus.to_string()),
            not_applied: &applied.left,
            missing_rights: applied.missing_rights.as_deref(),
            end,
            drop_in,
            undo: &applied.undo,
        }
    }
}

impl<'a> AdviceJson<'a> {
    fn from_report(report: &'a AdviceReport<'a>) -> Self {
        let advice = report.advice;
        let placement = |placement: &Placement| PlacementJson {
            name: placement.name(&report.profile.scope),
            options: placement.run_options(&report.profile.scope),
        };
        let (subject, file) = match &report.program {
            AdvisedProgram::Process(subject) => (Some(SubjectJson::from_subject(subject)), None),
            AdvisedProgram::File(path) => (None, Some(*path)),
        };
        let undecided = advice.undecided.iter().map(|open| UndecidedJson {
            row: open.row.number,
            title: open.row.title,
            lacks: &open.lacks,
        });
        let recipes = report.recipes.iter().map(|recipe| RecipeJson {
            tool: recipe.tool,
            text: &recipe.text,
            notes: &recipe.notes,
        });
        Self {
            schema: "nodewise.advice/1",
            taken_at_s: report.taken_at.map(|taken| rounded(taken.as_secs_f64())),
            window_s: report.window.map(|window| rounded(window.as_secs_f64())),
            subject,
            file,
            other_processes: report.others,
            conclusion: report.conclusion(),
            kind: advice.kind.word(),
            evidence: report.profile.evidence().iter().map(EvidenceJson::from_evidence).collect(),
            row: RowJson {
                row: advice.row.number,
                title: advice.row.title,
                conditions: advice.conditions.iter().map(condition).collect(),
            },
            reason: report.reason(),
            placements: advice.placements.iter().map(placement).collect(),
            in_force: report.in_force.as_ref().map(InForceJson::from_state),
            next_rows: advice.flips.iter().map(NextRowJson::from_flip).collect(),
            undecided: undecided.collect(),
            recipes: recipes.collect(),
            at_once: report.at_once.iter().map(|mend: &Mend| MendJson::from_mend(mend)).collect(),
            ask_tune: AskJson {
                command: report.ask.as_deref(),
                placements: advice.ask.iter().map(placement).collect(),
            },
            trial: report.trial.as_deref(),
            apply: report.applied.map(ApplyJson::from_applied),
            program: report.application.map(|application| ProgramJson::new(application, report.options())),
        }
    }
}

impl OwnedValueJson {
    fn new(value: &nodewise_diagnose::finding::Value) -> Self {
        let json = serde_json::to_value(ValueJson::from_value(value));
        Self(json.expect("numbers and texts are JSON"))
    }
}

impl EvidenceJson {
    fn from_evidence(evidence: &AdviceEvidence) -> Self {
        let name = evidence.name;
        match &evidence.value {
            Ok((value, quality)) => Self {
                name,
                value: Some(OwnedValueJson::new(value)),
                quality: Some(quality.word()),
                not_known: None,
            },
            Err(reason) => Self { name, value: None, quality: None, not_known: Some(reason.clone()) },
        }
    }
}

impl<'a> InForceJson<'a> {
    fn from_state(state: &'a InForce) -> Self {
        let (differences, not_known): (&[String], &[String]) = match state {
            InForce::Yes => (&[], &[]),
            InForce::No(differences) => (differences, &[]),
            InForce::Unknown(missing) => (&[], missing),
        };
        Self { state: state.word(), differences, not_known }
    }
}

impl NextRowJson {
    fn from_flip(flip: &Flip) -> Self {
        Self {
            row: flip.row.number,
            title: flip.row.title,
            quantity: flip.quantity.name(),
            direction: if flip.is_above { "above" } else { "below" },
            flips_at: OwnedValueJson::new(&flip.quantity.value(flip.at)),
        }
    }
}

impl<'a> ProgramJson<'a> {
    /// An entry, with the options that go with the placement.
    fn new(application: &'a Application, options: Vec<&'a OwnOption>) -> Self {
        Self {
            id: &application.id,
            name: &application.name,
            kinds: application.kinds.iter().map(|kind| kind.word()).collect(),
            rule: &application.rule,
            reason: &application.reason,
            options: options
                .into_iter()
                .map(|option| OptionJson { file: &option.file, text: &option.text })
                .collect(),
            obsolete: application.obsolete.as_deref(),
            sources: &application.sources,
            checked: &application.checked,
        }
    }
}
