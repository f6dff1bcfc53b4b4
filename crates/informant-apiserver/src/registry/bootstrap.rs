//! The objects that are there from the start, and those that every namespace gets.

use serde_json::{Value, json};

use crate::registry::{Registry, Target, Write, is_namespace};
use crate::resource::{Resource, StorageId};
use crate::service::body::Document;
use crate::store::Object;

/// The namespaces that every cluster has.
const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// Under which name the server writes its own objects.
const MANAGER: &str = "kube-apiserver";

impl Registry {
    /// Creates what every cluster has.
    pub(super) fn bootstrap(&self) {
        for name in NAMESPACES {
            self.create_own("", "namespaces", "", json!({"metadata": {"name": name}}));
        }
        let service = json!({
            "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"type": "ClusterIP", "clusterIP": "10.96.0.1",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]},
        });
        self.create_own("", "services", "default", service);
    }

    /// Gives a new namespace its default service account and the certificate of the server.
    pub(super) fn furnish(&self, resource: &Resource, name: &str) {
        if !is_namespace(resource) {
            return;
        }
        self.create_own("", "serviceaccounts", name, json!({"metadata": {"name": "default"}}));
        let annotation = "Contains a CA bundle that can be used to verify the kube-apiserver.";
        let root_ca = json!({
            "metadata": {"name": "kube-root-ca.crt", "annotations": {"kubernetes.io/description": annotation}},
            "data": {"ca.crt": ""},
        });
        self.create_own("", "configmaps", name, root_ca);
    }

    /// The namespace of that name.
    pub(super) fn namespace(&self, name: &str) -> Option<Object> {
        let storage = StorageId { group: "".into(), plural: "namespaces".into() };
        self.store.get(&storage, "", name)
    }

    fn create_own(&self, group: &str, plural: &str, namespace: &str, object: Value) {
        let Some(served) = self.catalog().find(group, "v1", plural).cloned() else { return };
        let target =
            Target { served, namespace: namespace.to_owned(), name: String::new(), subresource: String::new() };
        let document = Document { value: object, duplicates: Vec::new() };
        if let Err(status) = self.create(&target, document, &mut Write::internal(MANAGER)) {
            // Somebody may have been faster, or the namespace may be on its way out already.
            tracing::debug!(%status, "one of the server's own objects wasn't created");
        }
    }
}
