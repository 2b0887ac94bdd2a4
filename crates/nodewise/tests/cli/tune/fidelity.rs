//! Programs that do not run as they are asked to, and those too short to judge.

use serde_json::Value;

use crate::nodewise::{KNOW_NODEWISE, a_memory_node, run};

fn study(script: &str) -> Value {
    let placement = format!("--placement=membind={}", a_memory_node());
    let words =
        ["tune", &placement, "--runs=1", "--seed=1", "--repeats=0", "--json", "--", "sh", "-c", script];
    run(&words).ok_json()
}

// The program lives for several looks; that each of the runs is looked at in time is not needed.
#[test]
fn a_launcher_that_undoes_the_policy_is_found_out_and_its_arm_has_no_verdict() {
    let study = study(&format!("{KNOW_NODEWISE}; exec /proc/$nodewise/exe run --localalloc -- sleep 0.7"));
    let arm = &study["arms"][1];
    if arm["fidelity"].is_null() {
        return eprintln!("not tried: this kernel does not show the policy in force");
    }
    assert_eq!((&arm["fidelity"]["held"], &arm["verdict"]), (&false.into(), &"not_as_asked".into()), "{arm}");
    assert_eq!((&arm["fidelity"]["other_policy"], &arm["effect"]), (&"local".into(), &Value::Null));
    assert!(arm["reason"].as_str().unwrap().contains("of its memory was under bind:"), "{arm}");
    assert_eq!(study["advice"]["kind"], "nothing_to_compare");
}

#[test]
fn a_program_that_keeps_its_placement_holds_and_one_that_was_not_seen_says_nothing() {
    let kept = study("exec sleep 0.3");
    let fidelity = &kept["arms"][1]["fidelity"];
    assert!(fidelity.is_null() || fidelity["held"] == true, "{fidelity}");
    assert_eq!(kept["arms"][0]["fidelity"], Value::Null, "nothing is asked of the default");
    for sample in study("true")["samples"].as_array().unwrap() {
        let share = &sample["fidelity"]["policy_share"];
        assert!(share.is_null() || share == 1.0, "{sample}");
    }
}
