//! The personalities alone: the smallest program around them, for measuring what they cost.
//!
//! Called by the name of a tool it is that tool: `ln -s personality numactl`.
#![forbid(unsafe_code)]

use std::io::BufWriter;
use std::process::ExitCode;

use nodewise_compat::Call;
use nodewise_source::tree::Tree;

fn main() -> ExitCode {
    let tree = Tree::live();
    let Some(call) = Call::from_words(std::env::args_os(), &tree) else { return ExitCode::from(2) };
    let (stdout, stderr) = (std::io::stdout().lock(), std::io::stderr().lock());
    let status = nodewise_compat::run(&call, &mut BufWriter::new(stdout), &mut BufWriter::new(stderr));
    ExitCode::from(status)
}
