//! `nodewise io --from`: what perftest printed before, side by side.

use std::path::{Path, PathBuf};

use nodewise_machine::printable::quote;
use nodewise_measure::perftest::{Comparison, Side, Table};
use nodewise_view::svg::{Theme, perftest_svg};
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::io::Io;
use crate::failure::{Failure, Outcome};
use crate::measuring::{self, Forms};

/// Reads the files and shows their tables.
pub fn run(args: &Io, global: &Global) -> Outcome {
    let sides = args.from.iter().map(|word| side(word)).collect::<Result<Vec<Side>, Failure>>()?;
    let comparisons = Comparison::of(sides);
    let forms = Forms {
        svg: &|| perftest_svg(&comparisons, Theme::Auto),
        json: &|| json::perftest(&comparisons),
        csv: &|| csv::perftest(&comparisons),
        text: &|style| text::perftest(&comparisons, style),
    };
    measuring::show(&args.measure, global, &forms)?;
    Ok(0)
}

fn side(word: &Path) -> Result<Side, Failure> {
    let (label, path) = parts(word);
    let text = measuring::read_result(&path)?;
    let table = Table::parse(&text).map_err(|why| {
        Failure::usage(format_args!("--from: {}: {why}", quote(&path.display().to_string())))
    })?;
    Ok(Side { label, node: None, table })
}

/// `LABEL=FILE`, or a file, which then is its own label. A path may hold an equals sign: `./a=b`.
fn parts(word: &Path) -> (String, PathBuf) {
    let text = word.to_string_lossy();
    match text.split_once('=') {
        Some((label, path)) if !label.is_empty() && !label.contains('/') && !path.is_empty() => {
            (label.to_owned(), PathBuf::from(path))
        }
        _ => {
            let name = word.file_stem().unwrap_or(word.as_os_str());
            (name.to_string_lossy().into_owned(), word.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_stands_before_the_first_equals_sign_unless_that_is_in_a_path() {
        let check = |word: &str, label: &str, path: &str| {
            assert_eq!(parts(Path::new(word)), (label.to_owned(), PathBuf::from(path)), "{word}");
        };
        check("near=a.txt", "near", "a.txt");
        check("out/a.txt", "a", "out/a.txt");
        check("./a=b", "a=b", "./a=b");
        check("=b", "=b", "=b");
        check("near=x=y", "near", "x=y");
    }
}
