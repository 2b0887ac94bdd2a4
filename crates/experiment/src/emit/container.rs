//! Container engines and Kubernetes: they bind through cpusets, and their seccomp filters may keep a
//! program inside from setting a policy of its own.

use nodewise_machine::{PolicyMode, printable};

use super::{Emitted, Unsaid, Wish, joined};

const CAPABILITY: &str = "the capability SYS_NICE lets the program inside set a memory policy, which the engine's seccomp filter denies otherwise";

/// `docker run` and `podman run` have the same options for this.
///
/// # Source
/// docker-run(1) and podman-run(1), `--cpuset-cpus`, `--cpuset-mems` and `-e`.
pub(super) fn engine(name: &str, wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let program = wish.program_or("");
    let mut words = vec![name.to_owned(), "run".to_owned()];
    words.extend(wish.cpus().map(|cpus| format!("--cpuset-cpus={cpus}")));
    words.extend(wish.threads.assignments().into_iter().map(|variable| format!("-e {variable}")));
    let bound = wish.bound().filter(|_| wish.placement.huge.is_none());
    if let Some(nodes) = bound {
        words.push(format!("--cpuset-mems={nodes}"));
    }
    if bound.is_some() || (wish.policy().is_none() && wish.placement.huge.is_none()) {
        words.extend(["IMAGE".to_owned(), program]);
        return Ok(Emitted::new(joined(words)));
    }
    let program = if program.is_empty() { "PROGRAM".to_owned() } else { program };
    let inside = wish.words()?;
    let tool = inside.first().cloned().unwrap_or_default();
    words.extend(["--cap-add=SYS_NICE".to_owned(), "IMAGE".to_owned()]);
    words.extend(inside.into_iter().chain([program]));
    Ok(Emitted::new(joined(words))
        .note(format!("{name} can bind memory and no more, so {tool} does it and has to be in the image"))
        .note(CAPABILITY))
}

/// A pod of the guaranteed class on a kubelet that aligns CPUs and memory, or a program that is placed
/// inside.
///
/// # Source
/// Kubernetes, "Utilizing the NUMA-aware Memory Manager" and "Control Topology Management Policies on a
/// node"; the fields are those of KubeletConfiguration and Pod v1.
pub(super) fn kubernetes(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let program = if wish.program.is_empty() { vec!["PROGRAM".to_owned()] } else { wish.program.to_vec() };
    let is_one_node = wish.bound().is_some_and(|nodes| nodes.len() == 1) && wish.placement.huge.is_none();
    if let Some(cpus) = wish.cpus().filter(|_| is_one_node) {
        let text = format!(
            "# the kubelet's configuration\n\
             cpuManagerPolicy: static\n\
             memoryManagerPolicy: Static\n\
             topologyManagerPolicy: single-numa-node\n\
             # reservedMemory has to name every NUMA node's share of what is reserved for the system\n\
             ---\n\
             # in the pod, for the container: requests equal to limits, in whole CPUs\n\
             resources:\n  \
             requests: {{cpu: \"{0}\", memory: SIZE}}\n  \
             limits: {{cpu: \"{0}\", memory: SIZE}}\n{1}{2}",
            cpus.len(),
            // The image's own command does not hold the number.
            wish.threads.in_words().map_or_else(String::new, |_| command_field(&program)),
            env_field(wish)
        );
        return Ok(Emitted::new(text).note(
            "the kubelet chooses which NUMA node a pod gets: all of its CPUs and memory come from one, not necessarily from this one",
        ));
    }
    let words: Vec<String> = wish.words()?;
    let is_placed = !words.is_empty();
    let text = format!(
        "# in the pod, for the container\n{}{}{}",
        command_field(&words.into_iter().chain(program).collect::<Vec<_>>()),
        env_field(wish),
        if is_placed { "securityContext:\n  capabilities: {add: [SYS_NICE]}\n" } else { "" }
    );
    if !is_placed {
        return Ok(Emitted::new(text));
    }
    let why = match wish.policy().map(|policy| policy.mode) {
        Some(PolicyMode::Interleave | PolicyMode::WeightedInterleave) => {
            "the kubelet can give a pod one NUMA node and cannot interleave, so the program does it inside"
        }
        _ => "the kubelet has no word for this placement, so the program gets it inside",
    };
    Ok(Emitted::new(text).note(why).note(CAPABILITY))
}

/// The field that says what a container runs.
fn command_field(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("command: [{}]\n", words.join(", "))
}

/// The field of the variables that show how many threads to use; empty without any.
fn env_field(wish: &Wish<'_>) -> String {
    let variable = |(name, count)| format!("- {{name: {name}, value: \"{count}\"}}\n");
    let variables: String = wish.threads.variables().map(variable).collect();
    if variables.is_empty() { variables } else { format!("env:\n{variables}") }
}

/// A word of a container's command as a double-quoted scalar, which YAML shares with JSON. `$` is doubled:
/// `$(NAME)` would be replaced.
///
/// # Source
/// Kubernetes, "Define a Command and Arguments for a Container"; the field `command` of Container v1.
fn quoted(word: &str) -> String {
    let text = serde_json::to_string(&word.replace('$', "$$")).expect("a string is JSON");
    printable::json(&text).into_owned()
}
