//! Functions and source lines of instructions, from the files of programs.
//!
//! Names come from what a compiler has left in the file (its symbols and DWARF), or from a separate file of that under
//! `/usr/lib/debug`, which is found by the file's build ID, where distributions put it.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use addr2line::{Frame, Loader, demangle_auto};
use object::read::ReadCache;
use object::{Object as _, ObjectSegment as _};

/// Where distributions put files of debugging information.
const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";

/// Names of an instruction, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Symbol {
    /// The function in whose text it is.
    pub function: Option<String>,
    /// The function into which that one was inlined.
    pub inlined_into: Option<String>,
    /// The path of the source as the compiler was given it, and the line.
    pub source: Option<(String, u32)>,
}

/// Files of programs, opened once.
#[derive(Default)]
pub struct Symbols(HashMap<PathBuf, Option<ProgramFile>>);

impl Symbols {
    /// The function and the source line of an instruction, by its place in a file; what is not known is missing.
    pub fn find(&mut self, path: &Path, offset: u64) -> Symbol {
        let file = self.0.entry(path.to_owned()).or_insert_with(|| ProgramFile::open(path));
        file.as_ref().map_or_else(Symbol::default, |file| file.find(offset))
    }
}

/// A program or library.
struct ProgramFile {
    own: Loader,
    /// Its debugging information, where that is a file of its own.
    debug: Option<Loader>,
    /// Parts of the file: where they begin, how long they are, and the addresses at which they are linked to be.
    parts: Vec<(u64, u64, u64)>,
}

impl ProgramFile {
    /// `None` for a file that cannot be read, or is none of a program.
    fn open(path: &Path) -> Option<Self> {
        let own = Loader::new(path).ok()?;
        let cache = ReadCache::new(File::open(path).ok()?);
        let file = object::File::parse(&cache).ok()?;
        let part = |segment: object::Segment<'_, '_, _>| {
            let (start, length) = segment.file_range();
            (start, length, segment.address())
        };
        let parts = file.segments().map(part).collect();
        let debug = file.build_id().ok().flatten().and_then(debug_file);
        Some(Self { own, debug: debug.and_then(|path| Loader::new(path).ok()), parts })
    }

    fn find(&self, offset: u64) -> Symbol {
        let holds = |part: &&(u64, u64, u64)| offset.checked_sub(part.0).is_some_and(|at| at < part.1);
        let Some((start, _, linked)) = self.parts.iter().find(holds) else { return Symbol::default() };
        let address = linked.wrapping_add(offset - start);
        let loaders = || [self.debug.as_ref(), Some(&self.own)].into_iter().flatten();
        if let Some(symbol) = loaders().find_map(|loader| by_frames(loader, address)) {
            return symbol;
        }
        let function = loaders().find_map(|loader| loader.find_symbol(address));
        Symbol {
            function: function.map(|name| demangle_auto(name.into(), None).into_owned()),
            ..Symbol::default()
        }
    }
}

/// The file of debugging information of a program with this build ID.
fn debug_file(id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = Path::new(DEBUG_FILES).join(format!("{first:02x}")).join(format!("{rest}.debug"));
    path.is_file().then_some(path)
}

/// The names that DWARF has for an address; `None` where it has neither function nor line.
fn by_frames(loader: &Loader, address: u64) -> Option<Symbol> {
    let mut frames = loader.find_frames(address).ok()?;
    let mut first: Option<Symbol> = None;
    // The innermost function comes first. A damaged file may chain frames without an end.
    for _ in 0..MOST_FRAMES {
        let Ok(Some(frame)) = frames.next() else { break };
        match &mut first {
            None => first = Some(symbol(&frame)),
            Some(symbol) => symbol.inlined_into = function(&frame),
        }
    }
    // The table of symbols has functions of assembly, too; DWARF has only their lines.
    let mut symbol = first?;
    if symbol.function.is_none() {
        symbol.function =
            loader.find_symbol(address).map(|name| demangle_auto(name.into(), None).into_owned());
    }
    (symbol.function.is_some() || symbol.source.is_some()).then_some(symbol)
}

/// Most functions that are inlined into one another.
const MOST_FRAMES: usize = 1000;

fn symbol<R: addr2line::gimli::Reader>(frame: &Frame<'_, R>) -> Symbol {
    let source = frame.location.as_ref().and_then(|place| Some((place.file?.to_owned(), place.line?)));
    Symbol { function: function(frame), inlined_into: None, source }
}

fn function<R: addr2line::gimli::Reader>(frame: &Frame<'_, R>) -> Option<String> {
    let name = frame.function.as_ref()?;
    name.demangle().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn a_function_of_this_program_is_found_by_its_place() {
        let path = std::env::current_exe().unwrap();
        let data = std::fs::read(&path).unwrap();
        let file = object::File::parse(&*data).unwrap();
        // The address at which the function is linked, by the program's own table of symbols.
        let name = "a_function_of_this_program_is_found_by_its_place";
        let symbols = object::Object::symbol_map(&file);
        let found = symbols.symbols().iter().find(|symbol| symbol.name().contains(name));
        let address = found.unwrap().address();
        let segment = file
            .segments()
            .find(|segment| (segment.address()..segment.address() + segment.size()).contains(&address));
        let segment = segment.unwrap();
        let offset = segment.file_range().0 + address - segment.address();
        let symbol = Symbols::default().find(&path, offset);
        assert!(symbol.function.as_deref().is_some_and(|function| function.contains(name)), "{symbol:?}");
    }

    #[test]
    fn what_is_no_program_has_no_names() {
        let mut symbols = Symbols::default();
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        std::fs::write(&text, "no program").unwrap();
        for path in [text.as_path(), folder.path(), Path::new("/no/such/file")] {
            assert_eq!(symbols.find(path, 4096), Symbol::default());
        }
        let own = std::env::current_exe().unwrap();
        assert_eq!(symbols.find(&own, u64::MAX), Symbol::default());
    }

    proptest! {
        #[test]
        fn a_damaged_program_is_survived(places in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..40), length in 0usize..3000, offset in 0u64..4000) {
            // The command that lists files is small, and everywhere.
            let mut data = std::fs::read("/bin/true").unwrap_or_default();
            for (place, byte) in places {
                let count = data.len().min(4096);
                if count > 0 {
                    data[place % count] = byte;
                }
            }
            data.truncate(data.len().saturating_sub(length));
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("damaged");
            std::fs::write(&path, data).unwrap();
            let _ = Symbols::default().find(&path, offset);
        }
    }
}
