//! Slurm's configuration, as far as it binds tasks.
//!
//! # Source
//! slurm.conf(5): `Key=Value`, keys in any case, comments behind `#`. Included files are not followed.

/// Plugins that place tasks: the words of `TaskPlugin`; `None` where the file does not set it.
pub fn task_plugins(text: &str) -> Option<Vec<String>> {
    let value = text.lines().rev().find_map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        let (key, value) = line.split_once('=')?;
        key.trim().eq_ignore_ascii_case("TaskPlugin").then(|| value.trim().to_ascii_lowercase())
    })?;
    Some(value.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    #[test]
    fn plugins_of_tasks_are_read_in_any_case() {
        let check = |text: &str, expected: Option<&[&str]>| {
            let found = task_plugins(text);
            assert_eq!(
                found.as_deref().map(|words| words.iter().map(String::as_str).collect()),
                expected.map(<[_]>::to_vec),
                "{text}"
            );
        };
        check("ClusterName=x\nTaskPlugin=task/cgroup # all\n", Some(&["task/cgroup"]));
        check("taskplugin = Task/Affinity, task/cgroup\n", Some(&["task/affinity", "task/cgroup"]));
        check("#TaskPlugin=task/affinity\nTaskPluginParam=verbose\n", None);
        check("TaskPlugin=\n", Some(&[]));
        check("", None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in any::<String>()) {
            let _ = task_plugins(&text);
        }

        #[test]
        fn print_then_parse_is_identity(words in prop::collection::vec("[a-z/]{1,12}", 1..4)) {
            prop_assert_eq!(task_plugins(&format!("TaskPlugin={}\n", words.join(","))), Some(words));
        }
    }
}
