//! The code of a projection.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{DeriveInput, Error, Result};

use crate::check;
use crate::input::{Errors, Field, Input};
use crate::path::Step;
use crate::table;
use crate::types::{self, Known};

/// The code of a struct's projection, or the errors in its place. `cache` is where `informant-cache` is.
pub(crate) fn expand(input: TokenStream, cache: &[&str]) -> TokenStream {
    let input = syn::parse2::<DeriveInput>(input).and_then(Input::read);
    input.and_then(|input| code(&input, cache)).unwrap_or_else(|error| error.to_compile_error())
}

fn code(input: &Input, cache: &[&str]) -> Result<TokenStream> {
    let (api_version, kind) = (input.api_version.value(), input.kind.value());
    let mut errors = Errors::default();
    match check::kind(&api_version, &kind) {
        Err(error) => errors.add(Error::new(input.kind.span(), error)),
        Ok(()) => input.fields.iter().for_each(|field| check(&api_version, &kind, field, &mut errors)),
    }
    errors.none()?;

    let cache = match &input.cache {
        Some(path) => quote!(#path),
        None => {
            let names = cache.iter().map(|name| Ident::new(name, Span::call_site()));
            quote!(#(::#names)*)
        }
    };
    let support = quote!(#cache::projection);
    let name = &input.name;
    let plural = option(input.plural.as_ref());
    let cluster_scoped = input.cluster_scoped || table::is_cluster_scoped(&api_version, &kind);
    let fields = input.fields.iter().map(|field| describe(field, &support));
    let reads = input.fields.iter().enumerate().map(|(position, field)| read(position, field, &support));
    let counted = input.fields.iter().filter(|field| Known::of(&field.kind).is_known()).map(|field| &field.name);
    let metadata = metadata(input, &support, &cache);
    Ok(quote! {
        const _: () = {
            static PLAN: ::std::sync::OnceLock<#support::Plan> = ::std::sync::OnceLock::new();

            #[automatically_derived]
            impl #support::Projection for #name {
                const KIND: #support::Kind = #support::Kind {
                    api_version: #api_version,
                    kind: #kind,
                    plural: #plural,
                    cluster_scoped: #cluster_scoped,
                };
                const FIELDS: &'static [#support::Field] = &[#(#fields),*];

                fn plan() -> &'static #support::Plan {
                    PLAN.get_or_init(|| #support::Plan::new(Self::KIND, Self::FIELDS))
                }

                fn read(found: &#support::Found<'_>) -> ::core::result::Result<Self, #cache::DecodeError> {
                    ::core::result::Result::Ok(Self { #(#reads),* })
                }

                fn heap_bytes(&self) -> usize {
                    0 #(+ #support::HeapBytes::heap_bytes(&self.#counted))*
                }
            }

            #[automatically_derived]
            impl #cache::Metadata for #name {
                #metadata
            }
        };
    })
}

/// Adds what's wrong with a field to the errors.
fn check(api_version: &str, kind: &str, field: &Field, errors: &mut Errors) {
    let path = field.path.value();
    let place = match check::resolve(api_version, kind, &field.steps) {
        Ok(place) => place,
        Err(error) => return errors.add(Error::new(field.path.span(), error)),
    };
    let mut known = Known::of(&field.kind);
    if is_many(field) {
        let Known::List(inner) = known else {
            let text = format!(
                "`{path}` leads to many values; it can't be read into {}, but into a Vec of them",
                types::shown(&field.kind)
            );
            return errors.add(Error::new_spanned(&field.kind, text));
        };
        known = *inner;
    }
    if let Some(place) = place.filter(|place| !check::fits(place, &known)) {
        let whole = types::shown(if is_many(field) { types::argument(&field.kind, 0) } else { &field.kind });
        let text = format!("`{path}` of {kind} is {}; it can't be read into {whole}", check::describe(&place));
        errors.add(Error::new_spanned(&field.kind, text));
    }
}

fn is_many(field: &Field) -> bool {
    field.steps.contains(&Step::Each)
}

fn option(value: Option<&syn::LitStr>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

fn describe(field: &Field, support: &TokenStream) -> TokenStream {
    let (name, path) = (field.name.to_string(), field.path.value());
    let opaque = !Known::of(&field.kind).is_known();
    let steps = field.steps.iter().map(|step| match step {
        Step::Key(key) => quote!(#support::Step::Key(#key)),
        Step::Each => quote!(#support::Step::Each),
        Step::At(position) => quote!(#support::Step::At(#position)),
        Step::Where(key, value) => quote!(#support::Step::Where(#key, #value)),
    });
    quote!(#support::Field { name: #name, path: #path, steps: &[#(#steps),*], opaque: #opaque })
}

fn read(position: usize, field: &Field, support: &TokenStream) -> TokenStream {
    let (name, kind) = (&field.name, &field.kind);
    let known = Known::of(kind);
    let (method, known, kind) = match known {
        Known::List(inner) if is_many(field) => ("each", *inner, types::argument(kind, 0)),
        Known::Option(inner) => ("optional", *inner, types::argument(kind, 0)),
        known @ (Known::List(_) | Known::Map(..)) => ("or_default", known, kind),
        known => (if field.default { "or_default" } else { "required" }, known, kind),
    };
    let method = Ident::new(method, Span::call_site());
    let seed = known.seed(support, kind);
    // So that a type which can't be decoded is where the compiler points.
    quote_spanned!(kind.span()=> #name: found.#method(#position, #seed)?)
}

/// The metadata that the struct keeps.
fn metadata(input: &Input, support: &TokenStream, cache: &TokenStream) -> TokenStream {
    let at = |path: &[&str]| {
        input.fields.iter().find(|field| {
            let keys = field.steps.iter().map(|step| if let Step::Key(key) = step { key.as_str() } else { "" });
            keys.eq(path.iter().copied())
        })
    };
    let text =
        |key: &str| at(&["metadata", key]).filter(|field| Known::of(&field.kind).is_text()).map(|field| &field.name);
    let optional = |key: &str| match text(key) {
        Some(name) => quote!(#support::Text::text(&self.#name)),
        None => quote!(::core::option::Option::None),
    };
    let (name, namespace) = (optional("name"), optional("namespace"));
    let (uid, resource_version) = (optional("uid"), optional("resourceVersion"));
    let generation = at(&["metadata", "generation"]).and_then(|field| {
        let name = &field.name;
        let body = match Known::of(&field.kind) {
            Known::Integer => quote!(::core::convert::TryFrom::try_from(self.#name).ok()),
            Known::Option(inner) if *inner == Known::Integer => {
                quote!(self.#name.and_then(|generation| ::core::convert::TryFrom::try_from(generation).ok()))
            }
            _ => return None,
        };
        Some(quote!(fn generation(&self) -> ::core::option::Option<i64> { #body }))
    });
    let deletion = at(&["metadata", "deletionTimestamp"]).and_then(|field| {
        let name = &field.name;
        let is_option = matches!(Known::of(&field.kind), Known::Option(_));
        is_option.then(|| quote!(fn is_deleting(&self) -> bool { self.#name.is_some() }))
    });
    let owners = at(&["metadata", "ownerReferences"]).filter(|field| is_owners(field)).map(|field| {
        let name = &field.name;
        let list = if matches!(Known::of(&field.kind), Known::Option(_)) {
            quote!(.iter().flatten())
        } else {
            quote!(.iter())
        };
        quote! {
            fn owners(&self) -> ::std::vec::Vec<#cache::Owner<'_>> {
                let owners = self.#name #list;
                owners
                    .map(|owner| #cache::Owner {
                        api_version: &owner.api_version,
                        kind: &owner.kind,
                        name: &owner.name,
                        uid: &owner.uid,
                        controller: owner.controller.unwrap_or(false),
                    })
                    .collect()
            }
        }
    });
    let label = texts(input, "labels", "label", support);
    let annotation = texts(input, "annotations", "annotation", support);
    quote! {
        fn name(&self) -> &str {
            let name: ::core::option::Option<&str> = #name;
            name.unwrap_or("")
        }
        fn namespace(&self) -> ::core::option::Option<&str> {
            #namespace
        }
        fn uid(&self) -> ::core::option::Option<&str> {
            #uid
        }
        fn resource_version(&self) -> ::core::option::Option<&str> {
            #resource_version
        }
        #generation
        #deletion
        #owners
        #label
        #annotation
    }
}

/// The method that answers with one of `metadata.labels` or `metadata.annotations`, if the struct keeps any.
fn texts(input: &Input, map: &str, method: &str, support: &TokenStream) -> Option<TokenStream> {
    let (mut all, mut single) = (None, Vec::new());
    for field in &input.fields {
        let (name, known) = (&field.name, Known::of(&field.kind));
        match field.steps.as_slice() {
            [Step::Key(metadata), Step::Key(key)] if metadata == "metadata" && key == map => {
                all = match known {
                    Known::Map(key, value) if key.is_text() && value.is_text() => Some(quote!(self.#name.get(key))),
                    Known::Option(inner) if matches!(&*inner, Known::Map(key, value) if key.is_text() && value.is_text()) => {
                        Some(quote!(self.#name.as_ref().and_then(|texts| texts.get(key))))
                    }
                    _ => None,
                };
            }
            [Step::Key(metadata), Step::Key(key), Step::Key(one)]
                if metadata == "metadata" && key == map && known.is_text() =>
            {
                single.push(quote!(#one => #support::Text::text(&self.#name)));
            }
            _ => {}
        }
    }
    if all.is_none() && single.is_empty() {
        return None;
    }
    let all = match all {
        Some(all) => quote!(#all.and_then(#support::Text::text)),
        None => quote!(::core::option::Option::None),
    };
    let (method, single) = (Ident::new(method, Span::call_site()), &single);
    Some(quote! {
        fn #method(&self, key: &str) -> ::core::option::Option<&str> {
            match key {
                #(#single,)*
                _ => #all,
            }
        }
    })
}

/// Whether a field's type is a list of what Kubernetes calls an `OwnerReference`, by whatever crate.
fn is_owners(field: &Field) -> bool {
    let list = match Known::of(&field.kind) {
        Known::Option(_) => types::argument(&field.kind, 0),
        _ => &field.kind,
    };
    let element = types::argument(list, 0);
    let named = |kind: &syn::Type| match kind {
        syn::Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "OwnerReference"),
        _ => false,
    };
    matches!(Known::of(list), Known::List(_)) && named(element)
}
