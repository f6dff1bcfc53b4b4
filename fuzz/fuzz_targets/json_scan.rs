//! JSON that's split, read in part, cut and checked without decoding it: each answer is held against `serde_json`.

#![no_main]

use informant_cache::fuzzing;
use k8s_openapi::Resource;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Pod, Secret, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::serde::de::DeserializeOwned;
use libfuzzer_sys::fuzz_target;

fn check<T: Resource + DeserializeOwned>(text: &[u8]) {
    if fuzzing::is_sure(T::API_VERSION, T::KIND, text) {
        let object: Result<T, _> = serde_json::from_slice(text);
        assert!(object.is_ok(), "{}: {}", T::KIND, object.err().map(|error| error.to_string()).unwrap_or_default());
    }
}

fuzz_target!(|data: &[u8]| {
    fuzzing::json_scan(data);
    check::<Pod>(data);
    check::<Deployment>(data);
    check::<StatefulSet>(data);
    check::<Node>(data);
    check::<Event>(data);
    check::<ConfigMap>(data);
    check::<Secret>(data);
    check::<Service>(data);
    check::<CustomResourceDefinition>(data);
});
