//! The roles of this program in a guest: the tools, and those of the recorder's programs that their
//! commands use.

use std::ffi::{OsString, c_long};
use std::io::{BufWriter, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use nodewise_compat::{Call, Tool};
use nodewise_machine::{Bytes, MemPolicy, NodeSet, PolicyMode};
use nodewise_source::tree::Tree;
use nodewise_syscall::{Errno, NodeBuffer, PageKind};

use crate::{filter, guest};

/// Runs the role that the program was called by; `None` when it is the test itself.
pub fn role() -> Option<i32> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let name = Path::new(words.first()?).file_name()?.to_owned();
    match name.to_str()? {
        "uidrun" => {
            let user = words.get(1)?.to_str()?.parse().expect("the number of a user");
            let error = Command::new(words.get(2)?).args(&words[3..]).gid(user).uid(user).exec();
            panic!("uidrun: {error}");
        }
        "seccomp-run" => {
            let errno = words.get(1)?.to_str()?.parse().expect("the number of an error");
            let calls: Vec<c_long> = filter::NUMA_CALLS.to_vec();
            filter::block(&calls, Errno::new(errno)).expect("a guest takes filters");
            let error = Command::new(words.get(4)?).args(&words[5..]).exec();
            panic!("seccomp-run: {error}");
        }
        "holder" => hold(),
        _ if words.get(1).is_some_and(|word| word == "--guest") => {
            guest::inside(&words[2..]);
            Some(0)
        }
        _ => {
            Tool::named(&name)?;
            let tree = Tree::live();
            let call = Call::from_words(words.into_iter(), &tree)?;
            let mut out = BufWriter::new(std::io::stdout().lock());
            let status = nodewise_compat::run(&call, &mut out, &mut std::io::stderr());
            drop(out);
            Some(status.into())
        }
    }
}

/// Holds memory on node 0, and on node 1 where there is one, until it is killed.
fn hold() -> ! {
    let buffer = |node: u32, mib: u64| {
        let policy = MemPolicy::new(PolicyMode::Bind, NodeSet::from([node]));
        NodeBuffer::new(Bytes::from_mib(mib), PageKind::Small, Some(&policy)).expect("a guest has memory")
    };
    let second = Tree::live().exists("/sys/devices/system/node/node1").then(|| buffer(1, 2));
    let buffers = (buffer(0, 1), second);
    println!("ready");
    std::io::stdout().flush().expect("somebody reads");
    loop {
        std::thread::park();
        std::hint::black_box(&buffers);
    }
}
