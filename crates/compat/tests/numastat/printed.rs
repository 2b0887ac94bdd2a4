//! The output of numastat, read back into numbers.

/// A table: its title, the heads of its columns, and its rows by name. Sections of a folded table
/// are one.
#[derive(Clone, Debug, Default)]
pub struct Printed {
    pub title: String,
    pub heads: Vec<Head>,
    pub rows: Vec<(String, Vec<String>)>,
}

/// The subject of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    Node(u32),
    Total,
}

impl Printed {
    /// The texts of a row by node.
    pub fn nodes<'p>(&'p self, row: &'p [String]) -> impl Iterator<Item = (u32, &'p str)> {
        self.heads.iter().zip(row).filter_map(|(head, text)| match head {
            Head::Node(node) => Some((*node, text.as_str())),
            Head::Total => None,
        })
    }

    /// The text of a row's total.
    pub fn total<'p>(&self, row: &'p [String]) -> Option<&'p str> {
        let at = self.heads.iter().position(|head| *head == Head::Total)?;
        row.get(at).map(String::as_str)
    }
}

fn heads(line: &str) -> Option<Vec<Head>> {
    let line = line.strip_prefix("PID").unwrap_or(line);
    let mut words = line.split_whitespace();
    let mut heads = Vec::new();
    while let Some(word) = words.next() {
        heads.push(match word {
            "Total" => Head::Total,
            "Node" => Head::Node(words.next()?.parse().ok()?),
            word => Head::Node(word.strip_prefix("node")?.parse().ok()?),
        });
    }
    (!heads.is_empty()).then_some(heads)
}

/// Reads every table of an output.
pub fn tables(text: &str) -> Vec<Printed> {
    let mut tables: Vec<Printed> = Vec::new();
    let mut count = 0;
    for line in text.lines() {
        if line.starts_with("Per-node ") {
            tables.push(Printed { title: line.to_owned(), ..Printed::default() });
        } else if let Some(heads) = heads(line) {
            count = heads.len();
            match tables.last_mut() {
                Some(table) => table.heads.extend(heads),
                None => tables.push(Printed { heads, ..Printed::default() }),
            }
        } else if let Some(table) = tables.last_mut().filter(|_| !line.contains("---")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some(from) = words.len().checked_sub(count).filter(|from| *from > 0) else { continue };
            let name = words[..from].join(" ");
            if name.starts_with("Token ") {
                continue;
            }
            let cells = words[from..].iter().map(ToString::to_string);
            match table.rows.iter_mut().find(|(known, _)| *known == name) {
                Some((_, row)) => row.extend(cells),
                None => table.rows.push((name, cells.collect())),
            }
        }
    }
    tables
}
