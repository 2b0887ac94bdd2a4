//! `--cool-down`, on machines that know how hot they are and on those that do not.

use super::tune;

#[test]
fn a_machine_without_sensors_is_told_of_and_any_waits_no_longer_than_it_may() {
    let study = tune(&["--runs=1", "--cool-down=1ms", "--json"], "true");
    assert_eq!(study.stderr, "");
    let study = study.ok_json();
    let (cool_down, runs) = (&study["cool_down"], study["samples"].as_array().unwrap().len());
    assert_eq!(cool_down["most_s"], 0.001);
    assert!(cool_down["waited_s"].as_f64().unwrap() <= 0.001001 * runs as f64, "{cool_down}");
    let ran = tune(&["--runs=1", "--cool-down=1ms"], "true");
    let told = ran.stderr.contains("no temperature of the CPUs is known here: --cool-down waits for nothing");
    assert_eq!(told, cool_down["began_celsius"].is_null(), "{}", ran.stderr);
    assert!(tune(&["--runs=1", "--json"], "true").ok_json()["cool_down"].is_null());
}

#[test]
fn a_time_to_cool_down_that_is_none_is_refused() {
    for time in ["x", "0", "-1s"] {
        let ran = tune(&[&*format!("--cool-down={time}")], "true");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        let expected = format!("--cool-down: \"{time}\" is not a time: expected seconds");
        assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
    }
}
