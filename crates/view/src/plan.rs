//! Scripts that survey many machines on engines that sites already run: Slurm, ssh, Kubernetes.
//!
//! nodewise builds no engine. A plan is a directory of files that an administrator reads, changes, and starts with
//! `submit.sh`. Each survey is a file in `results`, which gets its name when it is complete; `hosts` lists the hosts that are
//! expected. Reports need nothing else, so results can come from elsewhere, too.

use nodewise_experiment::shell;

/// The things that all surveys of a plan have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetPlan<'a> {
    /// The name of the run.
    pub run: &'a str,
    /// The parts of each survey, as `--verbs` takes them.
    pub verbs: &'a str,
    /// The path of nodewise on the hosts.
    pub program: &'a str,
    pub engine: FleetEngine<'a>,
}

/// The engine that starts surveys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetEngine<'a> {
    Slurm {
        /// A partition or a list of nodes: Slurm says which.
        place: &'a str,
        /// More options of sbatch.
        options: &'a [String],
        /// How many minutes a survey may wait for its host.
        deadline_minutes: u64,
    },
    Ssh {
        /// Hosts as ssh takes them.
        targets: &'a [String],
        /// Hosts at once; `None`: some.
        parallel: Option<u32>,
    },
    Kubernetes {
        image: &'a str,
        namespace: &'a str,
        nodes: u32,
    },
}

/// A file of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFile {
    pub name: &'static str,
    pub text: String,
    /// Whether the file is a program.
    pub is_program: bool,
}

/// Hosts that ssh reaches at once unless something else is asked for.
const PARALLEL: u32 = 32;

/// The time limit of a survey in survey.sbatch.
const SURVEY_MINUTES: u64 = 3;

/// The files of a plan.
pub fn files(plan: &FleetPlan<'_>) -> Vec<PlanFile> {
    match plan.engine {
        FleetEngine::Slurm { place, options, deadline_minutes } => {
            slurm(plan, place, options, deadline_minutes)
        }
        FleetEngine::Ssh { targets, parallel } => ssh(plan, targets, parallel),
        FleetEngine::Kubernetes { image, namespace, nodes } => kubernetes(plan, image, namespace, nodes),
    }
}

fn file(name: &'static str, text: String) -> PlanFile {
    PlanFile { name, text, is_program: name == "submit.sh" }
}

/// Puts values in the places of a template: `@name@`.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    // A value may hold what looks like a place.
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, from)) = rest.split_once('@') {
        text.push_str(before);
        let place = from.split_once('@').and_then(|(name, after)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some((*value, after))
        });
        match place {
            Some((value, after)) => {
                text.push_str(value);
                rest = after;
            }
            None => {
                text.push('@');
                rest = from;
            }
        }
    }
    text.push_str(rest);
    text
}

fn slurm(plan: &FleetPlan<'_>, place: &str, options: &[String], deadline: u64) -> Vec<PlanFile> {
    let words: String = options.iter().map(|option| format!(" {}", shell::word(option))).collect();
    let (place, program, run) = (shell::word(place), shell::word(plan.program), shell::word(plan.run));
    // Slurm's deadline is that of the end.
    let deadline = (deadline.max(1) + SURVEY_MINUTES).to_string();
    let values: &[(&str, &str)] = &[
        ("where", &place),
        ("options", &words),
        ("deadline", &deadline),
        ("program", &program),
        ("run", &run),
        ("verbs", plan.verbs),
    ];
    vec![
        file("submit.sh", filled(include_str!("plan/slurm-submit.sh"), values)),
        file("survey.sbatch", filled(include_str!("plan/slurm-survey.sbatch"), values)),
        file("merge.sbatch", filled(include_str!("plan/slurm-merge.sbatch"), values)),
    ]
}

fn ssh(plan: &FleetPlan<'_>, targets: &[String], parallel: Option<u32>) -> Vec<PlanFile> {
    let parallel = parallel.unwrap_or(PARALLEL).to_string();
    // The shell of the other host takes the words once more.
    let program = shell::word(plan.program).into_owned();
    let (program, run) = (shell::word(&program), shell::word(plan.run));
    let values: &[(&str, &str)] =
        &[("parallel", &parallel), ("program", &program), ("run", &run), ("verbs", plan.verbs)];
    let hosts = targets.iter().map(|target| format!("{target}\n")).collect();
    vec![
        file("submit.sh", filled(include_str!("plan/ssh-submit.sh"), values)),
        file("survey-host.sh", filled(include_str!("plan/ssh-survey-host.sh"), values)),
        file("hosts", hosts),
    ]
}

fn kubernetes(plan: &FleetPlan<'_>, image: &str, namespace: &str, nodes: u32) -> Vec<PlanFile> {
    // A text in quotes is the same in JSON and in YAML.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let [image, program, run, verbs] = [image, plan.program, plan.run, plan.verbs].map(quoted);
    let nodes = nodes.to_string();
    let objects: &[(&str, &str)] = &[
        ("image", &image),
        ("program", &program),
        ("run", &run),
        ("verbs", &verbs),
        ("namespace", namespace),
        ("nodes", &nodes),
    ];
    vec![
        file("submit.sh", filled(include_str!("plan/k8s-submit.sh"), &[("namespace", namespace)])),
        file("daemonset.yaml", filled(include_str!("plan/k8s-daemonset.yaml"), objects)),
        file("job.yaml", filled(include_str!("plan/k8s-job.yaml"), objects)),
    ]
}

/// Whether a text can name a namespace of Kubernetes: RFC 1123, as for every label.
pub fn is_namespace(text: &str) -> bool {
    let fits = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let bytes = text.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes.iter().all(|letter| fits(*letter) || *letter == b'-')
        && fits(bytes[0])
        && fits(bytes[bytes.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: FleetPlan<'static> = FleetPlan {
        run: "r1",
        verbs: "show,latency",
        program: "/opt/my tools/nodewise",
        engine: FleetEngine::Slurm { place: "n[1-64]", options: &[], deadline_minutes: 30 },
    };

    #[test]
    fn no_place_of_a_template_stays_empty() {
        let targets = ["root@a".to_owned()];
        let options = ["--account=a b".to_owned()];
        for engine in [
            FleetEngine::Slurm { place: "it's", options: &options, deadline_minutes: 0 },
            FleetEngine::Ssh { targets: &targets, parallel: None },
            FleetEngine::Kubernetes { image: "a\"b@run@", namespace: "ops", nodes: 3 },
        ] {
            for file in files(&FleetPlan { engine, ..PLAN }).into_iter().filter(|file| file.name != "hosts") {
                let places = file
                    .text
                    .split('@')
                    .filter(|part| part.chars().all(|c| c.is_ascii_lowercase()) && !part.is_empty());
                let left: Vec<&str> = places.filter(|part| !["a"].contains(part)).collect();
                assert!(left.is_empty() || file.text.contains("b@run@"), "{}: {left:?}", file.name);
            }
        }
    }

    #[test]
    fn words_of_the_user_are_one_word_of_the_shell() {
        let options = ["--comment=a b; rm -rf /".to_owned()];
        let engine = FleetEngine::Slurm { place: "$(reboot)", options: &options, deadline_minutes: 30 };
        let made = files(&FleetPlan { engine, ..PLAN });
        assert!(made[0].text.contains("where='$(reboot)'"), "{}", made[0].text);
        assert!(made[0].text.contains("set -- '--comment=a b; rm -rf /'"), "{}", made[0].text);
        assert!(made[1].text.contains("'/opt/my tools/nodewise' survey"), "{}", made[1].text);
        let targets = ["a".to_owned()];
        let made =
            files(&FleetPlan { engine: FleetEngine::Ssh { targets: &targets, parallel: None }, ..PLAN });
        assert!(made[1].text.contains(r#""'/opt/my tools/nodewise'" survey"#), "{}", made[1].text);
    }

    #[test]
    fn a_namespace_is_a_label() {
        for (text, is_one) in
            [("default", true), ("a-1", true), ("", false), ("-a", false), ("A", false), ("a\nb", false)]
        {
            assert_eq!(is_namespace(text), is_one, "{text:?}");
        }
    }
}
