//! Where in programs the instructions are that access memory: by the file of the program, and the place in it.
//!
//! The address of an instruction is a process's own: the same page of a library is at other addresses in others, and QEMU translates it
//! once for all of them. The place in the file is the same for all.

use crate::KERNEL;
use crate::pages::{Zeroed, zeroed};

/// Most instructions and files that are distinguished; few in tests, which fill them. The first of each stands for those that
/// are not known.
pub const MOST_INSTRUCTIONS: usize = if cfg!(test) { 64 } else { 1 << 19 };
const MOST_IMAGES: usize = if cfg!(test) { 8 } else { 4096 };
/// Places of the index: twice as many as instructions.
const PLACES: usize = 2 * MOST_INSTRUCTIONS;
/// Bytes of the path of a file that are kept.
pub const PATH: usize = 512;
/// Bytes of a name that distinguish files of one folder.
pub const START: usize = 32;

/// Marks by which the kernel knows a file, while it is in use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ImageKey {
    /// The kernel's addresses of the entry of the file in its folder, and of that of the folder; zero for code without a file.
    pub entry: u64,
    pub folder: u64,
    /// The start of its name: the kernel uses addresses again.
    pub name: [u8; START],
}

impl ImageKey {
    /// The kernel's code, whose places are addresses.
    pub const KERNEL: Self = Self { entry: 0, folder: 1, name: [0; START] };

    /// Code without a file, such as that of a compiler at run time.
    pub const NO_FILE: Self = Self { entry: 0, folder: 0, name: [0; START] };
}

/// The place of [`KERNEL`] among paths.
pub const KERNEL_PATH: [u8; PATH] = {
    let mut path = [0; PATH];
    let (mut at, name) = (0, KERNEL.as_bytes());
    while at < name.len() {
        path[at] = name[at];
        at += 1;
    }
    path
};

/// A file with code.
#[derive(Clone, Copy)]
pub struct Image {
    key: ImageKey,
    /// Its path; the rest is zero. Empty for code without a file.
    pub path: [u8; PATH],
}

// SAFETY: all members are integers, or arrays of them.
unsafe impl Zeroed for Image {}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionPlace {
    /// The number of its file.
    pub image: u64,
    /// Bytes from the start of the file; for the kernel, the address.
    pub offset: u64,
}

// SAFETY: all members are integers.
unsafe impl Zeroed for InstructionPlace {}
// SAFETY: any bytes are an integer.
unsafe impl Zeroed for u32 {}

/// All instructions that were translated.
pub struct Code {
    images: Option<&'static mut [Image]>,
    named: usize,
    places: Option<&'static mut [InstructionPlace]>,
    known: usize,
    /// Numbers of instructions by their hash.
    index: Option<&'static mut [u32]>,
    /// Instructions for which there was no room.
    pub lost: u64,
}

impl Code {
    /// None.
    pub const fn new() -> Self {
        Self { images: None, named: 0, places: None, known: 0, index: None, lost: 0 }
    }

    /// The files, by number.
    pub fn images(&self) -> &[Image] {
        self.images.as_deref().map_or(&[], |images| &images[..self.named.min(images.len())])
    }

    /// The instructions, by number.
    pub fn places(&self) -> &[InstructionPlace] {
        self.places.as_deref().map_or(&[], |places| &places[..self.known.min(places.len())])
    }

    /// The number of a file; `path` is asked for the path of one that is new. `None` without room.
    pub fn image(&mut self, key: ImageKey, path: impl FnOnce() -> [u8; PATH]) -> Option<u64> {
        let images = self.images.get_or_insert_with(|| zeroed(MOST_IMAGES));
        self.named = self.named.max(1);
        // The latest that fits: an entry may have been another file's before.
        let known = images.iter().take(self.named).skip(1).rposition(|image| image.key == key);
        if let Some(known) = known {
            return Some(known as u64 + 1);
        }
        let image = images.get_mut(self.named)?;
        *image = Image { key, path: path() };
        self.named += 1;
        Some(self.named as u64 - 1)
    }

    /// The number of an instruction; 0 without room.
    pub fn number(&mut self, place: InstructionPlace) -> u32 {
        let index = self.index.get_or_insert_with(|| zeroed(PLACES));
        let places = self.places.get_or_insert_with(|| zeroed(MOST_INSTRUCTIONS));
        if index.is_empty() || places.is_empty() {
            return 0;
        }
        self.known = self.known.max(1);
        let mut at = hash(place);
        loop {
            let number = index[at % PLACES];
            if number == 0 {
                break;
            }
            if places[number as usize] == place {
                return number;
            }
            at += 1;
        }
        let Some(free) = places.get_mut(self.known) else {
            self.lost += 1;
            return 0;
        };
        *free = place;
        index[at % PLACES] = self.known as u32;
        self.known += 1;
        self.known as u32 - 1
    }
}

/// Multiplicative hashing: the upper bits depend on all of the place.
const fn hash(place: InstructionPlace) -> usize {
    let mixed = (place.offset ^ place.image << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(entry: u64, name: u8) -> ImageKey {
        ImageKey { entry, folder: 1, name: [name; START] }
    }

    #[test]
    fn an_instruction_has_one_number() {
        let mut code = Code::new();
        let place = |image, offset| InstructionPlace { image, offset };
        let numbers: Vec<u32> =
            [place(1, 4), place(1, 8), place(2, 4), place(1, 4)].map(|place| code.number(place)).to_vec();
        assert_eq!(numbers, [1, 2, 3, 1]);
        assert_eq!(code.places()[1..], [place(1, 4), place(1, 8), place(2, 4)]);
        let more = (0..200).map(|offset| code.number(place(5, offset))).filter(|number| *number == 0);
        assert_eq!(
            (more.count(), code.lost),
            (200 - (MOST_INSTRUCTIONS - 4), 200 - (MOST_INSTRUCTIONS as u64 - 4))
        );
        assert_eq!(code.number(place(1, 8)), 2);
    }

    #[test]
    fn a_file_is_known_by_entry_folder_and_name() {
        let mut code = Code::new();
        let path = |byte| move || [byte; PATH];
        assert_eq!(code.image(key(7, b'a'), path(1)), Some(1));
        assert_eq!(code.image(key(7, b'b'), path(2)), Some(2));
        assert_eq!(code.image(key(7, b'a'), || panic!("it is known")), Some(1));
        assert_eq!(code.image(ImageKey::NO_FILE, path(0)), Some(3));
        assert_eq!(code.image(ImageKey::NO_FILE, || panic!("it is known")), Some(3));
        assert_eq!(code.image(ImageKey::KERNEL, || KERNEL_PATH), Some(4));
        assert!(code.images()[4].path.starts_with(b"[kernel]\0"));
        let more = (0..20).filter_map(|entry| code.image(key(100 + entry, 0), path(3)));
        assert_eq!(more.count(), MOST_IMAGES - 5);
        assert_eq!(code.images()[2].path, [2; PATH]);
    }
}
