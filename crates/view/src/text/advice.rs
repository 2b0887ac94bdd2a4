//! The text of `nodewise advise`: the placement first, then evidence, reasons, recipes and what would decide.

use nodewise_diagnose::advice::InForce;

use crate::digest::advice::{AdviceReport, AdvisedProgram, condition, flip};
use crate::digest::doctor::{owner, price, value};
use crate::digest::running::words::duration;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page, columns};

/// Writes the report.
pub fn advice(report: &AdviceReport<'_>, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.line(2, &Line::new().with(Ink::Strong, report.conclusion()));
    kind(report, &mut page);
    evidence(report, &mut page);
    why(report, &mut page);
    recipes(report, &mut page);
    at_once(report, &mut page);
    applied(report, &mut page);
    experiment(report, &mut page);
    sources(report, &mut page);
    page.finish()
}

fn kind(report: &AdviceReport<'_>, page: &mut Page) {
    let mut words = report.advice.kind.words().to_owned();
    if let Some(application) = report.application {
        words.push_str(&format!("; known as {}", application.name));
    }
    if let AdvisedProgram::Process(subject) = report.program {
        words.extend(owner(subject).map(|owner| format!("; placed by {owner}")));
    }
    match report.others {
        0 => {}
        1 => words.push_str("; the larger of 2 processes"),
        others => words.push_str(&format!("; the largest of {} processes", others + 1)),
    }
    page.heading("Kind", &words);
    match &report.in_force {
        None | Some(InForce::Yes) if report.advice.placements.is_empty() => {}
        None => {}
        Some(InForce::Yes) => page.line(4, &Line::from("  in force already")),
        Some(InForce::No(differences)) => {
            page.line(
                4,
                &Line::from("  ").with(Ink::Notable, format!("not in force: {}", differences.join("; "))),
            );
        }
        Some(InForce::Unknown(missing)) => {
            page.line(4, &Line::from(format!("  in force or not: {}", missing.join("; "))));
        }
    }
}

fn evidence(report: &AdviceReport<'_>, page: &mut Page) {
    let watched = match report.window {
        Some(window) if window.as_secs() < 60 => format!("{:.1} s watched", window.as_secs_f64()),
        Some(window) => format!("{} watched", duration(window)),
        None => "not watched".to_owned(),
    };
    page.heading("Evidence", &watched);
    let facts = report.profile.evidence();
    let known: Vec<_> =
        facts.iter().filter_map(|fact| Some((fact.name, fact.value.as_ref().ok()?))).collect();
    let widest = known.iter().map(|(name, _)| columns(name)).max().unwrap_or(0);
    for (name, (what, quality)) in known {
        let blank = " ".repeat(widest - columns(name));
        let line = Line::from(format!("  {name}{blank}  {}", value(what)));
        page.line(4, &line.with(Ink::Faint, format!("  {}", quality.word())));
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, reason) in facts.iter().filter_map(|fact| Some((fact.name, fact.value.as_ref().err()?))) {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    for (reason, names) in reasons {
        page.line(4, &Line::from(format!("  not known: {} ({reason})", names.join(", "))));
    }
    if let Some(age) = report.profile.age.value().filter(|_| report.profile.is_young() == Some(true)) {
        let words = format!(
            "  it has run for only {:.0} s: its size and its threads may still change",
            age.as_secs_f64()
        );
        page.line(4, &Line::from(words));
    }
}

fn why(report: &AdviceReport<'_>, page: &mut Page) {
    let row = report.advice.row;
    page.heading("Why", &format!("row {}: {}", row.number, row.title));
    page.line(4, &Line::from(format!("  {}", report.reason())));
    for holds in &report.advice.conditions {
        page.line(6, &Line::from(format!("  - {}", condition(holds))));
    }
    for (number, other) in report.advice.flips.iter().take(3).enumerate() {
        let label = if number == 0 { "would be " } else { "or " };
        page.line(4, &Line::from(format!("  {label}{}", flip(other))));
    }
    for open in report.undecided() {
        page.line(4, &Line::from(format!("  open: {open}")));
    }
}

fn recipes(report: &AdviceReport<'_>, page: &mut Page) {
    let options = report.options();
    if report.recipes.is_empty() && options.is_empty() {
        return;
    }
    page.heading("How", "after a restart of the program");
    for recipe in report.recipes {
        page.line(4, &Line::from("  ").with(Ink::Faint, format!("{}:", recipe.tool)));
        for line in recipe.text.lines() {
            page.verbatim(4, line);
        }
        for note in &recipe.notes {
            page.line(4, &Line::from("    ").with(Ink::Faint, note));
        }
    }
    for option in options {
        page.line(4, &Line::from("  ").with(Ink::Faint, format!("own option, {}:", option.file)));
        page.verbatim(4, &option.text);
    }
}

/// Shows the steps that were taken, or would be; the commands of `at_once` are then not for typing.
fn applied(report: &AdviceReport<'_>, page: &mut Page) {
    let Some(applied) = report.applied else { return };
    page.heading("Apply", &applied.result());
    for step in applied.steps() {
        page.line(6, &Line::from(format!("  - {step}")));
    }
    for left in &applied.left {
        page.line(4, &Line::from(format!("  not applied: {left}")));
    }
    if let Some(missing) = &applied.missing_rights {
        page.line(4, &Line::from("  ").with(Ink::Notable, missing.as_str()));
    }
    if let Some(drop_in) = &applied.drop_in {
        let verb = if drop_in.is_written { "written" } else { "would be written" };
        page.line(4, &Line::from(format!("  {verb}: {}", drop_in.path)));
        drop_in.diff.lines().for_each(|line| page.verbatim(4, line));
        for next in &drop_in.next {
            page.line(4, &Line::from("  not run, for you to decide:"));
            page.verbatim(4, next);
        }
    }
    for command in &applied.undo {
        page.line(4, &Line::from("  ").with(Ink::Faint, "undo:"));
        page.verbatim(4, command);
    }
}

fn at_once(report: &AdviceReport<'_>, page: &mut Page) {
    if report.applied.is_some() {
        return;
    }
    for mend in report.at_once {
        page.heading("Now", &format!("{} ({})", mend.what, price(mend)));
        for command in &mend.commands {
            page.verbatim(4, command);
        }
        for command in &mend.undo {
            page.line(4, &Line::from("  ").with(Ink::Faint, "undo:"));
            page.verbatim(4, command);
        }
    }
}

fn experiment(report: &AdviceReport<'_>, page: &mut Page) {
    if let Some(trial) = &report.trial {
        page.heading("To know more", "starts the program, watches it, and ends it");
        page.verbatim(4, trial);
    }
    if let Some(ask) = &report.ask {
        page.heading("To decide", "a measurement overrides this advice");
        page.verbatim(4, ask);
    }
}

fn sources(report: &AdviceReport<'_>, page: &mut Page) {
    let Some(application) = report.application else { return };
    page.heading("Known", &application.rule);
    if let Some(obsolete) = &application.obsolete {
        page.line(4, &Line::from(format!("  old advice: {obsolete}")));
    }
    let sources = application.sources.join("; ");
    page.line(
        4,
        &Line::from("  ").with(Ink::Faint, format!("sources: {sources} (read {})", application.checked)),
    );
}
