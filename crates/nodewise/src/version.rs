//! The release of nodewise, the system it was built for, and what is built in.

use nodewise_compat::{Release, Tool};
use nodewise_experiment::suite;
use nodewise_lab::TESTED_VERSIONS;

use crate::scenario;

/// Returns the output of `--version` and `nodewise version`: the first line is for programs.
pub fn text() -> String {
    let names = |shipped: &[(&'static str, &str)]| {
        shipped.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    };
    let tools = Tool::ALL.map(Tool::name).join(", ");
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    let linked = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    let optimised = if cfg!(debug_assertions) { ", not optimised" } else { "" };
    [
        format!("nodewise {}", env!("CARGO_PKG_VERSION")),
        format!("target     {}-linux-{libc}, {linked}{optimised}", std::env::consts::ARCH),
        format!("tools      {tools}: those of {}", Release::default().number()),
        format!("kernels    model compared with Linux {}", TESTED_VERSIONS.join(", ")),
        format!("suites     {}", names(&suite::SHIPPED)),
        format!("scenarios  {}", names(&scenario::SHIPPED)),
    ]
    .join("\n")
        + "\n"
}
