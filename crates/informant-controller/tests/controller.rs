//! Controllers on the embedded API server, in process and under paused time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use informant_apiserver::ApiServer;
use informant_cache::{InformerFactory, Lister, ObjectKey, Projection};
use informant_controller::{
    Action, Controller, ControllerPhase, Manager, ManagerError, ManagerHandle, Predicate, ReconcileError, Request,
    add_finalizer, finalizer_patch, has_finalizer, remove_finalizer, set_controller_reference, set_owner_reference,
};
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Resource,
    api::{ApiResource, DeleteParams, Patch, PatchParams, PostParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "myapp.example.com", version = "v1", kind = "MyApp", namespaced, status = "MyAppStatus")]
struct MyAppSpec {
    image: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct MyAppStatus {
    ready: bool,
}

// === Support ===

/// What was reconciled, in order, and whether the object was there.
type Log = Arc<Mutex<Vec<String>>>;

fn client() -> Client {
    Client::new(ApiServer::builder().seed(1).build().service(), "default")
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Time enough for every event to arrive everywhere.
async fn settle() {
    sleep(ms(200)).await;
}

fn take(log: &Log) -> Vec<String> {
    let mut taken = std::mem::take(&mut *log.lock().unwrap());
    taken.sort();
    taken
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn named<K: Resource + Default>(name: &str) -> K {
    let mut object = K::default();
    object.meta_mut().name = Some(name.into());
    object
}

fn config(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

fn secrets(client: &Client) -> Api<Secret> {
    Api::default_namespaced(client.clone())
}

async fn create<K>(api: &Api<K>, object: K) -> K
where
    K: Resource + Clone + std::fmt::Debug + Serialize + serde::de::DeserializeOwned,
{
    api.create(&PostParams::default(), &object).await.unwrap()
}

async fn label<K>(api: &Api<K>, name: &str, value: &str)
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "app": value } } }));
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// A controller function that notes the key, and `(gone)` if the lister has no such object.
async fn note<K>((log, lister): (Log, Lister<K>), request: Request) -> Result<Action, ReconcileError> {
    let gone = if lister.contains(&request.key) { "" } else { " (gone)" };
    log.lock().unwrap().push(format!("{}{gone}", request.key));
    Ok(Action::done())
}

struct Running {
    handle: ManagerHandle,
    cancel: CancellationToken,
    tasks: JoinSet<Result<(), ManagerError>>,
}

impl Running {
    /// Starts a manager and waits until it has done all that there is to do.
    async fn start(manager: Manager) -> Self {
        let (handle, cancel, mut tasks) = (manager.handle(), CancellationToken::new(), JoinSet::new());
        tasks.spawn(manager.run(cancel.clone()));
        settle().await;
        Self { handle, cancel, tasks }
    }

    async fn end(&mut self) -> Result<(), ManagerError> {
        self.tasks.join_next().await.unwrap().unwrap()
    }

    async fn stop(mut self) {
        self.cancel.cancel();
        self.end().await.unwrap();
    }
}

/// A manager with a controller of ConfigMaps that notes what it's asked.
fn noting(client: &Client, log: &Log, build: impl FnOnce(Builder) -> Builder) -> Manager {
    let manager = Manager::new(client.clone());
    let lister = manager.informer::<ConfigMap>().lister();
    let controller = build(Controller::of::<ConfigMap>("configs")).reconcile((Arc::clone(log), lister), note);
    manager.controller(controller)
}

type Builder = informant_controller::ControllerBuilder<ConfigMap>;

/// Every namespace that a server has at its start.
async fn only_default(client: &Client) {
    // Some servers put a ConfigMap into each namespace; these tests speak of `default` alone.
    for object in Api::<ConfigMap>::all(client.clone()).list(&Default::default()).await.unwrap() {
        let namespace = object.metadata.namespace.unwrap();
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        api.delete(&object.metadata.name.unwrap(), &DeleteParams::default()).await.unwrap();
    }
}

// === For, owns, watches ===

#[tokio::test(start_paused = true)]
async fn each_object_is_reconciled_at_the_start_and_after_each_change_and_its_end() {
    let client = client();
    only_default(&client).await;
    create(&config(&client), named("one")).await;
    create(&config(&client), named("two")).await;
    let log = Log::default();
    let running = Running::start(noting(&client, &log, |controller| controller)).await;
    assert_eq!(take(&log), ["default/one", "default/two"]);
    create(&config(&client), named("three")).await;
    settle().await;
    assert_eq!(take(&log), ["default/three"]);
    label(&config(&client), "one", "x").await;
    settle().await;
    assert_eq!(take(&log), ["default/one"]);
    config(&client).delete("two", &DeleteParams::default()).await.unwrap();
    settle().await;
    assert_eq!(take(&log), ["default/two (gone)"]);
    running.stop().await;
}

/// What every operator lives on: whoever deletes a child gets it back.
#[tokio::test(start_paused = true)]
async fn a_deleted_child_is_created_again() {
    let client = client();
    create(&config(&client), named("parent")).await;
    let manager = Manager::new(client.clone());
    let lister = manager.informer::<ConfigMap>().lister();
    let reconcile = |(client, lister): (Client, Lister<ConfigMap>), request: Request| async move {
        let Some(parent) = lister.get(&request.key) else { return Ok(Action::done()) };
        let mut child: Secret = named("child");
        set_controller_reference(parent.as_ref(), &mut child)?;
        match secrets(&client).create(&PostParams::default(), &child).await {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Action::done()),
            created => created.map(|_| Action::done()).map_err(ReconcileError::from),
        }
    };
    let controller = Controller::of::<ConfigMap>("parents")
        .with_predicate(Predicate::object(|config: &ConfigMap| config.metadata.name.as_deref() == Some("parent")))
        .owns::<Secret>()
        .reconcile((client.clone(), lister), reconcile);
    let running = Running::start(manager.controller(controller)).await;
    let first = secrets(&client).get("child").await.unwrap();
    secrets(&client).delete("child", &DeleteParams::default()).await.unwrap();
    settle().await;
    let second = secrets(&client).get("child").await.unwrap();
    assert_ne!(first.metadata.uid, second.metadata.uid);
    running.stop().await;
}

/// controller-runtime fact 91.
#[tokio::test(start_paused = true)]
async fn an_owner_is_found_by_group_and_kind_whatever_its_version_if_it_is_the_controller() {
    let client = client();
    only_default(&client).await;
    let owner = create(&config(&client), named("owner")).await;
    let log = Log::default();
    let running = Running::start(noting(&client, &log, |controller| controller.owns::<Secret>())).await;
    take(&log);

    let mut other_version: Secret = named("other-version");
    set_controller_reference(&owner, &mut other_version).unwrap();
    other_version.metadata.owner_references.as_mut().unwrap()[0].api_version = "v1beta7".into();
    create(&secrets(&client), other_version).await;
    settle().await;
    assert_eq!(take(&log), ["default/owner"]);

    let mut other_group: Secret = named("other-group");
    set_controller_reference(&owner, &mut other_group).unwrap();
    other_group.metadata.owner_references.as_mut().unwrap()[0].api_version = "example.com/v1".into();
    create(&secrets(&client), other_group).await;
    let mut plain: Secret = named("plain");
    set_owner_reference(&owner, &mut plain).unwrap();
    create(&secrets(&client), plain).await;
    settle().await;
    assert_eq!(take(&log), [""; 0]);
    running.stop().await;
}

/// controller-runtime fact 91.
#[tokio::test(start_paused = true)]
async fn a_child_that_changes_hands_concerns_both_owners() {
    let client = client();
    only_default(&client).await;
    let one = create(&config(&client), named("one")).await;
    let two = create(&config(&client), named("two")).await;
    let mut child: Secret = named("child");
    set_controller_reference(&one, &mut child).unwrap();
    let mut child = create(&secrets(&client), child).await;
    let log = Log::default();
    let running = Running::start(noting(&client, &log, |controller| controller.owns::<Secret>())).await;
    assert_eq!(take(&log), ["default/one", "default/two"]);
    child.metadata.owner_references = None;
    set_controller_reference(&two, &mut child).unwrap();
    secrets(&client).replace("child", &PostParams::default(), &child).await.unwrap();
    settle().await;
    assert_eq!(take(&log), ["default/one", "default/two"]);
    running.stop().await;
}

/// controller-runtime fact 91.
#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_owner_is_found_without_a_namespace() {
    let client = client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let owner = namespaces.get("default").await.unwrap();
    let log = Log::default();
    let manager = Manager::new(client.clone());
    let lister = manager.informer::<Namespace>().lister();
    let controller = Controller::of::<Namespace>("namespaces").owns::<ConfigMap>();
    let running =
        Running::start(manager.controller(controller.reconcile((Arc::clone(&log), lister), note::<Namespace>))).await;
    take(&log);
    let mut child: ConfigMap = named("child");
    set_controller_reference(&owner, &mut child).unwrap();
    create(&config(&client), child).await;
    settle().await;
    assert_eq!(take(&log), ["default"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_controller_may_keep_projections_of_its_objects_and_of_what_they_own() {
    #[derive(Projection)]
    #[projection(api_version = "v1", kind = "ConfigMap")]
    struct Parent {}
    #[derive(Projection)]
    #[projection(api_version = "v1", kind = "Secret")]
    struct Child {
        #[projection(path = "metadata.ownerReferences")]
        owners: Vec<OwnerReference>,
    }
    #[derive(Projection)]
    #[projection(api_version = "v1", kind = "ServiceAccount")]
    struct Account {
        #[projection(path = "metadata.labels[\"app\"]")]
        app: Option<String>,
    }
    let client = client();
    only_default(&client).await;
    let owner = create(&config(&client), named("owner")).await;
    let log = Log::default();
    let manager = Manager::new(client.clone());
    let lister = manager.factory().projection::<Parent>().projected().lister();
    let controller = Controller::of_projection::<Parent>("parents")
        .owns_projection::<Child>()
        .watches_projection(|account: &Account| account.app.iter().map(|name| key(name)).collect())
        .reconcile((Arc::clone(&log), lister), note::<Parent>);
    let running = Running::start(manager.controller(controller)).await;
    assert_eq!(take(&log), ["default/owner"]);
    let mut child: Secret = named("child");
    set_controller_reference(&owner, &mut child).unwrap();
    create(&secrets(&client), child).await;
    settle().await;
    assert_eq!(take(&log), ["default/owner"]);
    let mut account: ServiceAccount = named("mine");
    account.metadata.labels = Some(BTreeMap::from([("app".to_owned(), "other".to_owned())]));
    create(&Api::default_namespaced(client.clone()), account).await;
    settle().await;
    assert_eq!(take(&log), ["default/other (gone)"]);
    running.stop().await;
}

/// controller-runtime fact 90.
#[tokio::test(start_paused = true)]
async fn a_mapping_is_asked_for_the_old_and_the_new_state_and_no_key_comes_twice() {
    let client = client();
    only_default(&client).await;
    let log = Log::default();
    let map = |account: &ServiceAccount| {
        let label = account.metadata.labels.as_ref().and_then(|labels| labels.get("app"));
        let mut keys = vec![key("always"), key("always")];
        keys.extend(label.map(|name| key(name)));
        keys
    };
    let watched = |controller: Builder| {
        let mine = Predicate::object(|account: &ServiceAccount| account.metadata.name.as_deref() == Some("mine"));
        controller.watches_if::<ServiceAccount>(mine, map)
    };
    let running = Running::start(noting(&client, &log, watched)).await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    let mut account: ServiceAccount = named("mine");
    account.metadata.labels = Some(BTreeMap::from([("app".into(), "old".into())]));
    create(&accounts, account).await;
    settle().await;
    assert_eq!(take(&log), ["default/always (gone)", "default/old (gone)"]);
    label(&accounts, "mine", "new").await;
    settle().await;
    assert_eq!(take(&log), ["default/always (gone)", "default/new (gone)", "default/old (gone)"]);
    running.stop().await;
}

/// controller-runtime fact 35.
#[tokio::test(start_paused = true)]
async fn nothing_is_reconciled_before_every_source_has_handed_over_its_whole_initial_state() {
    let client = client();
    let owner = create(&config(&client), named("owner")).await;
    for number in 0..50 {
        let mut child: Secret = named(&format!("child-{number}"));
        set_controller_reference(&owner, &mut child).unwrap();
        create(&secrets(&client), child).await;
    }
    let manager = Manager::new(client.clone());
    let (children, seen) = (manager.informer::<Secret>().lister(), Arc::new(Mutex::new(Vec::new())));
    let context = (children, Arc::clone(&seen));
    let reconcile = |(children, seen): (Lister<Secret>, Arc<Mutex<Vec<usize>>>), _request: Request| async move {
        seen.lock().unwrap().push(children.namespace("default").list().len());
        Ok::<_, ReconcileError>(Action::done())
    };
    let controller = Controller::of::<ConfigMap>("configs").owns::<Secret>().reconcile(context, reconcile);
    let running = Running::start(manager.controller(controller)).await;
    let seen = seen.lock().unwrap().clone();
    assert!(!seen.is_empty() && seen.iter().all(|children| *children == 50), "{seen:?}");
    running.stop().await;
}

// === Predicates ===

/// controller-runtime fact 94.
#[tokio::test(start_paused = true)]
async fn predicates_keep_updates_out_and_let_adds_and_deletes_in() {
    let client = client();
    only_default(&client).await;
    let log = Log::default();
    let labels = |controller: Builder| controller.with_predicate(Predicate::labels_changed());
    let running = Running::start(noting(&client, &log, labels)).await;
    create(&config(&client), named("one")).await;
    settle().await;
    assert_eq!(take(&log), ["default/one"]);
    let data = Patch::Merge(json!({ "data": { "a": "b" } }));
    config(&client).patch("one", &PatchParams::default(), &data).await.unwrap();
    settle().await;
    assert_eq!(take(&log), [""; 0]);
    label(&config(&client), "one", "x").await;
    settle().await;
    assert_eq!(take(&log), ["default/one"]);
    config(&client).delete("one", &DeleteParams::default()).await.unwrap();
    settle().await;
    assert_eq!(take(&log), ["default/one (gone)"]);
    running.stop().await;
}

/// controller-runtime fact 94, and how predicates are put together.
#[tokio::test(start_paused = true)]
async fn predicates_by_kind_of_event() {
    let client = client();
    only_default(&client).await;
    let factory = InformerFactory::new(client.clone());
    let mut events = factory.informer::<ConfigMap>().full().subscribe();
    factory.start(&CancellationToken::new()).unwrap();
    assert!(events.wait_initial().await.unwrap().is_empty());
    let mut next = async || tokio::time::timeout(ms(1000), events.next()).await.unwrap().unwrap();
    create(&config(&client), named("one")).await;
    let added = next().await;
    label(&config(&client), "one", "x").await;
    let relabelled = next().await;
    let notes = Patch::Merge(json!({ "metadata": { "annotations": { "note": "n" } } }));
    config(&client).patch("one", &PatchParams::default(), &notes).await.unwrap();
    let annotated = next().await;
    let finalizer = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    config(&client).patch("one", &PatchParams::default(), &finalizer).await.unwrap();
    let held = next().await;
    config(&client).delete("one", &DeleteParams::default()).await.unwrap();
    let deleting = next().await;
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    config(&client).patch("one", &PatchParams::default(), &release).await.unwrap();
    let deleted = next().await;
    factory.shutdown().await;

    let events = [added, relabelled, annotated, held, deleting, deleted];
    let passed = |predicate: Predicate<ConfigMap>| events.each_ref().map(|event| u8::from(predicate.passes(event)));
    assert_eq!(passed(Predicate::labels_changed()), [1, 1, 0, 0, 0, 1]);
    assert_eq!(passed(Predicate::label_changed("app")), [1, 1, 0, 0, 0, 1]);
    assert_eq!(passed(Predicate::label_changed("other")), [1, 0, 0, 0, 0, 1]);
    assert_eq!(passed(Predicate::annotations_changed()), [1, 0, 1, 0, 0, 1]);
    assert_eq!(passed(Predicate::annotation_changed("note")), [1, 0, 1, 0, 0, 1]);
    assert_eq!(passed(Predicate::resource_version_changed()), [1, 1, 1, 1, 1, 1]);
    assert_eq!(passed(Predicate::deletion_began()), [1, 0, 0, 0, 1, 1]);
    assert_eq!(passed(Predicate::labels_changed().or(Predicate::annotations_changed())), [1, 1, 1, 0, 0, 1]);
    assert_eq!(passed(Predicate::labels_changed().and(Predicate::annotations_changed())), [1, 0, 0, 0, 0, 1]);
    assert_eq!(passed(Predicate::labels_changed().not()), [0, 0, 1, 1, 1, 0]);
    assert_eq!(
        passed(Predicate::object(|config: &ConfigMap| config.metadata.annotations.is_some())),
        [0, 0, 1, 1, 1, 1]
    );
}

async fn install_crd(client: &Client) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    create(&crds, MyApp::crd()).await;
    settle().await;
}

fn my_app(name: &str) -> MyApp {
    MyApp::new(name, MyAppSpec { image: "nginx".into() })
}

#[tokio::test(start_paused = true)]
async fn generation_changed_passes_spec_changes_and_not_status_changes() {
    let client = client();
    install_crd(&client).await;
    let apps: Api<MyApp> = Api::default_namespaced(client.clone());
    create(&apps, my_app("web")).await;
    let log = Log::default();
    let manager = Manager::new(client.clone());
    let context = (Arc::clone(&log), manager.informer::<MyApp>().lister());
    let controller = Controller::of::<MyApp>("myapp").with_predicate(Predicate::generation_changed());
    let running = Running::start(manager.controller(controller.reconcile(context, note::<MyApp>))).await;
    take(&log);
    let status = Patch::Merge(json!({ "status": { "ready": true } }));
    apps.patch_status("web", &PatchParams::default(), &status).await.unwrap();
    settle().await;
    assert_eq!(take(&log), [""; 0]);
    let spec = Patch::Merge(json!({ "spec": { "image": "apache" } }));
    apps.patch("web", &PatchParams::default(), &spec).await.unwrap();
    settle().await;
    assert_eq!(take(&log), ["default/web"]);
    running.stop().await;
}

// === Missing kinds, timeouts, names ===

#[tokio::test(start_paused = true)]
async fn a_controller_of_a_missing_kind_waits_holds_up_no_other_and_starts_when_the_kind_comes() {
    let client = client();
    only_default(&client).await;
    create(&config(&client), named("here")).await;
    let log = Log::default();
    let manager = noting(&client, &log, |controller| controller);
    let context = (Arc::clone(&log), manager.informer::<MyApp>().lister());
    let manager = manager.controller(Controller::of::<MyApp>("myapp").reconcile(context, note::<MyApp>));
    let running = Running::start(manager).await;
    assert_eq!(take(&log), ["default/here"]);
    let status = running.handle.status().unwrap();
    assert!(!status.ready);
    let reason = &status.failing_checks["informer-sync"];
    assert!(reason.starts_with("not synced: myapps.myapp.example.com/v1 (no such kind since "), "{reason}");
    assert_eq!(status.controllers[0].phase, ControllerPhase::Running);
    assert_eq!(status.controllers[1].phase, ControllerPhase::Syncing);

    install_crd(&client).await;
    create(&Api::default_namespaced(client.clone()), my_app("web")).await;
    sleep(Duration::from_secs(120)).await;
    assert_eq!(take(&log), ["default/web"]);
    assert!(running.handle.status().unwrap().ready);
    running.stop().await;
}

/// controller-runtime fact 33.
#[tokio::test(start_paused = true)]
async fn a_sync_that_takes_longer_than_allowed_ends_the_manager_and_names_the_informer() {
    let client = client();
    let manager = Manager::new(client.clone());
    let controller = Controller::of::<MyApp>("myapp").sync_timeout(ms(1000));
    let controller = controller.reconcile((), |(), _| async { Ok::<_, ReconcileError>(Action::done()) });
    let start = Instant::now();
    let error = manager.controller(controller).run(CancellationToken::new()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "controller \"myapp\" failed: not synced within 1s: myapps.myapp.example.com/v1; see the informer's state for the reason"
    );
    assert!(start.elapsed() < ms(1100), "{:?}", start.elapsed());
}

/// controller-runtime fact 33.
#[tokio::test(start_paused = true)]
async fn a_stop_while_waiting_for_the_sync_is_no_error() {
    let manager = Manager::new(client());
    let controller = Controller::of::<MyApp>("myapp").sync_timeout(Duration::from_secs(60));
    let controller = controller.reconcile((), |(), _| async { Ok::<_, ReconcileError>(Action::done()) });
    let running = Running::start(manager.controller(controller)).await;
    assert!(!running.handle.status().unwrap().ready);
    running.stop().await;
}

/// controller-runtime fact 28.
#[tokio::test(start_paused = true)]
async fn two_controllers_of_one_name_are_refused() {
    let client = client();
    let log = Log::default();
    let manager = noting(&client, &log, |controller| controller);
    let context = (Arc::clone(&log), manager.informer::<Secret>().lister());
    let manager = manager.controller(Controller::of::<Secret>("configs").reconcile(context, note::<Secret>));
    let error = manager.run(CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "two controllers are named \"configs\"; give each a name of its own");
}

// === Start and stop ===

/// controller-runtime fact 3, and the way back.
#[tokio::test(start_paused = true)]
async fn a_running_reconcile_can_read_and_write_until_its_end_and_runnables_start_with_synced_caches() {
    let client = client();
    create(&config(&client), named("one")).await;
    let manager = Manager::new(client.clone());
    let lister = manager.informer::<ConfigMap>().lister();
    let log = Log::default();
    let context = (client.clone(), lister.clone(), Arc::clone(&log));
    let reconcile = |(client, lister, log): (Client, Lister<ConfigMap>, Log), request: Request| async move {
        if request.key != key("one") {
            return Ok(Action::done());
        }
        sleep(Duration::from_secs(5)).await;
        create(&config(&client), named("late")).await;
        sleep(ms(100)).await;
        log.lock().unwrap().push(format!("late is in the cache: {}", lister.contains(&key("late"))));
        Ok::<_, ReconcileError>(Action::done())
    };
    let started = Arc::clone(&log);
    let manager = manager.controller(Controller::of::<ConfigMap>("configs").reconcile(context, reconcile)).runnable(
        "observer",
        move |_stop| async move {
            started.lock().unwrap().push(format!("one is in the cache: {}", lister.contains(&key("one"))));
            Ok::<(), String>(())
        },
    );
    let running = Running::start(manager).await;
    running.stop().await;
    assert_eq!(take(&log), ["late is in the cache: true", "one is in the cache: true"]);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_beyond_the_grace_period_is_named_and_dropped() {
    let client = client();
    create(&config(&client), named("one")).await;
    let manager = Manager::new(client.clone()).grace_period(Duration::from_secs(3));
    let only = Predicate::object(|config: &ConfigMap| config.metadata.name.as_deref() == Some("one"));
    let controller = Controller::of::<ConfigMap>("configs").with_predicate(only);
    let held = Arc::new(());
    let controller = controller.reconcile(Arc::clone(&held), |held, _request: Request| async move {
        let _held = held;
        sleep(Duration::from_secs(3600)).await;
        Ok::<_, ReconcileError>(Action::done())
    });
    let mut running = Running::start(manager.controller(controller)).await;
    running.cancel.cancel();
    let error = running.end().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "not everything ended within the grace period of 3s: still running: controller \"configs\" (at default/one)"
    );
    settle().await;
    assert_eq!(Arc::strong_count(&held), 1, "nothing of it is left");
    let status = running.handle.status().unwrap();
    assert_eq!(status.controllers[0].phase, ControllerPhase::Stopped);
    assert!(status.controllers[0].reconciling.is_empty());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_at_any_moment_ends_every_task() {
    for micros in [0, 1, 10, 100, 1000, 5_000, 50_000, 500_000] {
        let server = ApiServer::builder().seed(1).build();
        let client = Client::new(server.service(), "default");
        create(&config(&client), named("one")).await;
        let held = Arc::new(());
        let manager = Manager::new(client.clone());
        let controller = Controller::of::<ConfigMap>("configs").owns::<Secret>();
        let controller = controller.reconcile(Arc::clone(&held), |held, _request: Request| async move {
            let _held = held;
            sleep(ms(20)).await;
            Ok::<_, ReconcileError>(Action::requeue_after(ms(1)))
        });
        let run = manager.controller(controller).run(CancellationToken::new());
        assert!(tokio::time::timeout(Duration::from_micros(micros), run).await.is_err());
        settle().await;
        assert_eq!(Arc::strong_count(&held), 1, "after {micros} us something still runs");
        assert_eq!(server.watchers(), 0, "after {micros} us a watch is still open");
    }
}

/// The same with real threads, which come in between at other places.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_several_threads_too_every_end_leaves_nothing_behind() {
    let server = ApiServer::builder().seed(1).build();
    let client = Client::new(server.service(), "default");
    for number in 0..20 {
        create(&config(&client), named(&format!("config-{number}"))).await;
    }
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..24 {
        let held = Arc::new(());
        let controller = Controller::of::<ConfigMap>("configs").owns::<Secret>().workers(4);
        let controller = controller.reconcile(Arc::clone(&held), |held, request: Request| async move {
            let _held = held;
            tokio::task::yield_now().await;
            assert!(request.attempt > 0, "every key panics once");
            Ok::<_, ReconcileError>(Action::requeue_after(ms(1)))
        });
        let cancel = CancellationToken::new();
        let run = Manager::new(client.clone()).controller(controller).run(cancel.clone());
        let time = Duration::from_micros(random.u64(..30_000));
        if round % 2 == 0 {
            assert!(tokio::time::timeout(time, run).await.is_err());
        } else {
            let later = async {
                sleep(time).await;
                cancel.cancel();
            };
            let (result, ()) = tokio::join!(run, later);
            result.unwrap();
        }
        for _ in 0..500 {
            if Arc::strong_count(&held) == 1 && server.watchers() == 0 {
                break;
            }
            sleep(ms(10)).await;
        }
        assert_eq!((Arc::strong_count(&held), server.watchers()), (1, 0), "round {round}, after {time:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_run_at_any_moment_ends_it_without_an_error() {
    for micros in [0, 1, 10, 100, 1000, 5_000, 50_000, 500_000] {
        let server = ApiServer::builder().seed(1).build();
        let client = Client::new(server.service(), "default");
        create(&config(&client), named("one")).await;
        let log = Log::default();
        let manager = noting(&client, &log, |controller| controller.owns::<Secret>().workers(3));
        let cancel = CancellationToken::new();
        let later = async {
            sleep(Duration::from_micros(micros)).await;
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(manager.run(cancel.clone()), later);
        result.unwrap_or_else(|error| panic!("after {micros} us: {error}"));
        settle().await;
        assert_eq!(server.watchers(), 0, "after {micros} us a watch is still open");
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_runs_without_a_manager_and_takes_its_handlers_with_it() {
    let client = client();
    only_default(&client).await;
    create(&config(&client), named("one")).await;
    let factory = InformerFactory::new(client.clone());
    let informer = factory.informer::<ConfigMap>().full();
    let log = Log::default();
    let controller = Controller::of::<ConfigMap>("configs").reconcile((Arc::clone(&log), informer.lister()), note);
    let trigger = controller.trigger();
    let cancel = CancellationToken::new();
    let later = async {
        settle().await;
        assert_eq!(take(&log), ["default/one"]);
        assert_eq!(informer.status().handlers.len(), 1);
        assert!(trigger.reconcile(key("from-outside")).is_accepted());
        settle().await;
        assert_eq!(take(&log), ["default/from-outside (gone)"]);
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(controller.run(&factory, cancel.clone()), later);
    result.unwrap();
    assert!(!trigger.reconcile(key("too-late")).is_accepted());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_mapping_costs_its_event_and_nothing_else() {
    let client = client();
    only_default(&client).await;
    let log = Log::default();
    let watched = |controller: Builder| {
        controller.watches::<Secret>(|secret| {
            assert_ne!(secret.metadata.name.as_deref(), Some("bad"), "the mapping's own");
            vec![key(secret.metadata.name.as_deref().unwrap_or_default())]
        })
    };
    let running = Running::start(noting(&client, &log, watched)).await;
    create(&secrets(&client), named("bad")).await;
    create(&secrets(&client), named("good")).await;
    settle().await;
    assert_eq!(take(&log), ["default/good (gone)"]);
    let status = running.handle.status().unwrap();
    let panics: u64 =
        status.informers.iter().flat_map(|informer| &informer.handlers).map(|handler| handler.panics).sum();
    assert_eq!(panics, 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_ends_beneath_a_controller_stops_the_manager_with_its_name() {
    let client = client();
    create(&config(&client), named("one")).await;
    let foreign = InformerFactory::new(client.clone());
    let watched = foreign.informer::<Secret>().full();
    foreign.start(&CancellationToken::new()).unwrap();
    let log = Log::default();
    let manager = noting(&client, &log, |controller| controller.watches_informer(&watched, |_| Vec::new()));
    let mut running = Running::start(manager).await;
    assert!(!take(&log).is_empty());
    foreign.shutdown().await;
    let error = running.end().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "controller \"configs\" failed: informer secrets/v1 ended, so the controller gets no more events"
    );
}

// === All at once ===

/// Each ConfigMap wants a Secret with its own content. Writers change and delete ConfigMaps and Secrets, reconciles fail, panic and dawdle,
/// and in the middle the server forgets its history. When everybody has calmed down, all is as it should be.
#[tokio::test(start_paused = true)]
async fn whatever_happens_the_world_ends_as_the_specs_ask() {
    for seed in 0..2 {
        storm(seed).await;
    }
}

type StormContext = (Client, Lister<ConfigMap>, Lister<Secret>, Arc<Mutex<fastrand::Rng>>);

async fn storm(seed: u64) {
    let server = ApiServer::builder().seed(seed).build();
    let client = Client::new(server.service(), "storm");
    create(&Api::<Namespace>::all(client.clone()), named("storm")).await;
    let manager = Manager::new(client.clone());
    let random = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
    let context: StormContext = (
        client.clone(),
        manager.informer::<ConfigMap>().lister(),
        manager.informer::<Secret>().lister(),
        Arc::clone(&random),
    );
    let controller = Controller::of::<ConfigMap>("storm").owns::<Secret>().workers(4).reconcile(context, mirror);
    let running = Running::start(manager.controller(controller)).await;
    let mut random = fastrand::Rng::with_seed(seed + 1000);
    for step in 0..200 {
        disturb(&client, &mut random).await;
        sleep(Duration::from_micros(random.u64(..3000))).await;
        if step == 100 {
            server.compact(server.resource_version());
        }
    }
    // Retries share ten tokens a second, so it takes a while until the last failure is mended.
    sleep(Duration::from_secs(300)).await;
    for parent in config(&client).list(&Default::default()).await.unwrap() {
        let name = parent.metadata.name.as_deref().unwrap();
        let child = secrets(&client).get(name).await.unwrap_or_else(|error| panic!("seed {seed}, {name}: {error}"));
        let wanted = parent.data.as_ref().and_then(|data| data.get("text")).cloned().unwrap_or_default();
        let found = &child.data.as_ref().unwrap()["text"].0;
        assert_eq!(String::from_utf8_lossy(found), wanted, "seed {seed}, {name}");
    }
    let status = running.handle.status().unwrap();
    let queue = status.controllers[0].queue;
    assert_eq!((queue.depth, queue.delayed), (0, 0), "seed {seed}: {:?}", status.controllers[0].last_error);
    assert!(status.controllers[0].reconciles.panics > 0 && status.controllers[0].reconciles.error > 0);
    running.stop().await;
    assert_eq!(server.watchers(), 0);
}

/// Makes the Secret of a ConfigMap as it should be, if it gets that far.
async fn mirror((client, parents, children, random): StormContext, request: Request) -> Result<Action, ReconcileError> {
    let chance = random.lock().unwrap().u8(..20);
    sleep(Duration::from_micros(u64::from(chance) * 100)).await;
    match chance {
        0 => panic!("by chance"),
        1 => return Err(ReconcileError::new("by chance")),
        2 => return Ok(Action::requeue()),
        _ => {}
    }
    if request.key.namespace() != Some("storm") {
        return Ok(Action::done());
    }
    let Some(parent) = parents.get(&request.key) else { return Ok(Action::done()) };
    let text = parent.data.as_ref().and_then(|data| data.get("text")).cloned().unwrap_or_default();
    let mut wanted: Secret = named(request.key.name());
    wanted.data = Some(BTreeMap::from([("text".to_owned(), ByteString(text.into_bytes()))]));
    set_controller_reference(parent.as_ref(), &mut wanted)?;
    match children.get(&request.key) {
        None => drop(secrets(&client).create(&PostParams::default(), &wanted).await?),
        Some(child) => {
            wanted.metadata.resource_version.clone_from(&child.metadata.resource_version);
            secrets(&client).replace(request.key.name(), &PostParams::default(), &wanted).await?;
        }
    }
    Ok(Action::done())
}

/// One random write; that it may fail is part of it.
async fn disturb(client: &Client, random: &mut fastrand::Rng) {
    let name = format!("object-{}", random.u8(..6));
    let mut parent: ConfigMap = named(&name);
    parent.data = Some(BTreeMap::from([("text".to_owned(), random.u64(..).to_string())]));
    match random.u8(..10) {
        0..=2 => drop(config(client).create(&PostParams::default(), &parent).await),
        3..=6 => drop(config(client).patch(&name, &PatchParams::default(), &Patch::Merge(&parent)).await),
        7 => drop(config(client).delete(&name, &DeleteParams::default()).await),
        _ => drop(secrets(client).delete(&name, &DeleteParams::default()).await),
    }
}

// === Finalizers ===

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_an_object_until_it_is_cleaned_up() {
    const FINALIZER: &str = "example.com/cleanup";
    let client = client();
    let manager = Manager::new(client.clone());
    let log = Log::default();
    let context = (client.clone(), manager.informer::<ConfigMap>().lister(), Arc::clone(&log));
    let reconcile = |(client, lister, log): (Client, Lister<ConfigMap>, Log), request: Request| async move {
        let Some(object) = lister.get(&request.key) else { return Ok(Action::done()) };
        let mut object = object.as_ref().clone();
        let changed = if object.metadata.deletion_timestamp.is_none() {
            add_finalizer(&mut object, FINALIZER)
        } else {
            log.lock().unwrap().push(format!("{} cleaned up", request.key));
            remove_finalizer(&mut object, FINALIZER)
        };
        if changed {
            let patch = Patch::Merge(finalizer_patch(&object));
            let api: Api<ConfigMap> = Api::namespaced(client, request.key.namespace().unwrap());
            api.patch(request.key.name(), &PatchParams::default(), &patch).await?;
        }
        Ok::<_, ReconcileError>(Action::done())
    };
    let controller = Controller::of::<ConfigMap>("configs").reconcile(context, reconcile);
    let running = Running::start(manager.controller(controller)).await;
    create(&config(&client), named("one")).await;
    settle().await;
    assert!(has_finalizer(&config(&client).get("one").await.unwrap(), FINALIZER));
    config(&client).delete("one", &DeleteParams::default()).await.unwrap();
    settle().await;
    assert!(config(&client).get_opt("one").await.unwrap().is_none());
    assert_eq!(take(&log), ["default/one cleaned up"]);
    running.stop().await;
}

// === The pages, over a real socket and in real time ===

async fn get(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Waits, in real time, until a page has what it should have.
async fn until(address: std::net::SocketAddr, path: &str, is_right: impl Fn(&str) -> bool) -> String {
    for _ in 0..500 {
        let body = get(address, path).await;
        if is_right(&body) {
            return body;
        }
        sleep(ms(20)).await;
    }
    panic!("{path} never got right: {}", get(address, path).await);
}

/// controller-runtime fact 46.
#[tokio::test]
async fn the_pages_tell_of_controllers_queues_and_informers() {
    let client = client();
    only_default(&client).await;
    for name in ["good", "panics", "stays-bad", "wants-more"] {
        create(&config(&client), named(name)).await;
    }
    let manager = Manager::new(client.clone()).serve("127.0.0.1:0");
    let reconcile = |(), request: Request| async move {
        match (request.key.name(), request.attempt) {
            ("panics", 0) => panic!("only once"),
            ("stays-bad", _) => Err(ReconcileError::terminal("no such region")),
            ("wants-more", 0) => Ok(Action::requeue()),
            ("wants-more", _) => Ok(Action::requeue_after(Duration::from_secs(3600))),
            _ => Ok(Action::done()),
        }
    };
    let controller = Controller::of::<ConfigMap>("configs").owns::<Secret>().workers(2).reconcile((), reconcile);
    let dynamic = manager.factory().dynamic(ApiResource::erase::<ConfigMap>(&())).full();
    let manager = manager.controller(controller);
    let missing =
        Controller::of::<MyApp>("myapp").reconcile((), |(), _| async { Ok::<_, ReconcileError>(Action::done()) });
    let running = Running::start(manager.controller(missing)).await;
    let address = running.handle.address().await.unwrap();

    let done = "controller_runtime_reconcile_time_seconds_count{controller=\"configs\"} 6\n";
    let metrics = until(address, "/metrics", |body| body.contains(done) && dynamic.has_synced()).await;
    for line in [
        "# TYPE controller_runtime_reconcile_total counter",
        "controller_runtime_reconcile_total{controller=\"configs\",result=\"error\"} 2",
        "controller_runtime_reconcile_total{controller=\"configs\",result=\"requeue\"} 1",
        "controller_runtime_reconcile_total{controller=\"configs\",result=\"success\"} 2",
        "controller_runtime_reconcile_total{controller=\"myapp\",result=\"success\"} 0",
        "controller_runtime_reconcile_errors_total{controller=\"configs\"} 2",
        "controller_runtime_terminal_reconcile_errors_total{controller=\"configs\"} 1",
        "controller_runtime_reconcile_panics_total{controller=\"configs\"} 1",
        "controller_runtime_reconcile_timeouts_total{controller=\"configs\"} 0",
        "# TYPE controller_runtime_reconcile_time_seconds histogram",
        "controller_runtime_reconcile_time_seconds_count{controller=\"configs\"} 6",
        "controller_runtime_reconcile_time_seconds_bucket{controller=\"configs\",le=\"+Inf\"} 6",
        "controller_runtime_max_concurrent_reconciles{controller=\"configs\"} 2",
        "controller_runtime_active_workers{controller=\"configs\"} 0",
        "workqueue_depth{name=\"configs\",controller=\"configs\"} 0",
        "workqueue_adds_total{name=\"configs\",controller=\"configs\"} 6",
        "workqueue_retries_total{name=\"configs\",controller=\"configs\"} 3",
        "workqueue_queue_duration_seconds_count{name=\"configs\",controller=\"configs\"} 6",
        "workqueue_work_duration_seconds_count{name=\"configs\",controller=\"configs\"} 6",
        "workqueue_unfinished_work_seconds{name=\"configs\",controller=\"configs\"} 0",
        "workqueue_longest_running_processor_seconds{name=\"configs\",controller=\"configs\"} 0",
        "informer_objects{informer=\"configmaps/v1\"} 4",
        "informer_objects{informer=\"configmaps/v1 (2)\"} 4",
        "informer_synced{informer=\"configmaps/v1\"} 1",
        "informer_state{informer=\"configmaps/v1\",state=\"synced\"} 1",
        "informer_relists_total{informer=\"configmaps/v1\",reason=\"expired\"} 0",
        // The dynamic informer was made first, and the controller's has the next number.
        "informer_handler_queued_events{informer=\"configmaps/v1 (2)\",handler=\"controller configs\"} 0",
        "informer_state{informer=\"myapps.myapp.example.com/v1\",state=\"missing\"} 1",
    ] {
        let found = metrics.lines().any(|found| found == line || found == format!("{line}.0"));
        assert!(found, "{line} is not in:\n{metrics}");
    }

    assert!(!metrics.contains("e308"), "{metrics}");
    let version =
        "informer_store_resource_version{name=\"configmaps/v1\",group=\"\",version=\"v1\",resource=\"configmaps\"}";
    assert!(metrics.contains(version), "{metrics}");
    let readyz = get(address, "/readyz?verbose").await;
    assert!(
        readyz.starts_with("[-]informer-sync failed: not synced: myapps.myapp.example.com/v1 (no such kind since "),
        "{readyz}"
    );
    assert!(readyz.contains("\n[+]ping ok\n[+]shutdown ok\n    configmaps/v1: synced\n"), "{readyz}");
    assert!(readyz.contains("\n    myapps.myapp.example.com/v1: no such kind since "), "{readyz}");
    assert!(
        readyz.ends_with("\n    customresourcedefinitions.apiextensions.k8s.io/v1: synced\nreadyz check failed\n"),
        "{readyz}"
    );
    let katalog: serde_json::Value = serde_json::from_str(&get(address, "/katalog").await).unwrap();
    assert_eq!(katalog["ready"], false);
    let configs = &katalog["controllers"][0];
    assert_eq!(configs["name"], "configs");
    assert_eq!((&configs["resource"], &configs["phase"]), (&json!("configmaps"), &json!("running")));
    assert_eq!((&configs["workers"], &configs["queue"]["delayed"]), (&json!(2), &json!(1)));
    assert_eq!(configs["reconciles"]["terminalErrors"], 1);
    assert!(configs["lastError"]["key"].is_string() && configs["lastError"]["at"].is_string());
    assert_eq!(katalog["controllers"][1]["phase"], "syncing");
    let informers = katalog["informers"].as_array().unwrap();
    // The dynamic informer of the same resource has no handler.
    let is_typed = |informer: &&serde_json::Value| {
        informer["informer"] == "configmaps/v1"
            && informer["handlers"].as_array().is_some_and(|handlers| !handlers.is_empty())
    };
    let configs = informers.iter().find(is_typed).unwrap();
    assert_eq!((&configs["state"], &configs["objects"]), (&json!("synced"), &json!(4)));
    assert_eq!(configs["handlers"][0]["handler"], "controller configs");

    install_crd(&client).await;
    let readyz = until(address, "/readyz?verbose", |body| body.ends_with("passed\n")).await;
    assert!(
        readyz.starts_with("[+]informer-sync ok\n[+]ping ok\n[+]shutdown ok\n    configmaps/v1: synced\n"),
        "{readyz}"
    );
    running.stop().await;
}
