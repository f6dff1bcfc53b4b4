//! The struct and its attributes.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Ident, LitStr, Result, Type};

use crate::path::{self, Step};

/// A struct to make a projection of.
pub(crate) struct Input {
    pub(crate) name: Ident,
    pub(crate) api_version: LitStr,
    pub(crate) kind: LitStr,
    pub(crate) plural: Option<LitStr>,
    pub(crate) cluster_scoped: bool,
    /// Where `informant-cache` is, if somebody says so.
    pub(crate) cache: Option<syn::Path>,
    pub(crate) fields: Vec<Field>,
}

/// One field.
pub(crate) struct Field {
    pub(crate) name: Ident,
    pub(crate) kind: Type,
    pub(crate) path: LitStr,
    pub(crate) steps: Vec<Step>,
    pub(crate) default: bool,
}

#[derive(Default)]
struct Container {
    api_version: Option<LitStr>,
    kind: Option<LitStr>,
    plural: Option<LitStr>,
    cluster_scoped: bool,
    cache: Option<syn::Path>,
}

impl Input {
    pub(crate) fn read(input: DeriveInput) -> Result<Self> {
        let name = input.ident;
        if !input.generics.params.is_empty() {
            return Err(Error::new(input.generics.span(), "a projection has no parameters: it owns what it keeps"));
        }
        let Data::Struct(data) = input.data else {
            return Err(Error::new(name.span(), "a projection is a struct"));
        };
        let Fields::Named(named) = data.fields else {
            return Err(Error::new(name.span(), "a projection is a struct with named fields"));
        };
        let container = Container::read(&input.attrs)?;
        let missing = |what: &str, example: &str| {
            let text = format!("say which objects this is a part of: #[projection({what} = \"{example}\", …)]");
            Error::new(name.span(), text)
        };
        let mut errors = Errors::default();
        let fields = named.named.into_iter().filter_map(|field| errors.keep(Field::read(field))).collect();
        let api_version = errors.keep(container.api_version.ok_or_else(|| missing("api_version", "v1")));
        let kind = errors.keep(container.kind.ok_or_else(|| missing("kind", "Pod")));
        errors.none()?;
        let (Some(api_version), Some(kind)) = (api_version, kind) else {
            return Err(missing("kind", "Pod"));
        };
        Ok(Self {
            name,
            api_version,
            kind,
            plural: container.plural,
            cluster_scoped: container.cluster_scoped,
            cache: container.cache,
            fields,
        })
    }
}

impl Container {
    fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut container = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("projection")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("api_version") {
                    container.api_version = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("kind") {
                    container.kind = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("plural") {
                    container.plural = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("cluster_scoped") {
                    container.cluster_scoped = true;
                } else if meta.path.is_ident("crate") {
                    container.cache = Some(meta.value()?.call(syn::Path::parse_mod_style)?);
                } else {
                    return Err(meta.error("expected `api_version`, `kind`, `plural`, `cluster_scoped` or `crate`"));
                }
                Ok(())
            })?;
        }
        Ok(container)
    }
}

impl Field {
    fn read(field: syn::Field) -> Result<Self> {
        // Named fields have names.
        let name = field.ident.unwrap_or_else(|| Ident::new("unnamed", Span::call_site()));
        let (mut path, mut default) = (None::<LitStr>, false);
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("projection")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("path") {
                    path = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("default") {
                    default = true;
                } else {
                    return Err(meta.error("expected `path` or `default`"));
                }
                Ok(())
            })?;
        }
        let path = path.ok_or_else(|| {
            let text = format!("say where in the object `{name}` is: #[projection(path = \"spec.{name}\")]");
            Error::new(name.span(), text)
        })?;
        let steps = path::parse(&path.value()).map_err(|error| Error::new(path.span(), error))?;
        Ok(Self { name, kind: field.ty, path, steps, default })
    }
}

/// Errors, of which one shall not hide the others.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            none => *none = Some(error),
        }
    }

    fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    pub(crate) fn none(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
