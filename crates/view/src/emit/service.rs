//! Services: systemd, and the databases that it starts.

use nodewise_machine::PolicyMode;

use super::{Emitted, Unsaid, Wish};

/// A drop-in with systemd's own words, which need nothing else to be installed.
///
/// # Source
/// systemd.exec(5): `CPUAffinity=`, `NUMAPolicy=` (default, preferred, bind, interleave, local) and
/// `NUMAMask=`, since version 243.
pub(super) fn systemd(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let file = "# systemctl edit NAME.service";
    let Some(policy) = policy_lines(wish).filter(|_| wish.placement.huge.is_none()) else {
        let program = wish.program_or("/full/path/of/the/program");
        let text = format!("{file}\n[Service]\nExecStart=\nExecStart={}\n", wish.through_run(&program)?);
        return Ok(Emitted::new(text)
            .note("systemd has no word for this placement that every release in use understands, so nodewise run applies it")
            .note("ExecStart needs the full path of nodewise and of the program"));
    };
    let cpus = wish.cpus().map(|cpus| format!("CPUAffinity={cpus}\n")).unwrap_or_default();
    Ok(Emitted::new(format!("{file}\n[Service]\n{cpus}{policy}")))
}

/// The lines of the policy, empty for none; `None` where systemd has no word for it.
fn policy_lines(wish: &Wish<'_>) -> Option<String> {
    let Some(policy) = wish.policy() else { return Some(String::new()) };
    let word = match policy.mode {
        PolicyMode::Local => return Some("NUMAPolicy=local\n".to_owned()),
        PolicyMode::Preferred if policy.nodes.is_empty() => return Some("NUMAPolicy=local\n".to_owned()),
        PolicyMode::Preferred => "preferred",
        PolicyMode::Bind => "bind",
        PolicyMode::Interleave => "interleave",
        PolicyMode::Default | PolicyMode::PreferredMany | PolicyMode::WeightedInterleave => return None,
    };
    (policy.flags == nodewise_machine::ModeFlags::NONE)
        .then(|| format!("NUMAPolicy={word}\nNUMAMask={}\n", policy.nodes))
}

/// A database without a word of its own for placement: the drop-in of its service.
pub(super) fn database(name: &str, wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let nameless = Wish { program: &[], ..*wish };
    let emitted = systemd(&nameless)?;
    let (service, notes): (&str, &[&str]) = match name {
        "mongod" => (
            "mongod.service",
            &[
                "mongod warns at its start unless its memory is interleaved and vm.zone_reclaim_mode is 0: sysctl -w vm.zone_reclaim_mode=0",
            ],
        ),
        _ => (
            "postgresql@.service",
            &[
                "the first to write a page of shared_buffers decides its node: without interleaving most of them lie where the server warmed up",
                "outside of Debian and its relatives the service is postgresql.service",
            ],
        ),
    };
    let text = emitted.text.replace("NAME.service", service);
    Ok(Emitted { text, ..emitted }.notes(notes.iter().map(|note| (*note).to_owned())))
}

/// MySQL interleaves its buffer pool by itself, which is better than all of the process: only the pool
/// is shared by all threads.
///
/// # Source
/// MySQL reference manual, `innodb_numa_interleave`; MariaDB has it up to 10.x and ignores it later.
pub(super) fn mysqld(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let all = wish.policy().is_some_and(|policy| {
        policy.mode == PolicyMode::Interleave && policy.nodes == wish.scope.memory_nodes
    });
    if all && wish.cpus().is_none() && wish.placement.huge.is_none() {
        return Ok(Emitted::new("# /etc/mysql/conf.d/numa.cnf\n[mysqld]\ninnodb_numa_interleave=ON\n").note(
            "the buffer pool alone is interleaved; in a container the server needs the capability SYS_NICE for it, else its log fills with \"mbind: Operation not permitted\"",
        ));
    }
    let emitted = systemd(&Wish { program: &[], ..*wish })?;
    let text = emitted.text.replace("NAME.service", "mysql.service");
    Ok(Emitted { text, ..emitted }.note("where the server is MariaDB the service is mariadb.service"))
}
