//! Structures of the firmware's tables: fields one after the other, little endian, without padding.
//!
//! [`structure!`] declares one of a fixed size, [`entries!`] the kinds that a table can hold.

/// The contents of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    /// Bytes that are not a number: an id in ASCII, a handle, a list of distances.
    Bytes(Vec<u8>),
}

/// A field of a structure as it is shown: where it lies, what it is called, what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Bytes from the start of the table.
    pub offset: usize,
    /// Bytes that it takes.
    pub width: usize,
    /// Its name in the specification.
    pub name: &'static str,
    pub value: Value,
}

/// Why a structure cannot be read: this many bytes would be needed, counted from its first field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs(pub u64);

/// Something of a known size.
pub trait Word: Sized {
    /// Bytes that it takes.
    const WIDTH: usize;
    /// Takes it from the front of the bytes.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);
    /// Returns its value for display.
    fn value(&self) -> Value;
}

macro_rules! numbers {
    ($($number:ty)*) => { $(
        impl Word for $number {
            const WIDTH: usize = size_of::<$number>();

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let (first, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(Self::from_le_bytes(*first))
            }

            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn value(&self) -> Value {
                Value::Number(u64::from(*self))
            }
        }
    )* };
}
numbers!(u8 u16 u32 u64);

impl<const N: usize> Word for [u8; N] {
    const WIDTH: usize = N;

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*first)
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn value(&self) -> Value {
        Value::Bytes(self.to_vec())
    }
}

/// A structure that can be read, written and shown.
pub trait Layout: Sized {
    /// Takes the structure from the front of the bytes and leaves what it does not know.
    ///
    /// # Errors
    /// How many bytes it would need, where there are fewer.
    fn take(bytes: &mut &[u8]) -> Result<Self, Needs>;

    /// Appends the structure.
    fn put(&self, out: &mut Vec<u8>);

    /// Appends its fields; the structure starts at `offset`.
    fn fields(&self, offset: usize, out: &mut Vec<Field>);
}

/// Nothing: a table whose structures follow its header at once.
impl Layout for () {
    fn take(_: &mut &[u8]) -> Result<Self, Needs> {
        Ok(())
    }

    fn put(&self, _: &mut Vec<u8>) {}

    fn fields(&self, _: usize, _: &mut Vec<Field>) {}
}

/// The kinds of structure in a table, each of which begins with a head of type and length.
pub trait Entries: Sized {
    /// The form of the head.
    const HEAD: Head;

    /// Takes a structure of this kind, and gives the bytes behind it. A kind that is not known, and
    /// one that does not fit into the bytes, becomes bytes; the latter with what it would need.
    fn take(kind: u16, bytes: &[u8]) -> (Self, &[u8], Option<Needs>);

    /// The type in its head.
    fn kind(&self) -> u16;

    /// The structure's name in the specification; `None` for a kind that is not known.
    fn name(&self) -> Option<&'static str>;

    /// Whether the structure could be read.
    fn is_understood(&self) -> bool;

    /// Appends the structure without its head.
    fn put(&self, out: &mut Vec<u8>);

    /// Appends its fields; what follows its head starts at `offset`.
    fn fields(&self, offset: usize, out: &mut Vec<Field>);
}

/// How the head of a structure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Type and length, a byte each: SRAT, MADT; in the MSCT a revision takes the place of the type.
    Short,
    /// Type and a reserved byte, then the length in 16 bits: CEDT.
    Middle,
    /// Type and reserved 16 bits, then the length in 32 bits: HMAT.
    Long,
}

impl Head {
    /// Bytes of the head.
    pub const fn width(self) -> usize {
        match self {
            Self::Short => 2,
            Self::Middle => 4,
            Self::Long => 8,
        }
    }

    /// Takes type, reserved field and length from the front of the bytes.
    pub fn take(self, bytes: &mut &[u8]) -> Option<(u16, u16, usize)> {
        Some(match self {
            Self::Short => (u8::take(bytes)?.into(), 0, u8::take(bytes)?.into()),
            Self::Middle => (u8::take(bytes)?.into(), u8::take(bytes)?.into(), u16::take(bytes)?.into()),
            Self::Long => (u16::take(bytes)?, u16::take(bytes)?, u32::take(bytes)? as usize),
        })
    }

    /// Appends a head. What does not fit into its fields is cut: no table that was read has it.
    pub fn put(self, kind: u16, reserved: u16, length: usize, out: &mut Vec<u8>) {
        match self {
            Self::Short => out.extend([kind as u8, length as u8]),
            Self::Middle => {
                out.extend([kind as u8, reserved as u8]);
                (length as u16).put(out);
            }
            Self::Long => {
                kind.put(out);
                reserved.put(out);
                (length as u32).put(out);
            }
        }
    }
}

/// Appends a field for a list, one per item, of items of one width.
pub fn list<W: Word>(name: &'static str, items: &[W], mut offset: usize, out: &mut Vec<Field>) {
    for item in items {
        out.push(Field { offset, width: W::WIDTH, name, value: item.value() });
        offset += W::WIDTH;
    }
}

/// Takes a list of this many items; `None` when there are fewer.
pub fn take_list<W: Word>(count: u64, bytes: &mut &[u8]) -> Option<Vec<W>> {
    // Compared before anything is reserved: the count is the firmware's.
    let enough = count.checked_mul(W::WIDTH as u64)? <= bytes.len() as u64;
    enough.then(|| (0..count).map_while(|_| W::take(bytes)).collect())
}

/// Appends the items of a list.
pub fn put_list<W: Word>(items: &[W], out: &mut Vec<u8>) {
    items.iter().for_each(|item| item.put(out));
}

/// Declares a structure of a fixed size: its type, and [`Layout`] for it.
macro_rules! structure {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $word:ty, $label:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $word,)*
        }

        impl $name {
            /// Bytes that it takes.
            pub const WIDTH: usize = 0 $(+ <$word as $crate::firmware::layout::Word>::WIDTH)*;
        }

        impl $crate::firmware::layout::Layout for $name {
            fn take(bytes: &mut &[u8]) -> Result<Self, $crate::firmware::layout::Needs> {
                let needs = $crate::firmware::layout::Needs(Self::WIDTH as u64);
                if bytes.len() < Self::WIDTH {
                    return Err(needs);
                }
                Ok(Self { $($field: $crate::firmware::layout::Word::take(bytes).ok_or(needs)?,)* })
            }

            fn put(&self, out: &mut Vec<u8>) {
                $($crate::firmware::layout::Word::put(&self.$field, out);)*
            }

            fn fields(&self, offset: usize, out: &mut Vec<$crate::firmware::layout::Field>) {
                let mut at = offset;
                $({
                    let width = <$word as $crate::firmware::layout::Word>::WIDTH;
                    let value = $crate::firmware::layout::Word::value(&self.$field);
                    out.push($crate::firmware::layout::Field { offset: at, width, name: $label, value });
                    at += width;
                })*
                debug_assert_eq!(at, offset + Self::WIDTH, "fields follow one another");
            }
        }
    };
}
pub(crate) use structure;

/// Declares the kinds of structure in a table: an enum, and [`Entries`] for it.
macro_rules! entries {
    ($(#[$doc:meta])* $name:ident, $head:expr; $($(#[$kind_doc:meta])* $kind:literal $variant:ident($body:ty) $label:literal)*) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$kind_doc])* $variant($body),)*
            /// A kind that is not known, or one that does not fit into its own length: its type, and
            /// the bytes behind its head.
            Unknown(u16, Vec<u8>),
        }

        impl $name {
            /// The name of the structures of a type in the specification; `None` for an unknown one.
            pub const fn name_of(kind: u16) -> Option<&'static str> {
                match kind {
                    $($kind => Some($label),)*
                    _ => None,
                }
            }
        }

        impl $crate::firmware::layout::Entries for $name {
            const HEAD: $crate::firmware::layout::Head = $head;

            fn take(kind: u16, bytes: &[u8]) -> (Self, &[u8], Option<$crate::firmware::layout::Needs>) {
                let mut rest = bytes;
                let read = match kind {
                    $($kind => $crate::firmware::layout::Layout::take(&mut rest).map(Self::$variant),)*
                    _ => return (Self::Unknown(kind, bytes.to_vec()), &[], None),
                };
                match read {
                    Ok(entry) => (entry, rest, None),
                    Err(needs) => (Self::Unknown(kind, bytes.to_vec()), &[], Some(needs)),
                }
            }

            fn kind(&self) -> u16 {
                match self {
                    $(Self::$variant(_) => $kind,)*
                    Self::Unknown(kind, _) => *kind,
                }
            }

            fn name(&self) -> Option<&'static str> {
                Self::name_of(self.kind())
            }

            fn is_understood(&self) -> bool {
                !matches!(self, Self::Unknown(..))
            }

            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant(body) => $crate::firmware::layout::Layout::put(body, out),)*
                    Self::Unknown(_, bytes) => out.extend_from_slice(bytes),
                }
            }

            fn fields(&self, offset: usize, out: &mut Vec<$crate::firmware::layout::Field>) {
                match self {
                    $(Self::$variant(body) => $crate::firmware::layout::Layout::fields(body, offset, out),)*
                    Self::Unknown(_, bytes) => {
                        let value = $crate::firmware::layout::Value::Bytes(bytes.clone());
                        let width = bytes.len();
                        out.push($crate::firmware::layout::Field { offset, width, name: "Bytes", value });
                    }
                }
            }
        }
    };
}
pub(crate) use entries;

#[cfg(test)]
mod tests {
    use super::*;

    structure! {
        Sample {
            /// A number.
            number: u16, "Number";
            /// Bytes.
            bytes: [u8; 3], "Bytes";
        }
    }

    #[test]
    fn fields_follow_one_another() {
        let bytes = [0x34, 0x12, 1, 2, 3, 9];
        let mut rest = &bytes[..];
        let sample = Sample::take(&mut rest).unwrap();
        assert_eq!((sample.number, sample.bytes, rest), (0x1234, [1, 2, 3], &[9][..]));
        let mut fields = Vec::new();
        sample.fields(8, &mut fields);
        let places: Vec<(usize, usize)> = fields.iter().map(|field| (field.offset, field.width)).collect();
        assert_eq!(places, [(8, 2), (10, 3)]);
        let mut out = Vec::new();
        sample.put(&mut out);
        assert_eq!(out, bytes[..5]);
    }

    #[test]
    fn a_structure_says_how_many_bytes_it_needs() {
        assert_eq!(Sample::take(&mut &[1, 2][..]), Err(Needs(5)));
    }

    #[test]
    fn a_list_of_more_items_than_bytes_is_not_begun() {
        assert_eq!(take_list::<u32>(u64::MAX, &mut &[0; 8][..]), None);
        assert_eq!(take_list::<u16>(2, &mut &[1, 0, 2, 0][..]), Some(vec![1, 2]));
    }

    #[test]
    fn a_list_is_written_as_it_is_read() {
        let mut out = Vec::new();
        put_list(&[1_u16, 0x0203], &mut out);
        assert_eq!(out, [1, 0, 3, 2]);
    }
}
