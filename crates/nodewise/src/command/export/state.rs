//! The state of the nodes as metrics: once, or for whoever asks.

use std::net::SocketAddr;

use nodewise_source::sample::{Moment, SampleOptions, Sampler};
use nodewise_source::tree::Tree;
use nodewise_view::export::{self, Exposition};

use super::listen;
use crate::cli::Global;
use crate::failure::Outcome;
use crate::input::{self, Input};

/// The state of the nodes now, or at the moment of a capture.
pub(super) fn metrics(global: &Global, input: Input, exposition: Exposition) -> String {
    let machine = input.machine.clone();
    let moment = moment(global);
    export::metrics(&machine, &sampler(global, input).sample(moment), exposition)
}

fn moment(global: &Global) -> Moment {
    if input::is_live(&global.machine) { Moment::now() } else { Moment::default() }
}

/// The reader of `stat`, without processes.
fn sampler(global: &Global, input: Input) -> Sampler {
    let tree = if input::is_live(&global.machine) { Tree::live() } else { input.into_tree() };
    Sampler::new(tree, SampleOptions::default())
}

/// Answers on an address until Ctrl-C.
///
/// # Errors
/// As [`listen::listen`].
pub(super) fn serve(global: &Global, input: Input, address: SocketAddr) -> Outcome {
    let machine = input.machine.clone();
    let mut sampler = sampler(global, input);
    listen::listen(address, |exposition| {
        export::metrics(&machine, &sampler.sample(moment(global)), exposition)
    })
}
