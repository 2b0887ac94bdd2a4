//! Documents of made-up measurements: a report has a page for each. They are left in `target/tmp/documents` for
//! `cargo xtask pages`, which looks at such pages in a browser.

use std::fs;
use std::path::Path;

use nodewise_view::json;
use nodewise_view::report::{HtmlReport, Part, html, page};

use crate::server::Server;
use crate::{io, loaded, sweep};

/// The largest report of a machine with eight nodes, in bytes: it fits a mail.
const MOST: usize = 2_000_000;

/// Documents by name; the number is that of the nodes.
fn documents() -> Vec<(&'static str, String)> {
    vec![
        ("latency-8", json::latency(&Server::new(8).latency())),
        ("loaded-8", json::loaded(&loaded::two_nodes())),
        ("sweep-8", json::sweep::sweep(&sweep::sweep())),
        ("bandwidth-8", json::bandwidth(&Server::new(8).bandwidth())),
        ("c2c-8", json::c2c(&Server::new(8).cores())),
        ("io-8", json::io(&io::report(2))),
        ("latency-64", json::latency(&Server::new(64).latency())),
        ("bandwidth-64", json::bandwidth(&Server::new(64).bandwidth())),
    ]
}

#[test]
fn a_report_has_a_page_for_each_document_and_fits_a_mail() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("documents");
    fs::create_dir_all(&folder).unwrap();
    let mut pages = Vec::new();
    for (name, document) in documents() {
        let page = page(name, &document).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            matches!(&page.parts[..], [Part::Picture(_), Part::Text(_), Part::Table(..)]),
            "{name}: {:?}",
            page.parts
        );
        fs::write(folder.join(format!("{name}.json")), document).unwrap();
        if name.ends_with("-8") {
            pages.push(page);
        }
    }
    let whole = html(&HtmlReport { title: "eight nodes".to_owned(), facts: Vec::new(), pages });
    assert!(whole.len() < MOST, "{} bytes", whole.len());
}
