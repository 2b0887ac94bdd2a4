//! Figures that another tool printed: `latency`, `bandwidth` and `report` show them with `--from`.

use nodewise_measure::figures::ToolFigures;
use nodewise_view::json::Saved;
use nodewise_view::svg::figures_svg;
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::measure_options::MeasureOptions;
use crate::failure::Outcome;
use crate::measuring::{self, Forms};

/// The figures that a verb shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureSubject {
    Latency,
    Bandwidth,
}

/// Reads the figures about a subject in the output of a tool, or in a document of such; `None` for other texts.
///
/// # Errors
/// A text of a tool in which they cannot be read, or which has none of them.
pub fn read(text: &str, subject: FigureSubject) -> Result<Option<ToolFigures>, String> {
    let Some(all) = all(text)? else { return Ok(None) };
    all.only(subject == FigureSubject::Latency).map(Some).ok_or_else(|| {
        let tool = all.tool.name();
        match subject {
            FigureSubject::Latency => {
                format!("it is an output of {tool} without latencies: nodewise bandwidth --from shows its bandwidths")
            }
            FigureSubject::Bandwidth => {
                format!("it is an output of {tool} without bandwidths: nodewise latency --from shows its latencies")
            }
        }
    })
}

/// The document of the figures in the output of a tool; `None` for other texts.
///
/// # Errors
/// A text of a tool without any figure.
pub fn document(text: &str) -> Result<Option<String>, String> {
    if is_json(text) {
        return Ok(None);
    }
    Ok(all(text)?.map(|figures| json::tool_figures(&figures)))
}

/// Reads all figures in the output of a tool, or in a document of such; `None` for other texts.
///
/// # Errors
/// A text of a tool without any figure, and a document that is damaged.
pub fn all(text: &str) -> Result<Option<ToolFigures>, String> {
    if is_json(text) {
        let saved = Saved::from_json(text)?;
        let is_figures = saved.schema() == json::figures::SCHEMA;
        return if is_figures { json::figures::read(&saved).map(Some) } else { Ok(None) };
    }
    ToolFigures::parse(text).transpose().map_err(|error| error.to_string())
}

/// Only JSON begins with a brace.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Shows figures as the options want it.
pub fn show(figures: &ToolFigures, options: &MeasureOptions, global: &Global) -> Outcome {
    let forms = Forms {
        picture: &|theme| figures_svg(figures, theme),
        json: &|| json::tool_figures(figures),
        csv: &|| csv::tool_figures(figures),
        text: &|style| text::tool_figures(figures, style),
    };
    measuring::show(options, global, &forms)?;
    Ok(0)
}
