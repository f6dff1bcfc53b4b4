//! What the derive knows of a field's type, by its name.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{GenericArgument, PathArguments, Type};

/// A type, as far as it's known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Known {
    /// `String` or `Box<str>`.
    Text,
    /// `Arc<str>`, which is shared.
    Shared,
    Boolean,
    Integer,
    Float,
    Option(Box<Known>),
    List(Box<Known>),
    Map(Box<Known>, Box<Known>),
    /// Some type of the user's.
    Other,
}

impl Known {
    /// What's known of a type.
    pub(crate) fn of(kind: &Type) -> Self {
        let Type::Path(path) = kind else { return Self::Other };
        let Some(last) = path.path.segments.last() else { return Self::Other };
        let arguments: Vec<&Type> = match &last.arguments {
            PathArguments::AngleBracketed(arguments) => arguments
                .args
                .iter()
                .filter_map(|argument| match argument {
                    GenericArgument::Type(kind) => Some(kind),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        let inner = |kind: &Type| Box::new(Self::of(kind));
        match (last.ident.to_string().as_str(), arguments.as_slice()) {
            ("String", []) => Self::Text,
            ("Box", [text]) if is_str(text) => Self::Text,
            ("Arc", [text]) if is_str(text) => Self::Shared,
            ("bool", []) => Self::Boolean,
            ("f32" | "f64", []) => Self::Float,
            ("i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize", []) => {
                Self::Integer
            }
            ("Option", [kind]) => Self::Option(inner(kind)),
            ("Vec", [kind]) => Self::List(inner(kind)),
            ("BTreeMap", [key, value]) => Self::Map(inner(key), inner(value)),
            _ => Self::Other,
        }
    }

    /// Whether all of it is known.
    pub(crate) fn is_known(&self) -> bool {
        match self {
            Self::Other => false,
            Self::Option(inner) | Self::List(inner) => inner.is_known(),
            Self::Map(key, value) => key.is_known() && value.is_known(),
            _ => true,
        }
    }

    /// Whether it's a text, or may be one.
    pub(crate) fn is_text(&self) -> bool {
        match self {
            Self::Text | Self::Shared => true,
            Self::Option(inner) => inner.is_text(),
            _ => false,
        }
    }

    fn is_shared(&self) -> bool {
        match self {
            Self::Shared => true,
            Self::Option(inner) | Self::List(inner) => inner.is_shared(),
            Self::Map(key, value) => key.is_shared() || value.is_shared(),
            _ => false,
        }
    }

    /// The code that says how a value of it is decoded. `support` is where the parts are, `kind` the type.
    pub(crate) fn seed(&self, support: &TokenStream, kind: &Type) -> TokenStream {
        if !self.is_shared() {
            return quote!(#support::Plain::<#kind>::new());
        }
        match self {
            Self::Option(inner) => {
                let inner = inner.seed(support, argument(kind, 0));
                quote!(#support::Nullable(#inner))
            }
            Self::List(inner) => {
                let inner = inner.seed(support, argument(kind, 0));
                quote!(#support::Listed(#inner))
            }
            Self::Map(key, value) => {
                let (key, value) = (key.seed(support, argument(kind, 0)), value.seed(support, argument(kind, 1)));
                quote!(#support::Mapped(#key, #value))
            }
            _ => quote!(found.interned()),
        }
    }
}

fn is_str(kind: &Type) -> bool {
    matches!(kind, Type::Path(path) if path.path.is_ident("str"))
}

/// The type's argument at this position; the type itself if it has none.
pub(crate) fn argument(kind: &Type, position: usize) -> &Type {
    if let Type::Path(path) = kind
        && let Some(last) = path.path.segments.last()
        && let PathArguments::AngleBracketed(arguments) = &last.arguments
        && let Some(GenericArgument::Type(inner)) = arguments.args.iter().nth(position)
    {
        return inner;
    }
    kind
}

/// A type as people write it.
pub(crate) fn shown(kind: &Type) -> String {
    let text = quote!(#kind).to_string();
    [(" :: ", "::"), (" < ", "<"), (" >", ">"), ("< ", "<"), (" ,", ","), ("& ", "&")]
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str) -> Known {
        Known::of(&syn::parse_str(text).expect(text))
    }

    #[test]
    fn types_are_known_by_name_wherever_they_are_taken_from() {
        assert_eq!(known("std::sync::Arc<str>"), Known::Shared);
        assert_eq!(known("Arc<String>"), Known::Other);
        assert_eq!(known("Option<Vec<u16>>"), Known::Option(Box::new(Known::List(Box::new(Known::Integer)))));
        assert_eq!(known("BTreeMap<Arc<str>, Foo>"), Known::Map(Box::new(Known::Shared), Box::new(Known::Other)));
        assert_eq!(known("(String, bool)"), Known::Other);
        assert!(known("Vec<Option<bool>>").is_known() && !known("Vec<Foo>").is_known());
    }

    #[test]
    fn a_type_is_shown_as_it_is_written() {
        for text in ["Option<Vec<u16>>", "std::collections::BTreeMap<String, Arc<str>>", "bool"] {
            assert_eq!(shown(&syn::parse_str(text).expect(text)), text);
        }
    }
}
