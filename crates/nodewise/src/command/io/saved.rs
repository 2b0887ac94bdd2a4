//! `nodewise io --from`: a result that `--json` has written, or what perftest printed, side by side.

use std::path::{Path, PathBuf};

use nodewise_machine::printable::quote;
use nodewise_measure::perftest::{Comparison, NoTable, Side, Table};
use nodewise_view::json::Saved;
use nodewise_view::svg::perftest_svg;
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::io::Io;
use crate::failure::{Failure, Outcome};
use crate::measuring::{self, Forms};

/// A file that `--from` names.
struct Source {
    label: Option<String>,
    path: PathBuf,
    text: String,
}

/// Reads the files and shows the result or the tables in them.
pub fn run(args: &Io, global: &Global) -> Outcome {
    let sources = args.from.iter().map(|word| Source::read(word)).collect::<Result<Vec<_>, Failure>>()?;
    if let Some(result) = sources.iter().find(|source| source.is_json()) {
        return show_result(result, &sources, args, global);
    }
    let sides = sources.into_iter().map(Source::side).collect::<Result<Vec<Side>, Failure>>()?;
    show_tables(&Comparison::from_sides(sides), args, global)
}

/// Shows what `--json` has written, as its schema says.
fn show_result(result: &Source, sources: &[Source], args: &Io, global: &Global) -> Outcome {
    if let Some(other) = sources.iter().find(|source| !std::ptr::eq(*source, result)) {
        let (result, path) = (result.name(), other.name());
        return Err(Failure::usage(if other.is_json() {
            format!("--from: {result} and {path} are two results of nodewise io: expected one")
        } else {
            format!(
                "--from: {result} is a result of nodewise io and {path} is not: expected one result alone, or \
                 only output of perftest"
            )
        }));
    }
    if let Some(label) = &result.label {
        return Err(Failure::usage(format_args!(
            "--from: {} is a result of nodewise io, which takes no label: leave out {}",
            result.name(),
            quote(&format!("{label}="))
        )));
    }
    let shown = Saved::from_json(&result.text).and_then(|saved| match saved.schema() {
        json::perftest::SCHEMA => {
            json::perftest::read(&saved).map(|comparisons| show_tables(&comparisons, args, global))
        }
        _ => json::io::read(&saved).map(|report| super::show(&report, args, global)),
    });
    shown.map_err(|why| {
        Failure::usage(format_args!("--from: {} is not a result of nodewise io: {why}", result.name()))
    })?
}

fn show_tables(comparisons: &[Comparison], args: &Io, global: &Global) -> Outcome {
    let forms = Forms {
        picture: &|theme| perftest_svg(comparisons, theme),
        json: &|| json::perftest(comparisons),
        csv: &|| csv::perftest(comparisons),
        text: &|style| text::perftest(comparisons, style),
    };
    measuring::show(&args.measure, global, &forms)?;
    Ok(0)
}

impl Source {
    fn read(word: &Path) -> Result<Self, Failure> {
        let (label, path) = parts(word);
        let text = measuring::read_result(&path)?;
        Ok(Self { label, path, text })
    }

    /// Distinguishes JSON from output of perftest: only JSON begins with a brace.
    fn is_json(&self) -> bool {
        self.text.trim_start().starts_with('{')
    }

    /// Its path, for a message.
    fn name(&self) -> String {
        quote(&self.path.display().to_string())
    }

    fn side(self) -> Result<Side, Failure> {
        let table = Table::parse(&self.text).map_err(|why| {
            let neither = if why == NoTable::NoHeads { "it is not JSON of nodewise io, and " } else { "" };
            Failure::usage(format_args!("--from: {}: {neither}{why}", self.name()))
        })?;
        let name = self.path.file_stem().unwrap_or(self.path.as_os_str());
        let label = self.label.unwrap_or_else(|| name.to_string_lossy().into_owned());
        Ok(Side { label, node: None, table })
    }
}

/// `LABEL=FILE`, or a file, whose name is the label then. A path may hold an equals sign: `./a=b`.
fn parts(word: &Path) -> (Option<String>, PathBuf) {
    let text = word.to_string_lossy();
    match text.split_once('=') {
        Some((label, path)) if !label.is_empty() && !label.contains('/') && !path.is_empty() => {
            (Some(label.to_owned()), PathBuf::from(path))
        }
        _ => (None, word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_stands_before_the_first_equals_sign_unless_that_is_in_a_path() {
        let check = |word: &str, label: Option<&str>, path: &str| {
            let expected = (label.map(str::to_owned), PathBuf::from(path));
            assert_eq!(parts(Path::new(word)), expected, "{word}");
        };
        check("near=a.txt", Some("near"), "a.txt");
        check("out/a.txt", None, "out/a.txt");
        check("./a=b", None, "./a=b");
        check("=b", None, "=b");
        check("near=x=y", Some("near"), "x=y");
    }
}
