//! Queues of network devices in `stat`.

use nodewise_diagnose::change::Delta;
use nodewise_diagnose::sample::QueueSample;
use nodewise_view::digest::running::{Choice, Running};
use nodewise_view::{Style, json, text};
use serde_json::Value;

use crate::golden::check as golden;
use crate::running::sample;

/// The machine with four nodes, whose network device is on node 3 and has these queues.
fn steered(queues: &[(&str, Option<&str>, Option<u64>)]) -> Running {
    let (before, mut now) = (sample(4, 200), sample(4, 202));
    let queue = |(name, cpus, flows): &(&str, Option<&str>, Option<u64>)| QueueSample {
        name: (*name).to_owned(),
        cpus: cpus.map(|cpus| cpus.parse().expect("CPUs")),
        flows: *flows,
    };
    now.interrupts[0].queues = queues.iter().map(queue).collect();
    let delta = Delta::between(&before, &now).expect("the clock went on");
    Running::new(&now, &delta, Choice::default())
}

#[test]
fn queues_are_listed_where_one_of_them_steers_packets() {
    // Node 0 takes most interrupts, node 3 the others.
    let remote = [("rx-1", Some("4-5"), Some(0)), ("rx-2", Some("8"), None), ("rx-3", Some("9"), None)];
    let mut queues = vec![("rx-0", Some("0,12-15"), Some(4096))];
    queues.extend(remote);
    queues.extend([("rx-4", Some("10-11"), None), ("rx-5\x1b", Some("8"), None), ("tx-0", Some(""), None)]);
    queues.push(("tx-1", None, None));
    let running = steered(&queues);
    golden("stat-queues-80", text::stat(&running, &Style::plain(80)));
    let document: Value = serde_json::from_str(&json::stat(&running)).unwrap();
    let shown = document["devices"][0]["queues"].as_array().unwrap();
    assert_eq!(shown.len(), 8);
    let queue = |name: &str, rest: Value| {
        let mut queue = rest;
        queue["queue"] = name.into();
        queue
    };
    let expected =
        queue("rx-0", serde_json::json!({ "cpus": "0,12-15", "flows": 4096, "other_nodes_only": false }));
    assert_eq!(shown[0], expected);
    let expected = queue("rx-1", serde_json::json!({ "cpus": "4-5", "flows": 0, "other_nodes_only": true }));
    assert_eq!(shown[1], expected);
    assert_eq!(shown[6], queue("tx-0", serde_json::json!({ "cpus": "", "other_nodes_only": false })));
    assert_eq!(shown[7], queue("tx-1", serde_json::json!({})), "unknown is not none");
    for none in [&[][..], &[("rx-0", Some(""), Some(0)), ("tx-0", None, None)]] {
        let text = text::stat(&steered(none), &Style::plain(80));
        assert!(text.contains("net:eth0") && !text.contains("queues"), "{text}");
    }
}
