//! Services: systemd, and the databases that it starts.

use nodewise_machine::PolicyMode;
use nodewise_machine::printable::printable;

use super::threads::Threads;
use super::{Emitted, Unsaid, Wish, joined};

/// A drop-in for any service.
pub(super) fn systemd(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    drop_in("NAME.service", wish)
}

/// A drop-in with systemd's own words, which need nothing else to be installed.
///
/// # Source
/// systemd.exec(5): `CPUAffinity=`, `NUMAPolicy=` (default, preferred, bind, interleave, local) and
/// `NUMAMask=`, since version 243; `Environment=` takes assignments with blanks between.
fn drop_in(service: &str, wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let mut text = format!("# systemctl edit {service}\n[Service]\n");
    let assignments = wish.threads.assignments();
    if !assignments.is_empty() {
        text += &format!("Environment={}\n", assignments.join(" "));
    }
    let Some(policy) = policy_lines(wish).filter(|_| wish.placement.huge.is_none()) else {
        let mut words = wish.run_words()?;
        if let (Some(path), Some(first)) = (&wish.paths.nodewise, words.first_mut()) {
            first.clone_from(path);
        }
        let command = exec_start(words, wish);
        let emitted = Emitted::new(format!("{text}ExecStart=\nExecStart={command}\n"))
            .note("systemd has no word for this placement that every release in use understands, so nodewise run applies it");
        let is_full = wish.paths.nodewise.is_some() && has_full_path(wish);
        let note = "ExecStart needs the full path of nodewise and of the program".to_owned();
        return Ok(emitted.notes((!is_full).then_some(note)));
    };
    if policy.is_empty() && wish.cpus().is_none() && wish.threads == Threads::Untold {
        return Err(Unsaid(
            "there is no placement to set: name one, such as --cpunodebind=0 --membind=0".to_owned(),
        ));
    }
    text += &wish.cpus().map(|cpus| format!("CPUAffinity={cpus}\n")).unwrap_or_default();
    text += &policy;
    if wish.threads.in_words().is_none() || wish.program.is_empty() {
        return Ok(Emitted::new(text));
    }
    // The service's own command does not hold the number.
    text += &format!("ExecStart=\nExecStart={}\n", exec_start(Vec::new(), wish));
    let note = "ExecStart needs the full path of the program".to_owned();
    Ok(Emitted::new(text).notes((!has_full_path(wish)).then_some(note)))
}

/// Whether the program is written with a full path.
fn has_full_path(wish: &Wish<'_>) -> bool {
    wish.paths.program.is_some() || wish.program.first().is_some_and(|name| name.starts_with('/'))
}

/// The program behind some words, as `ExecStart=` takes it: no shell reads it, and systemd takes no path
/// relative to a folder.
fn exec_start(words: Vec<String>, wish: &Wish<'_>) -> String {
    let program = match wish.program {
        [] => vec!["/full/path/of/the/program".to_owned()],
        [name, arguments @ ..] => {
            let name = wish.paths.program.as_ref().unwrap_or(name);
            std::iter::once(name).chain(arguments).cloned().collect()
        }
    };
    joined(words.into_iter().chain(program).map(|word| exec_word(&word)))
}

/// A word of a command line of systemd: in double quotes with the escapes of C where it holds more than
/// ordinary characters, and with `%` and `$`, which would be replaced, doubled.
///
/// # Source
/// systemd.syntax(7), "Quoting"; systemd.service(5), "Command lines"; systemd.unit(5), "Specifiers".
fn exec_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '%' | '$' => quoted.extend([c, c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            // What could drive a terminal is written as its number, which reads back as the character.
            c if *printable(&c.to_string()) != *c.to_string() => {
                quoted.push_str(&format!("\\U{:08x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
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

/// A database without a word of its own for placement: its service gets a drop-in.
pub(super) struct Database {
    service: &'static str,
    notes: &'static [&'static str],
}

/// MongoDB's server.
pub(super) const MONGOD: Database = Database {
    service: "mongod.service",
    notes: &[
        "mongod warns at its start unless its memory is interleaved and vm.zone_reclaim_mode is 0: sysctl -w vm.zone_reclaim_mode=0",
    ],
};

/// PostgreSQL's server, as Debian and its relatives start it.
pub(super) const POSTGRES: Database = Database {
    service: "postgresql@.service",
    notes: &[
        "the first to write a page of shared_buffers decides its node: without interleaving most of them lie where the server warmed up",
        "outside of Debian and its relatives the service is postgresql.service",
    ],
};

/// MySQL's server, where it cannot do it by itself.
const MYSQLD: Database = Database {
    service: "mysql.service",
    notes: &["where the server is MariaDB the service is mariadb.service"],
};

impl Database {
    /// The drop-in of its service; the command that starts it is the service's own.
    pub(super) fn drop_in(&self, wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
        let emitted = drop_in(self.service, &Wish { program: &[], ..*wish })?;
        Ok(emitted.notes(self.notes.iter().map(|note| (*note).to_owned())).notes(threads_note(wish)))
    }
}

/// Notes that the drop-in of a database cannot set threads: the server's own command is not ours to write.
fn threads_note(wish: &Wish<'_>) -> Option<String> {
    match wish.threads {
        Threads::Untold => None,
        Threads::Variables(_) => Some(
            "the server itself looks at none of these variables: only libraries that it loads may".to_owned(),
        ),
        Threads::Words(count) => Some(format!(
            "the command of the study held the number of threads, {count}: set it in the server's own configuration"
        )),
    }
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
    let only_that = wish.cpus().is_none() && wish.placement.huge.is_none();
    if all && only_that && wish.threads == Threads::Untold {
        return Ok(Emitted::new("# /etc/mysql/conf.d/numa.cnf\n[mysqld]\ninnodb_numa_interleave=ON\n").note(
            "the buffer pool alone is interleaved; in a container the server needs the capability SYS_NICE for it, else its log fills with \"mbind: Operation not permitted\"",
        ));
    }
    MYSQLD.drop_in(wish)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};

    /// A command line as systemd.syntax(7) and systemd.service(5) say that it is read: words between
    /// blanks, quotes and escapes undone, then `%%` and `$$`. `None` for what is refused or replaced.
    fn read(line: &str) -> Option<Vec<String>> {
        let (mut words, mut word, mut in_quotes) = (Vec::new(), None, false);
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => {
                    in_quotes = !in_quotes;
                    word.get_or_insert_with(String::new);
                }
                ' ' if !in_quotes => words.extend(word.take()),
                '\\' => word.get_or_insert_with(String::new).push(escape(&mut chars)?),
                '\n' | '\r' => return None,
                // It would begin words of another kind.
                '\'' if !in_quotes => return None,
                c => word.get_or_insert_with(String::new).push(c),
            }
        }
        words.extend(word);
        words.iter().map(|word: &String| single(&single(word, "%")?, "$")).collect()
    }

    /// The text with a sign once for each pair of it; one that is alone would be replaced.
    fn single(text: &str, sign: &str) -> Option<String> {
        let pair = sign.repeat(2);
        (!text.replace(&pair, "").contains(sign)).then(|| text.replace(&pair, sign))
    }

    fn escape(chars: &mut std::str::Chars<'_>) -> Option<char> {
        let digits = match chars.next()? {
            'n' => return Some('\n'),
            't' => return Some('\t'),
            c @ ('"' | '\\') => return Some(c),
            'x' => 2,
            'U' => 8,
            _ => return None,
        };
        let number: String = chars.by_ref().take(digits).collect();
        char::from_u32(u32::from_str_radix(&number, 16).ok()?)
    }

    #[test]
    fn words_are_quoted_as_systemd_reads_them() {
        let check = |word: &str, expected: &str| {
            assert_eq!(exec_word(word), expected);
            assert_eq!(read(expected), Some(vec![word.to_owned()]));
        };
        check("--interleave=0-3,8", "--interleave=0-3,8");
        check("", "\"\"");
        check("a b", "\"a b\"");
        check("it's", "\"it's\"");
        check("100%", "\"100%%\"");
        check("$HOME/%n", "\"$$HOME/%%n\"");
        check("a\\b\"c", "\"a\\\\b\\\"c\"");
        check("one\ntwo\tthree", "\"one\\ntwo\\tthree\"");
        check("\u{1b}[2J", "\"\\x1b[2J\"");
        check("\u{202e}", "\"\\U0000202e\"");
        // A word by itself that would end the command.
        check(";", "\";\"");
    }

    proptest! {
        #[test]
        fn a_command_line_reads_back_and_holds_nothing_raw(words in proptest::collection::vec("([%$\\\\\"' ;{}a-c]|[^\0]){0,12}", 1..6)) {
            let line = joined(words.iter().map(|word| exec_word(word)));
            prop_assert_eq!(read(&line), Some(words), "{}", line);
            prop_assert_eq!(printable(&line), line.as_str());
        }
    }
}
