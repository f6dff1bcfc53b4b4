//! Built-in kinds travel as protobuf, and what a cache holds of them is what the server says in JSON.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, header};
use informant_apiserver::ApiServer;
use informant_cache::{Lister, ListerWatcher, RequestError};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::client::Body;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{builder, client, server};

/// Asks a server, and notes in what form it answers.
#[derive(Clone)]
struct Noting {
    client: kube::Client,
    forms: Arc<Mutex<Vec<String>>>,
}

impl ListerWatcher for Noting {
    fn request(&self, request: Request<()>) -> BoxFuture<'_, Result<Response<Body>, RequestError>> {
        async move {
            let answer = ListerWatcher::request(&self.client, request).await?;
            let form = answer.headers().get(header::CONTENT_TYPE).map(|form| form.to_str().unwrap().to_owned());
            self.forms.lock().unwrap().push(form.unwrap_or_default());
            Ok(answer)
        }
        .boxed()
    }
}

fn value(object: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    value["metadata"].as_object_mut().unwrap().remove("managedFields");
    value
}

fn held<K: Serialize + Send + Sync + 'static>(lister: &Lister<K>) -> Vec<Value> {
    lister.list().iter().map(|object| value(&**object)).collect()
}

/// Informers of both forms, and of both ways to get the present state, hold what a list in JSON says: what's there at
/// their start, what's added later, and nothing of what's deleted.
async fn assert_alike<K>(server: &ApiServer, api: Api<K>, objects: [Value; 2])
where
    K: kube::Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    let create = async |object: &Value| {
        let object: K = serde_json::from_value(object.clone()).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap()
    };
    let [first, second] = objects;
    create(&first).await;
    let source = Noting { client: client(server), forms: Arc::default() };
    let cancel = CancellationToken::new();
    for stream in [false, true] {
        let factory = builder(server).watch_list(stream).build();
        let full = factory.informer::<K>().from(source.clone()).full();
        let packed = factory.informer::<K>().from(source.clone()).packed();
        let json = factory.informer::<K>().json().full();
        factory.start(&cancel).unwrap();
        factory.wait_for_cache_sync(&cancel).await.unwrap();
        let later = create(&second).await;
        for there in [true, false] {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let listed = Api::<K>::all(client(server)).list(&ListParams::default()).await.unwrap().items;
            let names: Vec<_> = listed.iter().map(|object| object.meta().name.clone()).collect();
            assert_eq!(names.contains(&later.meta().name), there, "{names:?}");
            for lister in [full.lister(), packed.lister(), json.lister()] {
                for object in &listed {
                    let uid = object.meta().uid.as_deref().unwrap();
                    let found = held(&lister).into_iter().find(|held| held["metadata"]["uid"] == uid);
                    assert_eq!(found.unwrap_or_default(), value(object), "stream: {stream}");
                }
                assert_eq!(lister.len(), listed.len());
            }
            let name = later.meta().name.as_deref().unwrap();
            if there {
                api.delete(name, &DeleteParams::default().grace_period(0)).await.unwrap();
            }
        }
        factory.shutdown().await;
    }
    let forms = source.forms.lock().unwrap().clone();
    assert!(forms.len() >= 6, "{forms:?}");
    for form in forms {
        assert!(form.starts_with("application/vnd.kubernetes.protobuf"), "{form}");
    }
}

fn named(name: &str, rest: Value) -> Value {
    let metadata =
        json!({"name": name, "labels": {"app": name, "empty": ""}, "annotations": {"note": "é \u{1f980} \"quoted\""}});
    let mut object = json!({ "metadata": metadata });
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    object
}

fn pod_spec() -> Value {
    json!({
        "nodeName": "n1",
        "hostNetwork": true,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": false,
        "containers": [{
            "name": "main", "image": "example.org/main:1", "args": ["a", ""],
            "env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "ports": [{"name": "http", "containerPort": 80}],
            "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "0"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "initialDelaySeconds": 3},
            "readinessProbe": {"tcpSocket": {"port": 80}},
        }],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c", "defaultMode": 420, "optional": false}}],
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 300}],
    })
}

#[tokio::test(start_paused = true)]
async fn what_comes_as_protobuf_is_what_json_says() {
    let server = server();
    let client = client(&server);
    let node = |name: &str| named(name, json!({"spec": {"podCIDR": "10.0.0.0/24", "unschedulable": true}}));
    assert_alike::<Node>(&server, Api::all(client.clone()), [node("n1"), node("n2")]).await;
    let pod = |name: &str| named(name, json!({ "spec": pod_spec() }));
    assert_alike::<Pod>(&server, Api::default_namespaced(client.clone()), [pod("a"), pod("b")]).await;
    let config_map =
        |name: &str| named(name, json!({"data": {"a": "", "b": "é"}, "binaryData": {"c": "AAEC"}, "immutable": false}));
    assert_alike::<ConfigMap>(&server, Api::namespaced(client.clone(), "default"), [config_map("a"), config_map("b")])
        .await;
    let secret = |name: &str| named(name, json!({"data": {"password": "aHVudGVyMg==", "empty": ""}, "type": "Opaque"}));
    assert_alike::<Secret>(&server, Api::default_namespaced(client.clone()), [secret("a"), secret("b")]).await;
    let service = |name: &str| {
        named(
            name,
            json!({"spec": {"selector": {"app": "a"}, "ports": [{"name": "w", "port": 80, "targetPort": "http"}, {"name": "x", "port": 81, "targetPort": 8081}]}}),
        )
    };
    assert_alike::<Service>(&server, Api::default_namespaced(client.clone()), [service("a"), service("b")]).await;
    let deployment = |name: &str| {
        let template = json!({"metadata": {"labels": {"app": name}}, "spec": pod_spec()});
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}});
        named(
            name,
            json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template, "strategy": rolling}}),
        )
    };
    assert_alike::<Deployment>(&server, Api::default_namespaced(client.clone()), [deployment("a"), deployment("b")])
        .await;
    let definition = |plural: &str| {
        let schema = json!({"type": "object", "properties": {
            "size": {"type": "integer", "minimum": 1.5, "default": 2, "enum": [2, 3]},
            "any": {"type": "object", "additionalProperties": true},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "true"}]}},
        }});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        let kind = format!("Kind{plural}");
        json!({
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {"group": "example.com", "scope": "Namespaced", "versions": [version], "names": {"plural": plural, "kind": kind}},
        })
    };
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    assert_alike(&server, definitions, [definition("ones"), definition("twos")]).await;
}
