//! The release of nodewise, the system it was built for, and what is built in.

use nodewise_compat::{Release, Tool};
use nodewise_experiment::suite;
use nodewise_lab::TESTED_VERSIONS;

use crate::scenario;

/// The columns of a line.
const WIDTH: usize = 80;

/// Returns the output of `--version` and `nodewise version`: the first line is for programs.
pub fn text() -> String {
    let names = |shipped: &[(&'static str, &str)]| shipped.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let tools = Tool::ALL.map(Tool::name).join(", ");
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    let linked = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    let optimised = if cfg!(debug_assertions) { ", not optimised" } else { "" };
    [
        format!("nodewise {}", env!("CARGO_PKG_VERSION")),
        format!("target     {}-linux-{libc}, {linked}{optimised}", std::env::consts::ARCH),
        format!("tools      {tools}: those of {}", Release::default().number()),
        format!("kernels    model compared with Linux {}", TESTED_VERSIONS.join(", ")),
        listed("suites     ", &names(&suite::SHIPPED)),
        listed("scenarios  ", &names(&scenario::SHIPPED)),
    ]
    .join("\n")
        + "\n"
}

/// Names behind a word, in as many lines as they need; further lines begin below the first name.
fn listed(word: &str, names: &[&str]) -> String {
    let mut lines = vec![word.to_owned()];
    for (at, name) in names.iter().enumerate() {
        let end = if at + 1 < names.len() { "," } else { "" };
        let begin = word.len();
        let last = lines.last().map_or(0, String::len);
        if last > begin && last + 1 + name.len() + end.len() >= WIDTH {
            lines.push(" ".repeat(begin));
        }
        if let Some(line) = lines.last_mut() {
            let gap = if line.len() > begin { " " } else { "" };
            *line += &format!("{gap}{name}{end}");
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_listed_and_no_line_fills_the_width() {
        let names = scenario::SHIPPED.map(|(name, _)| name);
        for count in 0..=names.len() {
            let text = listed("scenarios  ", &names[..count]);
            assert!(text.lines().all(|line| line.len() < WIDTH), "{text}");
            let words: Vec<&str> =
                text.split_whitespace().skip(1).map(|word| word.trim_end_matches(',')).collect();
            assert_eq!(words, names[..count]);
        }
    }
}
