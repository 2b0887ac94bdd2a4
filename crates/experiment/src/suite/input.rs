//! The data that benchmarks work on. Nothing is fetched: it is generated from a seed, the same bytes on
//! every machine.

use std::io::{self, Write};

use nodewise_machine::Bytes;

use nodewise_stats::random::Random;

/// A file, or a folder of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name in the folder of the inputs: letters, digits, `.`, `_` and `-`.
    pub name: String,
    pub content: Content,
    pub seed: u64,
}

/// The contents of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A file of words and sentences, about as compressible as prose.
    Text { size: Bytes },
    /// A folder with a program in C: this many files and a Makefile that makes `program` of them.
    C {
        /// Files besides the one with `main`.
        files: u32,
    },
}

/// How many different words the texts have.
const WORDS: usize = 4096;

/// Functions in a file of a C program.
const FUNCTIONS: u32 = 40;

impl Input {
    /// How commands name it.
    pub fn place(&self) -> String {
        format!("{{inputs}}/{}", self.name)
    }

    /// Writes it to a place.
    ///
    /// # Errors
    /// What the place says.
    pub fn generate(&self, place: &mut dyn InputStore) -> io::Result<()> {
        match self.content {
            Content::Text { size } => {
                place.file(&self.name, &mut |out| text(out, size.get(), &mut Random::new(self.seed)))
            }
            Content::C { files } => {
                place.folder(&self.name)?;
                for (name, content) in program(files, self.seed) {
                    let path = format!("{}/{name}", self.name);
                    place.file(&path, &mut |out| out.write_all(content.as_bytes()))?;
                }
                Ok(())
            }
        }
    }
}

/// Where inputs are written: this crate writes no files.
pub trait InputStore {
    /// Makes a folder. Paths have `/` between folders and begin in the folder of the inputs.
    ///
    /// # Errors
    /// What the system says.
    fn folder(&mut self, path: &str) -> io::Result<()>;

    /// Makes a file and lets `fill` write what is in it.
    ///
    /// # Errors
    /// What the system says, as on a full disk.
    fn file(&mut self, path: &str, fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()>;
}

/// Writes sentences until this many bytes are there.
fn text(out: &mut dyn Write, size: u64, random: &mut Random) -> io::Result<()> {
    let words = vocabulary(random);
    let mut line = String::new();
    let mut left = size;
    while left > 0 {
        line.clear();
        for at in 0..6 + random.index(12) {
            // Few words are frequent and most are rare, as in any language (Zipf).
            let word = &words[(random.unit().powi(3) * WORDS as f64) as usize];
            if at > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
        line.push_str(if random.below(4) == 0 { ".\n" } else { ", " });
        let fits = line.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        out.write_all(&line.as_bytes()[..fits])?;
        left -= fits as u64;
    }
    Ok(())
}

/// Words of one to four syllables.
fn vocabulary(random: &mut Random) -> Vec<String> {
    const ONSETS: [&str; 16] =
        ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", ""];
    const RHYMES: [&str; 12] = ["a", "e", "i", "o", "u", "an", "er", "in", "on", "ar", "el", "is"];
    let word = |random: &mut Random| {
        (0..1 + random.index(4)).fold(String::new(), |word, _| {
            word + ONSETS[random.index(ONSETS.len())] + RHYMES[random.index(RHYMES.len())]
        })
    };
    (0..WORDS).map(|_| word(random)).collect()
}

/// The files of a C program with their names, its Makefile last.
fn program(files: u32, seed: u64) -> impl Iterator<Item = (String, String)> {
    let names = move || (0..files).map(|file| format!("part{file}"));
    let parts = move |file| (format!("part{file}.c"), part(file, &mut Random::stream(seed, file.into())));
    let declared = names().fold(String::new(), |text, name| text + &format!("double {name}(double x);\n"));
    let summed = names().fold(String::new(), |text, name| text + &format!("    x += {name}(x);\n"));
    let main = format!(
        "#include <stdio.h>\n{declared}int main(void) {{\n    double x = 1;\n{summed}    \
         printf(\"%g\\n\", x);\n    return 0;\n}}\n"
    );
    let objects = names().fold("main.o".to_owned(), |text, name| text + &format!(" {name}.o"));
    // The sources may lie in another folder: `make -f SOURCES/Makefile SOURCES=...`.
    let makefile = format!(
        "SOURCES ?= .\nCC ?= cc\nCFLAGS ?= -O2\nOBJECTS = {objects}\n\nprogram: $(OBJECTS)\n\t$(CC) -o $@ \
         $(OBJECTS) -lm\n\n%.o: $(SOURCES)/%.c\n\t$(CC) $(CFLAGS) -c -o $@ $<\n\nclean:\n\trm -f program \
         $(OBJECTS)\n"
    );
    (0..files).map(parts).chain([("main.c".to_owned(), main), ("Makefile".to_owned(), makefile)])
}

/// A file of functions that call each other in order, with loops, branches, tables and structures.
fn part(file: u32, random: &mut Random) -> String {
    let mut text = String::from(
        "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n\nstruct item {\n    double weight;\n    \
         uint32_t key;\n    struct item *next;\n};\n\n",
    );
    for function in 0..FUNCTIONS {
        let size = 4 + random.index(13);
        let table: Vec<String> = (0..size).map(|_| random.below(1000).to_string()).collect();
        let [a, b, c] = [(); 3].map(|()| 1 + random.below(97));
        let inner = match random.below(3) {
            0 => format!(
                "        switch ((table[i] + items[i].key) % 5) {{\n        case 0: x += table[i] * {a}; break;\n        \
                 case 1: x -= sqrt(fabs(x) + {b}); break;\n        case 2: items[i].weight *= 1.5; break;\n        \
                 default: x = x / {c} + items[i].weight;\n        }}\n"
            ),
            1 => format!(
                "        for (size_t j = i; j < {size}; j++)\n            if (items[j].key > {a})\n                \
                 x += items[i].weight * table[j];\n            else\n                items[j].weight -= x / {b};\n"
            ),
            _ => format!(
                "        uint32_t h = items[i].key * 2654435761u;\n        h ^= h >> {};\n        \
                 items[h % {size}].next = &items[i];\n        x += (double)h / {c};\n",
                1 + a % 20
            ),
        };
        let before = match function.checked_sub(1) {
            Some(before) => format!("step{file}_{before}(x * 0.5)"),
            None => "x".to_owned(),
        };
        text.push_str(&format!(
            "static double step{file}_{function}(double x) {{\n    static const uint32_t table[{size}] = {{{}}};\n    \
             struct item items[{size}] = {{{{0}}}};\n    x = {before};\n    for (size_t i = 0; i < {size}; i++) {{\n        \
             items[i].key = table[i] ^ (uint32_t)x;\n{inner}    }}\n    for (struct item *at = &items[0]; at && x < 1e6; at = \
             at->next == at ? NULL : at->next)\n        x += at->weight + 1;\n    return x > 1e9 ? 1 : x;\n}}\n\n",
            table.join(", ")
        ));
    }
    let last = FUNCTIONS - 1;
    text + &format!("double part{file}(double x) {{ return step{file}_{last}(x); }}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Files in memory.
    #[derive(Default)]
    struct Memory {
        folders: Vec<String>,
        files: BTreeMap<String, Vec<u8>>,
    }

    impl InputStore for Memory {
        fn folder(&mut self, path: &str) -> io::Result<()> {
            self.folders.push(path.to_owned());
            Ok(())
        }

        fn file(
            &mut self,
            path: &str,
            fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
        ) -> io::Result<()> {
            fill(self.files.entry(path.to_owned()).or_default())
        }
    }

    fn written(content: Content, seed: u64) -> Memory {
        let mut memory = Memory::default();
        Input { name: "it".to_owned(), content, seed }.generate(&mut memory).unwrap();
        memory
    }

    #[test]
    fn a_text_has_its_size_and_depends_on_its_seed_alone() {
        let read = |size, seed| {
            let memory = written(Content::Text { size: Bytes::new(size) }, seed);
            memory.files.into_values().next().unwrap()
        };
        assert_eq!(read(0, 1), b"");
        assert_eq!(read(100_001, 1).len(), 100_001);
        assert_eq!(read(5000, 1), read(9000, 1)[..5000]);
        assert_ne!(read(5000, 1), read(5000, 2));
        assert!(read(5000, 1).iter().all(|byte| byte.is_ascii_graphic() || b" \n".contains(byte)));
    }

    #[test]
    fn a_program_is_files_that_its_makefile_names() {
        let memory = written(Content::C { files: 2 }, 3);
        assert_eq!(memory.folders, ["it"]);
        let read = |name: &str| String::from_utf8(memory.files[&format!("it/{name}")].clone()).unwrap();
        assert!(read("Makefile").contains("OBJECTS = main.o part0.o part1.o\n"));
        assert_eq!(read("part1.c").matches("static double step1_").count(), FUNCTIONS as usize);
        assert_ne!(read("part0.c").replace("0_", "1_"), read("part1.c"), "every file is drawn for itself");
        assert_eq!(memory.files.len(), 4);
    }
}
