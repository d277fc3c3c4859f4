//! What every text type has besides its rule: conversions, `Display` and serde.

/// Gives a type `$name` with a `new(String)` rule and an `as_str` method the usual traits.
macro_rules! text_traits {
    ([$($generics:tt)*] $name:ty) => {
        impl<$($generics)*> std::str::FromStr for $name {
            type Err = $crate::BoundError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }

        impl<$($generics)*> TryFrom<String> for $name {
            type Error = $crate::BoundError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                Self::new(text)
            }
        }

        impl<$($generics)*> From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }

        impl<$($generics)*> AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl<$($generics)*> std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl<$($generics)*> std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self.as_str(), formatter)
            }
        }
    };
}

/// Declares a text type over a `String` with a check of its own.
macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks the text and keeps it.
            pub fn new(text: impl Into<String>) -> Result<Self, $crate::BoundError> {
                let text = text.into();
                let check: fn(&str) -> Result<(), $crate::BoundError> = $check;
                check(&text)?;
                Ok(Self(text))
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        $crate::text_type::text_traits!([] $name);
    };
}

pub(crate) use {text_traits, text_type};
