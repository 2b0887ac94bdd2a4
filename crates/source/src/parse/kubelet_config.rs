//! The kubelet's configuration, as far as it places pods.
//!
//! # Source
//! `KubeletConfiguration` (`kubelet.config.k8s.io/v1beta1`), by default `/var/lib/kubelet/config.yaml`, and the
//! checkpoints of its managers beside it. Of YAML only what kubeadm and the distributions write: keys with a plain or
//! quoted value, and one level of options below `topologyManagerPolicyOptions`.

/// Policies of its managers. `None`: not in the file, or not in a form that is read.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct KubeletConfig {
    pub cpu_manager: Option<String>,
    pub memory_manager: Option<String>,
    pub topology_manager: Option<String>,
    /// `max-allowable-numa-nodes` of the topology manager's options.
    pub most_nodes: Option<u32>,
}

/// The block of options.
const OPTIONS: &str = "topologyManagerPolicyOptions";

/// Reads it; other keys are passed over.
pub fn parse(text: &str) -> KubeletConfig {
    let mut config = KubeletConfig::default();
    let mut block = "";
    for line in text.lines() {
        let is_inner = line.starts_with([' ', '\t']);
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (bare(key), bare(value));
        if !is_inner {
            block = key;
        }
        let word = || Some(value.to_owned()).filter(|value| !value.is_empty());
        match key {
            "cpuManagerPolicy" if !is_inner => config.cpu_manager = word(),
            "memoryManagerPolicy" if !is_inner => config.memory_manager = word(),
            "topologyManagerPolicy" if !is_inner => config.topology_manager = word(),
            "max-allowable-numa-nodes" if is_inner && block == OPTIONS => {
                config.most_nodes = value.parse().ok()
            }
            _ => {}
        }
    }
    config
}

/// A key or a value without its comment, blanks and quotes.
fn bare(text: &str) -> &str {
    let text = text.split(" #").next().unwrap_or_default().trim();
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(text)
}

/// The policy in the checkpoint of a manager: `policyName` of a JSON object.
pub fn policy_of_state(text: &str) -> Option<String> {
    let state: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(state.get("policyName")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    const KUBEADM: &str = "apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
cpuManagerPolicy: static  # pinned
cpuManagerPolicyOptions:
  max-allowable-numa-nodes: \"3\"
kind: KubeletConfiguration
memoryManagerPolicy: \"None\"
topologyManagerPolicyOptions:
  max-allowable-numa-nodes: '16'
topologyManagerPolicy: restricted
";

    #[test]
    fn policies_are_read_from_kubeadms_file() {
        let expected = KubeletConfig {
            cpu_manager: Some("static".to_owned()),
            memory_manager: Some("None".to_owned()),
            topology_manager: Some("restricted".to_owned()),
            most_nodes: Some(16),
        };
        assert_eq!(parse(KUBEADM), expected);
        assert_eq!(parse("  cpuManagerPolicy: static\n"), KubeletConfig::default(), "of another object");
        assert_eq!(parse("cpuManagerPolicy:\n\u{1b}: :::\n"), KubeletConfig::default());
    }

    #[test]
    fn a_checkpoint_names_its_policy() {
        let state = r#"{"policyName":"static","defaultCpuSet":"0-7","checksum":1353318690}"#;
        assert_eq!(policy_of_state(state).as_deref(), Some("static"));
        for text in ["", "{}", "[]", r#"{"policyName":7}"#, "{"] {
            assert_eq!(policy_of_state(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in any::<String>()) {
            let _ = (parse(&text), policy_of_state(&text));
        }

        #[test]
        fn print_then_parse_is_identity(cpu in "[a-z-]{1,12}", nodes in any::<u32>()) {
            let text = format!("cpuManagerPolicy: \"{cpu}\"\n{OPTIONS}:\n    max-allowable-numa-nodes: {nodes}\n");
            let read = parse(&text);
            prop_assert_eq!((read.cpu_manager, read.most_nodes), (Some(cpu), Some(nodes)));
        }
    }
}
