//! Enumerations that travel as words.

use crate::violation::excerpt;

/// A word that the protocol does not know where it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no {what}; there are {}", known.join(", "))]
pub struct UnknownWord {
    what: &'static str,
    known: &'static [&'static str],
    found: String,
}

impl UnknownWord {
    pub(crate) fn new(what: &'static str, known: &'static [&'static str], found: &str) -> Self {
        Self {
            what,
            known,
            found: excerpt(found.as_bytes()),
        }
    }
}

/// Makes an enumeration of words: in this order, with these spellings.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $name:ident, $what:literal {
            $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Returns the word on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::words::UnknownWord::new($what, &[$($word),+], text)),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;
