//! The parts of an answer that vary from run to run.

/// Status, standard output and standard error.
pub type Answer = (i32, String, String);

/// An answer without what varies: numbers of a running machine, and what follows from them.
pub fn masked(cmd: &str, answer: Answer) -> Answer {
    let (rc, out, err) = answer;
    let err = match err.find("Usage: numastat ") {
        Some(at) => format!("{}<NUMASTAT-USAGE>\n", &err[..at]),
        None => err,
    };
    match super::tool_of(cmd) {
        Some("numastat") => (rc, tables(cmd, &out), lines(&err, number)),
        Some("migspeed") => {
            let several = cmd.contains("0-1");
            (rc, lines(&out, |word, before| measured(word, before, several)), err)
        }
        _ => (rc, out, err),
    }
}

fn lines(text: &str, mask: impl Fn(&str, Option<&str>) -> String) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let before = std::iter::once(None).chain(words.iter().copied().map(Some));
        let masked: Vec<String> = words.iter().zip(before).map(|(word, before)| mask(word, before)).collect();
        masked.join(" ") + "\n"
    };
    text.lines().map(line).collect()
}

/// A number, but for that of a node; a line below a head is as long as the numbers are wide.
fn number(word: &str, before: Option<&str>) -> String {
    if word.starts_with("--") {
        "-".to_owned()
    } else if word.parse::<f64>().is_ok() && before != Some("Node") {
        "N".to_owned()
    } else {
        let numa_maps = word.starts_with("/proc/") && word.ends_with("/numa_maps:");
        if numa_maps { "/proc/N/numa_maps:".to_owned() } else { word.to_owned() }
    }
}

/// Tables: which rows and columns hold only zeros, and which rows are larger, depends on the numbers.
fn tables(cmd: &str, out: &str) -> String {
    let options: String = cmd.split(' ').filter(|word| word.starts_with('-')).collect();
    let text = lines(out, number);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if options.contains('z') {
        lines = lines.iter().filter_map(|line| without_columns(line)).collect();
    }
    if options.contains('s') {
        lines.sort_unstable();
    }
    lines.join("\n")
}

/// A masked line without its columns; `None` for a row.
fn without_columns(line: &str) -> Option<String> {
    let is_row = line.contains(" N") && !line.contains(" Node ") && !line.contains("PID");
    let words: Vec<&str> = line.split(' ').collect();
    if is_row && words.last() == Some(&"N") {
        None
    } else if words.iter().all(|word| *word == "-") {
        Some("-".to_owned())
    } else {
        let heads = line.starts_with("Node ") || line.starts_with("PID Node ");
        Some(if heads { words[0].to_owned() } else { line.to_owned() })
    }
}

/// Addresses, ages of pages and times; and on which of several nodes pages are, which depends on the
/// CPU that wrote to them.
fn measured(word: &str, before: Option<&str>, several: bool) -> String {
    match word {
        word if several && word.starts_with('N') && word.contains('=') => "NODE".to_owned(),
        word if word.len() == 12 && u64::from_str_radix(word, 16).is_ok() => "ADDRESS".to_owned(),
        // Without it all pages are active.
        word if word.starts_with("active=") => String::new(),
        word if (before == Some("in") || before == Some("secs.")) && word.parse::<f64>().is_ok() => {
            "N".to_owned()
        }
        word => word.to_owned(),
    }
}
