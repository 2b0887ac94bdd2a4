//! A result that is read is written and read back the same, and every form of it can be made; what is
//! refused says why in words fit for a terminal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::printable::printable;
use nodewise_view::json::{self, Saved};
use nodewise_view::svg::{
    Theme, bandwidth_svg, c2c_svg, figures_svg, file_svg, io_svg, latency_svg, loaded_svg, perftest_svg,
    sweep_svg, tune_svg,
};
use nodewise_view::{Style, csv, text};

/// The output for a document: its JSON twin, and all other forms in one.
type Shown = (String, String);

fn show(document: &str) -> Result<Shown, String> {
    let (saved, style) = (Saved::from_json(document)?, Style::plain(60));
    Ok(match saved.schema() {
        schema if json::bandwidth::READ.contains(&schema) => {
            let of = json::bandwidth::read(&saved)?;
            let svg = bandwidth_svg(&of, Theme::Auto);
            (json::bandwidth(&of), [csv::bandwidth(&of), text::bandwidth(&of, &style), svg].concat())
        }
        schema if json::file::READ.contains(&schema) => {
            let of = json::file::read(&saved)?;
            (json::file(&of), [csv::file(&of), text::file(&of, &style), file_svg(&of, Theme::Auto)].concat())
        }
        json::c2c::SCHEMA => {
            let of = json::c2c::read(&saved)?;
            (json::c2c(&of), [csv::c2c(&of), text::c2c(&of, &style), c2c_svg(&of, Theme::Auto)].concat())
        }
        schema if json::io::READ.contains(&schema) => {
            let of = json::io::read(&saved)?;
            (json::io(&of), [csv::io(&of), text::io(&of, &style), io_svg(&of, Theme::Auto)].concat())
        }
        json::perftest::SCHEMA => {
            let of = json::perftest::read(&saved)?;
            let svg = perftest_svg(&of, Theme::Auto);
            (json::perftest(&of), [csv::perftest(&of), text::perftest(&of, &style), svg].concat())
        }
        json::figures::SCHEMA => {
            let of = json::figures::read(&saved)?;
            let svg = figures_svg(&of, Theme::Auto);
            (json::tool_figures(&of), [csv::tool_figures(&of), text::tool_figures(&of, &style), svg].concat())
        }
        json::loaded::SCHEMA => {
            let of = json::loaded::read(&saved)?;
            let svg = loaded_svg(&of, Theme::Auto);
            (json::loaded(&of), [csv::loaded(&of), text::loaded(&of, &style), svg].concat())
        }
        json::sweep::SWEEP_SCHEMA => {
            let of = json::sweep::read(&saved)?;
            let text = text::sweep::sweep(&of, &style);
            (json::sweep::sweep(&of), [csv::sweep(&of), text, sweep_svg(&of, Theme::Auto)].concat())
        }
        json::sweep::TABLE_SCHEMA => {
            let of = json::sweep::read(&saved)?;
            let text = text::sweep::table(&of, &style);
            (json::sweep::table(&of), [csv::sweep(&of), text, sweep_svg(&of, Theme::Auto)].concat())
        }
        json::tune::SCHEMA => {
            let of = json::tune::read(&saved)?;
            // A document of a study is printed as it is: only its placements are read.
            let text = text::tune::saved(&of, &style);
            (document.to_owned(), [csv::tune(&of), text, tune_svg(&of, Theme::Auto)].concat())
        }
        _ => {
            let of = json::latency::read(&saved)?;
            let svg = latency_svg(&of, Theme::Auto);
            (json::latency(&of), [csv::latency(&of), text::latency(&of, &style), svg].concat())
        }
    })
}

fuzz_target!(|document: &str| {
    let (written, shown) = match show(document) {
        Ok(shown) => shown,
        Err(error) => {
            assert_eq!(printable(&error), error);
            return;
        }
    };
    assert!(!shown.contains('\x1b'));
    let again = show(&written).expect("what was written is a result");
    assert_eq!(again.0, written);
});
