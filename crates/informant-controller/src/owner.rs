//! Owner references: who made an object, so that the garbage collector removes it with its owner and `owns` finds the way back.

use std::any::TypeId;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, core::ClusterResourceScope};

/// Why an owner reference can't be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// The owner has no name or no uid, as an object that was not read from a server.
    #[error("{kind} {name:?} can't own anything yet: it has no {missing}; use the object as the server returned it")]
    Incomplete {
        /// Kind of the owner.
        kind: String,
        /// Name of the owner, if it has one.
        name: String,
        /// The metadata field that's missing.
        missing: &'static str,
    },
    /// Another object is the controller already.
    #[error("{object:?} is already controlled by {kind} {name:?}; an object has one controller at most")]
    AlreadyControlled {
        /// Name of the object.
        object: String,
        /// Kind of its controller.
        kind: String,
        /// Name of its controller.
        name: String,
    },
    /// An owner in a namespace can only own objects in the same namespace.
    #[error(
        "{owner:?} in namespace {owner_namespace:?} can't own {object:?} in {object_namespace:?}: owner and object have to be in one namespace"
    )]
    OtherNamespace {
        /// Name of the owner.
        owner: String,
        /// Namespace of the owner.
        owner_namespace: String,
        /// Name of the object.
        object: String,
        /// Namespace of the object; empty if it's cluster-scoped.
        object_namespace: String,
    },
}

/// A plain reference to an owner: the object goes when all its owners are gone.
///
/// # Errors
/// [`OwnerError::Incomplete`] if the owner has no name or uid.
pub fn owner_reference<O: Resource<DynamicType = ()>>(owner: &O) -> Result<OwnerReference, OwnerError> {
    let name = owner.meta().name.clone().unwrap_or_default();
    let uid = owner.meta().uid.clone().unwrap_or_default();
    let missing = if name.is_empty() { Some("metadata.name") } else { uid.is_empty().then_some("metadata.uid") };
    if let Some(missing) = missing {
        return Err(OwnerError::Incomplete { kind: O::kind(&()).into_owned(), name, missing });
    }
    Ok(OwnerReference {
        api_version: O::api_version(&()).into_owned(),
        kind: O::kind(&()).into_owned(),
        name,
        uid,
        controller: None,
        block_owner_deletion: None,
    })
}

/// A reference to the one owner that manages the object: `controller` and `blockOwnerDeletion` are true.
///
/// # Errors
/// [`OwnerError::Incomplete`] if the owner has no name or uid.
pub fn controller_reference<O: Resource<DynamicType = ()>>(owner: &O) -> Result<OwnerReference, OwnerError> {
    let reference = owner_reference(owner)?;
    Ok(OwnerReference { controller: Some(true), block_owner_deletion: Some(true), ..reference })
}

/// Sets the controller reference in an object that is to be written. A reference to the same owner in another version of its API
/// is replaced, others stay. Returns whether anything changed.
///
/// A namespaced object that has no namespace yet is taken to be written into the owner's: elsewhere the garbage collector would
/// remove it, as it finds no such owner there.
///
/// # Errors
/// [`OwnerError::AlreadyControlled`] if another object is its controller, [`OwnerError::OtherNamespace`] if the owner is in
/// another namespace or the object is cluster-scoped while the owner isn't, [`OwnerError::Incomplete`] as above. The object is
/// unchanged then.
pub fn set_controller_reference<O, C>(owner: &O, object: &mut C) -> Result<bool, OwnerError>
where
    O: Resource<DynamicType = ()>,
    C: Resource,
    C::Scope: 'static,
{
    set_reference(owner, object, controller_reference(owner)?)
}

/// Sets a plain owner reference in an object that is to be written, as [`set_controller_reference`] does.
///
/// # Errors
/// [`OwnerError::OtherNamespace`] and [`OwnerError::Incomplete`] as there.
pub fn set_owner_reference<O, C>(owner: &O, object: &mut C) -> Result<bool, OwnerError>
where
    O: Resource<DynamicType = ()>,
    C: Resource,
    C::Scope: 'static,
{
    set_reference(owner, object, owner_reference(owner)?)
}

fn set_reference<O, C>(owner: &O, object: &mut C, reference: OwnerReference) -> Result<bool, OwnerError>
where
    O: Resource<DynamicType = ()>,
    C: Resource,
    C::Scope: 'static,
{
    let object_name = object.meta().name.clone().or_else(|| object.meta().generate_name.clone()).unwrap_or_default();
    let object_namespace = object.meta().namespace.clone().unwrap_or_default();
    let cluster_scoped = TypeId::of::<C::Scope>() == TypeId::of::<ClusterResourceScope>();
    let undecided = object_namespace.is_empty() && !cluster_scoped;
    let other = |namespace: &&String| !undecided && **namespace != object_namespace;
    if let Some(namespace) = owner.meta().namespace.as_ref().filter(other) {
        return Err(OwnerError::OtherNamespace {
            owner: reference.name,
            owner_namespace: namespace.clone(),
            object: object_name,
            object_namespace,
        });
    }
    let references = object.meta_mut().owner_references.get_or_insert_default();
    let other = |existing: &&OwnerReference| existing.controller == Some(true) && !is_same(existing, &reference);
    if reference.controller == Some(true)
        && let Some(other) = references.iter().find(other)
    {
        return Err(OwnerError::AlreadyControlled {
            object: object_name,
            kind: other.kind.clone(),
            name: other.name.clone(),
        });
    }
    match references.iter_mut().find(|existing| is_same(existing, &reference)) {
        Some(existing) if *existing == reference => Ok(false),
        Some(existing) => {
            *existing = reference;
            Ok(true)
        }
        None => {
            references.push(reference);
            Ok(true)
        }
    }
}

/// Group, kind and name make the identity; an owner that was created anew takes the place of its predecessor.
fn is_same(one: &OwnerReference, other: &OwnerReference) -> bool {
    group(&one.api_version) == group(&other.api_version) && one.kind == other.kind && one.name == other.name
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Node, Pod},
    };

    use super::*;

    #[test]
    fn an_object_without_a_namespace_yet_may_be_owned_by_one_in_a_namespace() {
        let mut pod: Pod = named(None, "pod");
        assert_eq!(set_controller_reference(&named::<Deployment>(Some("a"), "one"), &mut pod), Ok(true));
        assert_eq!(pod.metadata.namespace, None, "the Api that writes it sees to that");
    }

    fn named<K: Resource + Default>(namespace: Option<&str>, name: &str) -> K {
        let mut object = K::default();
        let meta = object.meta_mut();
        meta.name = Some(name.into());
        meta.namespace = namespace.map(Into::into);
        meta.uid = Some(format!("uid-of-{name}"));
        object
    }

    /// controller-runtime fact 100.
    #[test]
    fn a_second_controller_is_refused_and_the_object_stays_as_it_was() {
        let mut pod: Pod = named(Some("a"), "pod");
        assert_eq!(set_controller_reference(&named::<Deployment>(Some("a"), "one"), &mut pod), Ok(true));
        assert_eq!(set_controller_reference(&named::<Deployment>(Some("a"), "one"), &mut pod), Ok(false));
        let before = pod.clone();
        let error = set_controller_reference(&named::<Deployment>(Some("a"), "two"), &mut pod).unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"pod\" is already controlled by Deployment \"one\"; an object has one controller at most"
        );
        assert_eq!(pod, before);
        assert_eq!(
            set_owner_reference(&named::<Deployment>(Some("a"), "two"), &mut pod),
            Ok(true),
            "a plain owner may come"
        );
        let references = pod.metadata.owner_references.unwrap();
        assert_eq!(references[0].block_owner_deletion, Some(true));
        assert_eq!((references.len(), references[1].controller), (2, None));
    }

    /// controller-runtime fact 100.
    #[test]
    fn an_owner_in_another_namespace_is_refused_and_a_cluster_scoped_one_is_not() {
        let mut pod: Pod = named(Some("a"), "pod");
        let other = set_controller_reference(&named::<Deployment>(Some("b"), "one"), &mut pod);
        assert!(matches!(other, Err(OwnerError::OtherNamespace { .. })));
        let mut node: Node = named(None, "node");
        let cluster = set_controller_reference(&named::<Deployment>(Some("b"), "one"), &mut node);
        assert!(matches!(cluster, Err(OwnerError::OtherNamespace { .. })));
        assert_eq!(set_controller_reference(&named::<Node>(None, "node"), &mut pod), Ok(true));
    }

    /// controller-runtime fact 100.
    #[test]
    fn the_same_owner_in_another_version_is_replaced_not_added() {
        let mut pod: Pod = named(Some("a"), "pod");
        let old = OwnerReference {
            api_version: "apps/v1beta1".into(),
            ..controller_reference(&named::<Deployment>(Some("a"), "one")).unwrap()
        };
        pod.metadata.owner_references = Some(vec![old]);
        assert_eq!(set_controller_reference(&named::<Deployment>(Some("a"), "one"), &mut pod), Ok(true));
        let references = pod.metadata.owner_references.unwrap();
        assert_eq!((references.len(), references[0].api_version.as_str()), (1, "apps/v1"));
    }

    #[test]
    fn an_owner_that_no_server_returned_is_refused_with_the_missing_field() {
        let owner = ConfigMap {
            metadata: kube::core::ObjectMeta { name: Some("a".into()), ..Default::default() },
            ..Default::default()
        };
        let error = owner_reference(&owner).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ConfigMap \"a\" can't own anything yet: it has no metadata.uid; use the object as the server returned it"
        );
    }
}
