//! `packaging/man`: a manual page for each verb, from clap's own data.
//!
//! `SNAPSHOTS=overwrite cargo test -p nodewise --bin nodewise manual` writes the pages; without the variable the test
//! compares them. Sections that the command line does not hold are written by hand, in `packaging/man/sections`; the
//! pages of numactl and its kin are written by hand as a whole, in `packaging/man/tools`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use nodewise_compat::Tool;
use nodewise_machine::order::CollectOrdered as _;

use super::Cli;
use super::topics::TOPICS;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/man")
}

/// All pages: the name of the file and its text.
fn pages() -> BTreeMap<String, String> {
    let mut root = Cli::command();
    root.build();
    let mut pages = BTreeMap::new();
    collect(&root, None, &mut pages);
    pages
}

fn collect(command: &Command, parent: Option<&str>, pages: &mut BTreeMap<String, String>) {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    pages.insert(format!("{name}.1"), page(command, &name, parent));
    for verb in verbs_with_pages(command) {
        collect(verb, Some(&name), pages);
    }
}

/// The verbs whose pages are written here: numactl's tools have others.
fn verbs_with_pages(command: &Command) -> impl Iterator<Item = &Command> {
    let is_tool = |verb: &Command| Tool::ALL.iter().any(|tool| tool.name() == verb.get_name());
    command.get_subcommands().filter(move |verb| !verb.is_hide_set() && !is_tool(verb))
}

fn page(command: &Command, name: &str, parent: Option<&str>) -> String {
    let mut text = Vec::new();
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .source(concat!("nodewise ", env!("CARGO_PKG_VERSION")))
        .manual("nodewise manual");
    let write = |text: &mut Vec<u8>| -> std::io::Result<()> {
        man.render_title(text)?;
        man.render_name_section(text)?;
        man.render_synopsis_section(text)?;
        man.render_description_section(text)?;
        man.render_options_section(text)?;
        if command.get_subcommands().any(|verb| !verb.is_hide_set()) {
            man.render_subcommands_section(text)?;
        }
        after_help(command).to_writer(text)?;
        if parent.is_none() {
            topics().to_writer(text)?;
        }
        Ok(())
    };
    write(&mut text).expect("memory takes what is written");
    let text = String::from_utf8(text).expect("clap's texts are UTF-8");
    // Headings of manual pages are in capitals; that of verbs is the one that clap writes as it is.
    let heading = command.get_subcommand_help_heading().unwrap_or("Verbs");
    let mut text =
        text.replace(&format!("\n.SH {heading}\n"), &format!("\n.SH {}\n", heading.to_uppercase()));
    text += &fs::read_to_string(folder().join("sections").join(format!("{name}.roff"))).unwrap_or_default();
    let mut related: BTreeSet<String> = verbs_with_pages(command)
        .filter(|_| parent.is_some())
        .map(|verb| format!("{name}-{}", verb.get_name()))
        .collect_set();
    related.extend(["nodewise".to_owned()].into_iter().chain(parent.map(str::to_owned)));
    related.remove(name);
    // The root's own list names its verbs.
    if parent.is_none() {
        related.extend(Tool::ALL.map(|tool| tool.name().to_owned()));
    }
    let related: Vec<String> = related
        .iter()
        .map(|name| format!(".BR {name} ({})", if name.starts_with("nodewise") { 1 } else { 8 }))
        .collect();
    text += &format!(".SH \"SEE ALSO\"\n{}\n", related.join(",\n"));
    text
}

/// The text behind the options in the help: examples as they are typed, exit codes, and the rest as paragraphs.
fn after_help(command: &Command) -> Roff {
    let mut roff = Roff::new();
    let Some(help) = command.get_after_long_help().or_else(|| command.get_after_help()) else { return roff };
    let help = help.to_string();
    let mut has_notes = false;
    for block in help.split("\n\n") {
        if let Some(examples) = block.strip_prefix("Examples:\n") {
            roff.control("SH", ["EXAMPLES"]);
            literal(&mut roff, examples);
        } else if let Some(codes) = block.strip_prefix("Exit codes: ") {
            roff.control("SH", ["EXIT STATUS"]);
            roff.text([roman(codes)]);
            has_notes = false;
        } else {
            if has_notes {
                roff.control("PP", []);
            } else {
                roff.control("SH", ["NOTES"]);
                has_notes = true;
            }
            explained(&mut roff, block);
        }
    }
    roff
}

/// Lines that keep their blanks.
fn literal(roff: &mut Roff, lines: &str) {
    roff.control("nf", []);
    for line in lines.lines() {
        roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    roff.control("fi", []);
}

/// Paragraphs, and lists whose lines begin with two blanks.
fn explained(roff: &mut Roff, block: &str) {
    if block.lines().any(|line| line.starts_with("  ")) {
        let (head, list): (Vec<&str>, Vec<&str>) = block.lines().partition(|line| !line.starts_with("  "));
        for line in head {
            roff.text([roman(line)]);
        }
        roff.control("PP", []);
        literal(roff, &list.join("\n"));
    } else {
        roff.text([roman(block.replace('\n', " "))]);
    }
}

/// The topics of `nodewise help`, a section each.
fn topics() -> Roff {
    let mut roff = Roff::new();
    for topic in &TOPICS {
        roff.control("SH", [topic.names[0].replace('-', " ").to_uppercase().as_str()]);
        for (index, block) in topic.text.trim_end().split("\n\n").enumerate() {
            if index > 0 {
                roff.control("PP", []);
            }
            explained(&mut roff, block);
        }
    }
    roff
}

fn written() -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder()).into_iter().flatten().flatten();
    let pages = entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "1"));
    pages
        .map(|entry| {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            (entry.file_name().to_string_lossy().into_owned(), text)
        })
        .collect_map()
}

#[test]
fn the_manual_pages_are_those_of_the_command_line() {
    let pages = pages();
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        for name in written().keys().filter(|name| !pages.contains_key(*name)) {
            fs::remove_file(folder().join(name)).unwrap();
        }
        for (name, text) in &pages {
            fs::write(folder().join(name), text).unwrap();
        }
    }
    let written = written();
    let names = |pages: &BTreeMap<String, String>| pages.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&pages), names(&written), "SNAPSHOTS=overwrite writes the pages");
    for (name, text) in &pages {
        assert!(*text == written[name], "packaging/man/{name} differs (SNAPSHOTS=overwrite writes it)");
    }
}

#[test]
fn every_option_has_its_line_on_its_page() {
    fn check(command: &Command, pages: &BTreeMap<String, String>) {
        let page = &pages[&format!("{}.1", command.get_display_name().unwrap_or_else(|| command.get_name()))];
        for option in command.get_arguments().filter(|option| !option.is_hide_set()).filter_map(Arg::get_long)
        {
            let written = format!("\\-\\-{}\\fR", option.replace('-', "\\-"));
            assert!(page.contains(&written), "{}: {written}", command.get_name());
        }
        for verb in verbs_with_pages(command) {
            check(verb, pages);
        }
    }
    let mut root = Cli::command();
    root.build();
    check(&root, &pages());
}

#[test]
fn every_section_and_every_tool_has_its_page() {
    let pages = pages();
    for section in fs::read_dir(folder().join("sections")).unwrap() {
        let name = section.unwrap().file_name().to_string_lossy().replace(".roff", ".1");
        assert!(pages.contains_key(&name), "packaging/man/sections: {name} is the page of no verb");
    }
    for tool in Tool::ALL {
        let page = folder().join("tools").join(format!("{}.8", tool.name()));
        assert!(page.exists(), "{}", page.display());
    }
}
