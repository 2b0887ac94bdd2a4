//! `libnuma-clients`: real programs on our library, on this machine and in guests with four nodes.
//!
//! Each is run with Debian's library and with ours, and what it prints is compared, numbers that
//! vary blanked. Every client has a guest of its own: what earlier ones leave in its small nodes, the
//! pages of their files above all, would decide where the pages of the next one are. That a program has our library is seen in the loader's own report.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use nodewise_lab::tools::find_program;
use nodewise_lab::{KernelChoice, Lab, Layout, Limits};
use nodewise_machine::spec;
use rustix::process::geteuid;

use super::{Destination, build, own};
use crate::program;

/// A program that uses libnuma.
struct Client {
    name: &'static str,
    /// The program or file that must be there.
    needs: &'static str,
    /// A shell's command line. `$NODES` is the highest node's number, `$LAST` the list of the last
    /// two nodes (the same one twice on a machine with one).
    line: &'static str,
}

/// Packages of Debian that the clients come in.
const PACKAGES: [&str; 11] = [
    "numactl",
    "openjdk-17-jdk-headless",
    "qemu-system-x86",
    "fio",
    "mariadb-server-core",
    "linux-perf",
    "x265",
    "libmemkind0",
    "librte-eal23",
    "rt-tests",
    "procenv",
];

const CLIENTS: &[Client] = &[
    Client { name: "numactl", needs: "numactl", line: "numactl -m $NODES numactl --show" },
    Client { name: "memhog", needs: "memhog", line: "memhog 20m membind $NODES" },
    Client {
        name: "OpenJDK",
        needs: "java",
        line: "numactl -m $LAST java -Xmx256m -XX:+UseG1GC -XX:+UseNUMA -Xlog:gc+init,os*=info -version 2>&1 | grep -i numa",
    },
    Client {
        name: "OpenJDK, parallel collector",
        needs: "java",
        line: "java -Xmx256m -XX:+UseParallelGC -XX:+UseNUMA -XX:+PrintFlagsFinal -version 2>&1 | grep -E 'UseNUMA '",
    },
    Client {
        name: "qemu memory backends",
        needs: "qemu-system-x86_64",
        line: "(echo info memdev; echo quit) | qemu-system-x86_64 -accel tcg -machine none -display none -nodefaults \
               -object memory-backend-ram,id=m0,size=16M,host-nodes=$NODES,policy=bind,prealloc=on \
               -object memory-backend-ram,id=m1,size=8M,host-nodes=$NODES,policy=preferred,prealloc=on \
               -object memory-backend-ram,id=m2,size=8M,host-nodes=0-$NODES,policy=interleave,prealloc=on \
               -monitor stdio | grep -aE 'size|policy|host nodes'",
    },
    Client {
        name: "fio, bind",
        needs: "fio",
        line: "fio --name=t --ioengine=null --size=1M --numa_cpu_nodes=$NODES --numa_mem_policy=bind:$LAST \
               --exec_prerun='numactl -s' --output=/dev/null; cat t.prerun.txt",
    },
    Client {
        name: "fio, prefer",
        needs: "fio",
        line: "fio --name=u --ioengine=null --size=1M --numa_mem_policy=prefer:$NODES --exec_prerun='numactl -s' \
               --output=/dev/null; cat u.prerun.txt",
    },
    Client {
        name: "mariadbd",
        needs: "mariadbd",
        line: "rm -rf db; mkdir -p db/mysql; echo 'select 1' | strace -f -e trace=set_mempolicy,mbind mariadbd \
               --no-defaults --user=root --datadir=$PWD/db --bootstrap --innodb-numa-interleave=1 \
               --innodb-buffer-pool-size=32M 2>&1 | grep -aE 'mempolicy|mbind|NUMA' | \
               sed -E 's/.*(get_mem|set_mem|mbind|InnoDB)/\\1/; s/0x7[0-9a-f]*/ADDRESS/' | cut -c1-60 | \
               grep -E 'InnoDB|set_mempolicy.MPOL_INTERLEAVE|mbind.ADDRESS' | sort | uniq -c",
    },
    Client {
        name: "perf bench numa",
        needs: "perf",
        line: "perf bench numa mem -p 1 -t 2 -P 8 -s 1 -zZ0cm -q 2>&1 | grep -c GB/sec",
    },
    Client {
        name: "x265",
        needs: "x265",
        line: "head -c 100000 /dev/zero | x265 --input - --input-res 64x64 --fps 25 -f 3 -o /dev/null 2>&1 | \
               grep -iE 'pool'",
    },
    Client {
        name: "memkind",
        needs: "/usr/lib/x86_64-linux-gnu/libmemkind.so.0",
        line: "python3 -c \"
import ctypes
l = ctypes.CDLL('libmemkind.so.0')
l.memkind_malloc.restype = ctypes.c_void_p
l.memkind_malloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
for kind in ('DEFAULT', 'REGULAR', 'HIGHEST_CAPACITY', 'INTERLEAVE'):
    print(kind, bool(l.memkind_malloc(ctypes.c_void_p.in_dll(l, 'MEMKIND_' + kind), 1 << 20)))\"",
    },
    Client {
        name: "DPDK EAL",
        needs: "/usr/lib/x86_64-linux-gnu/librte_eal.so.23",
        line: "python3 -c \"
import ctypes
l = ctypes.CDLL('librte_eal.so.23', mode=ctypes.RTLD_GLOBAL)
a = [b'x', b'--no-huge', b'--no-pci', b'-m', b'16', b'-l', b'0-1', b'--no-telemetry', b'--no-shconf']
print('rte_eal_init', l.rte_eal_init(len(a), (ctypes.c_char_p * len(a))(*a)), 'sockets', l.rte_socket_count(), flush=True)\" \
               2>&1 | grep -aE 'NUMA|rte_eal'",
    },
    Client {
        name: "cyclictest",
        needs: "cyclictest",
        line: "cyclictest -a -t 2 -l 20 -q | sed -E 's/ *[0-9]+/ N/g'",
    },
    Client {
        name: "procenv",
        needs: "procenv",
        line: "numactl -i $LAST procenv --memory",
    },
    Client {
        name: "py-libnuma",
        needs: "python/numa/__init__.py",
        line: "PYTHONPATH=$HERE/python python3 -c \"
import ctypes.util
ctypes.util.find_library = lambda name: 'libnuma.so.1'
from numa import info, memory, schedule
n = info.get_max_node()
print(info.numa_available(), n, [info.node_to_cpus(i) for i in range(n + 1)], info.numa_distance(0, n), info.cpu_to_node(0))
memory.set_membind_nodes(n)
print(memory.get_membind_nodes())
schedule.run_on_nodes(n)
print(schedule.get_affinitive_cpus(0))\"",
    },
];

/// Installs what is missing, runs clients on this machine and in a guest each, and prints a table.
pub fn run(root: &Path, names: &[String]) -> Result<()> {
    let is_meant = |client: &&Client| {
        names.is_empty() || names.iter().any(|name| client.name.starts_with(name.as_str()))
    };
    let clients: Vec<&Client> = CLIENTS.iter().filter(is_meant).collect();
    if clients.is_empty() {
        let known: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        bail!("no client is called {}: expected one of {}", names.join(", "), known.join(", "));
    }
    let platform = own()?;
    let here = std::path::absolute(build::target_folder(root).join("libnuma"))?;
    super::run(root, Some(platform), Destination::in_folder(here.join(platform.compiler())))?;
    install(&here)?;
    let lib = here.join(platform.compiler()).join("lib");
    let lab = Lab::find(&KernelChoice::default())?;
    let mut rows = Vec::new();
    for client in &clients {
        let script = here.join("client.sh");
        fs::write(&script, text(&here, &lib, client))?;
        let texts = [program::read(Command::new("sh").arg(&script))?, in_guest(&lab, &script)?];
        println!("on this machine {}\nin a guest {}", texts[0], texts[1]);
        rows.push((client.name, texts.map(|text| verdict(&text, client.name))));
    }
    println!("| client | this machine | four nodes |\n|---|---|---|");
    for (name, [own, guest]) in &rows {
        println!("| {name} | {own} | {guest} |");
    }
    let wrong = rows.iter().flat_map(|(_, verdicts)| verdicts).filter(|verdict| !is_good(verdict)).count();
    if wrong > 0 {
        bail!("{wrong} of the runs differ");
    }
    Ok(())
}

fn is_good(verdict: &str) -> bool {
    verdict.starts_with("same") || verdict.starts_with("not installed")
}

/// The word for a client in the output of the script.
fn verdict(text: &str, client: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("== {client}: ")));
    line.unwrap_or("not run").to_owned()
}

/// Packages by apt when root; the module of Python into a folder of our own.
fn install(here: &Path) -> Result<()> {
    let missing: Vec<&str> =
        CLIENTS.iter().map(|client| client.needs).filter(|needs| !there(here, needs)).collect();
    if geteuid().is_root() && missing.iter().any(|needs| !needs.starts_with("python")) {
        if let Err(error) = program::install_packages(&PACKAGES) {
            println!("going on with what is there: {error:#}");
        }
    }
    if !there(here, "python/numa/__init__.py") {
        let mut command = Command::new("python3");
        command.args(["-m", "pip", "install", "-q", "--no-deps", "--target"]).arg(here.join("python"));
        if let Err(error) = program::quiet(command.arg("py-libnuma==1.2")) {
            println!("going on without py-libnuma: {error:#}");
        }
    }
    Ok(())
}

fn there(here: &Path, needs: &str) -> bool {
    if needs.contains('/') { here.join(needs).exists() } else { find_program(needs).is_some() }
}

/// The script: a line with the verdict, and where the two differ what they printed.
fn text(here: &Path, lib: &Path, client: &Client) -> String {
    let mut text =
        format!("HERE='{}'\nLIB='{}'\n{}", here.display(), lib.display(), include_str!("clients.sh"));
    let Client { name, needs, line } = client;
    if there(here, needs) {
        let _ = writeln!(text, "try '{name}' <<'LINE'\n{line}\nLINE");
    } else {
        let _ = writeln!(text, "echo '== {name}: not installed'");
    }
    text
}

fn in_guest(lab: &Lab, script: &Path) -> Result<String> {
    let machine = spec::machine("2x(2x(1c 1G)); dist=11,20")?;
    let mut guest = lab.guest(Layout::new(&machine, &Limits::default())?);
    guest.timeout = Duration::from_secs(3600);
    let words: [PathBuf; 2] = ["/bin/sh".into(), script.to_owned()];
    let output = guest.run(&words.map(PathBuf::into_os_string))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
