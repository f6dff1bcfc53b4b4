//! The same tests, all of them, with objects kept in the other forms.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use informant_cache::{DecodeError, Document, Full, Held, InformerBuilder, Projection, Representation, SharedInformer};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Where the form is named in which this run of the tests keeps objects; `full` if it isn't.
const FORM: &str = "INFORMANT_TEST_FORM";

/// The last call of an informer's set-up, in the form that this run is about.
pub(crate) trait InForm<K: 'static> {
    fn kept(self) -> SharedInformer<K>;
}

impl<K> InForm<K> for InformerBuilder<K>
where
    K: kube::Resource + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    fn kept(self) -> SharedInformer<K> {
        match std::env::var(FORM).as_deref() {
            Ok("packed") => self.packed(),
            Ok("raw") => self.raw(),
            Ok("projected") if TypeId::of::<K>() == TypeId::of::<ConfigMap>() => self.held_as(ByProjection),
            Err(_) | Ok("full" | "projected") => self.full(),
            Ok(other) => panic!("{FORM} is {other:?}"),
        }
    }
}

/// A ConfigMap by its paths.
#[derive(Projection)]
#[projection(api_version = "v1", kind = "ConfigMap")]
struct View {
    #[projection(path = "metadata")]
    metadata: ObjectMeta,
    #[projection(path = "data")]
    data: Option<BTreeMap<String, String>>,
    #[projection(path = "binaryData")]
    binary_data: Option<BTreeMap<String, ByteString>>,
    #[projection(path = "immutable")]
    immutable: Option<bool>,
}

/// Keeps ConfigMaps that are put together of what a projection reads.
struct ByProjection;

impl<K: Send + Sync + 'static> Representation<K> for ByProjection {
    fn hold(&self, document: &Document<'_>) -> Result<Held<K>, DecodeError> {
        let View { mut metadata, data, binary_data, immutable } = document.project()?;
        metadata.managed_fields = None;
        let object: Arc<dyn Any + Send + Sync> = Arc::new(ConfigMap { metadata, data, binary_data, immutable });
        object.downcast().map(Held::Full).map_err(|_| DecodeError::new("only ConfigMaps are read so"))
    }

    fn accept(&self) -> &'static str {
        Full::<ConfigMap>::new(&ApiResource::erase::<ConfigMap>(&())).accept()
    }

    fn takes_protobuf(&self) -> bool {
        true
    }
}

/// Runs this very program again, with another form; what fails there shows its output here.
fn run(form: &str) {
    if std::env::var_os(FORM).is_some() {
        // That's the other run.
        return;
    }
    let program = std::env::current_exe().expect("the program's path");
    let output = Command::new(program).arg("--quiet").env(FORM, form).output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", text);
    let passed = text.split(" passed").next().and_then(|text| text.rsplit(' ').next()).map(str::parse::<u32>);
    assert!(matches!(passed, Some(Ok(100..))), "{text}");
}

#[test]
fn all_of_it_holds_for_packed_objects() {
    run("packed");
}

#[test]
fn all_of_it_holds_for_raw_objects() {
    run("raw");
}

#[test]
fn all_of_it_holds_for_projected_objects() {
    run("projected");
}
