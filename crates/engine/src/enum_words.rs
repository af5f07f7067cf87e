//! Enums whose values have words in arguments, results, files and stored data.

/// Gives an enum the list of its values and the word of each value.
macro_rules! enum_words {
    ($name:ident: $($value:ident $word:literal),+ $(,)?) => {
        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &[$name] = &[$($name::$value),+];

            /// Returns the word for a value.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$value => $word),+ }
            }
        }
    };
}

pub(crate) use enum_words;
