//! Words of schedulers, put before Slurm.

use crate::nodewise::{output, run, without_variables};
use crate::sandbox::has;

use super::{FULL, file, machines};

#[test]
fn slurm_reads_the_line_of_a_node() {
    if !has("srun", "slurm-client") {
        return;
    }
    let check = |lines: &str| {
        let conf = format!(
            "ClusterName=c\nSlurmctldHost=localhost\nAuthType=auth/none\nCredType=cred/none\nGresTypes=gpu\n{lines}\nPartitionName=p Nodes=ALL Default=YES\n"
        );
        let (_folder, path) = file(&conf, "slurm.conf");
        output(without_variables("srun").env("SLURM_CONF", &path).arg("--usage"))
    };
    for machine in machines() {
        let text = run(&["export", "slurm", "--machine", &machine, "--host", "web7"]).ok();
        let line = text.lines().find(|line| line.starts_with("NodeName=")).unwrap();
        let checked = check(line);
        assert_eq!((checked.code, checked.stderr.as_str()), (Some(0), ""), "{machine}: {line}");
    }
    assert_ne!(check("NodeName=a Cores=2 Nonsense=3").stderr, "", "a check that finds nothing is none");
}

#[test]
fn a_machine_from_elsewhere_needs_a_name() {
    let ran = run(&["export", "slurm", "--machine", FULL]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--host NAME"), "{}", ran.stderr);
    let ran = run(&["export", "kubernetes", "--machine", FULL, "--host", "a b"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("is not a host name"), "{}", ran.stderr);
}
