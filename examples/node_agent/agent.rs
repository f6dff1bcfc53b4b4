//! A mesh's agent on one node: it brings the node's Pods into the mesh and out of it, as labels, namespaces and the Pods'
//! own lives demand.
//!
//! Pods and namespaces are informers; their handlers put keys into one queue, and one worker compares what a Pod wants with
//! what was done for it. What was done is remembered here, and written to the Pod as an annotation, by which the next agent
//! knows it after a restart.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use informant::cache::{HandlerHandle, SyncError};
use informant::prelude::*;
use informant::queue::{Backoff, Bucket, Options, RateLimits};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

/// On a namespace or a Pod: `on` brings it into the mesh, `off` on a Pod keeps it out.
pub(crate) const MODE: &str = "mesh.example.com/mode";
/// On a Pod: what was done for it, `enabled` or `pending`.
pub(crate) const REDIRECTION: &str = "mesh.example.com/redirection";

/// What is done to a Pod's network. Each call may come again for the same Pod, after a failure or a restart.
pub(crate) trait Mesh: Send + Sync + 'static {
    /// Brings the Pod into the mesh.
    fn add(&self, pod: &Pod, ips: &BTreeSet<String>) -> impl Future<Output = Result<(), AddError>> + Send;
    /// Takes the Pod out of the mesh; `ended` if there's no network of it any more, only what was kept for it.
    fn remove(&self, pod: &Pod, ended: bool) -> impl Future<Output = Result<(), String>> + Send;
    /// The addresses of a Pod in the mesh have changed.
    fn update_ips(&self, pod: &Pod, ips: &BTreeSet<String>) -> impl Future<Output = Result<(), String>> + Send;
}

/// Why a Pod couldn't be brought in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddError {
    /// It may work later.
    #[error("{0}; it's tried again")]
    Later(String),
    /// It can't work for this Pod.
    #[error("{0}")]
    Never(String),
}

/// A Pod in a namespace that the agent doesn't know.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the namespace of {0} isn't known")]
pub(crate) struct UnknownNamespace(pub(crate) ObjectKey);

/// The agent. Nothing happens before [`run`](Self::run).
pub(crate) struct NodeAgent<M> {
    cluster: Cluster,
    excluded: BTreeSet<String>,
    pods: SharedInformer<Pod>,
    namespaces: SharedInformer<Namespace>,
    queue: WorkQueue<ObjectKey>,
    mesh: M,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    /// What was done for the Pods that are there.
    done: HashMap<ObjectKey, Done>,
    /// Pods that are gone and not yet cleaned up after; each as it was last.
    gone: HashMap<ObjectKey, Vec<Arc<Pod>>>,
}

struct Done {
    uid: String,
    state: Enrolment,
    /// As they were when the Pod was in the mesh.
    ips: BTreeSet<String>,
    /// The Pod's last state that had an address: a Pod that has ended may have lost it.
    pod: Arc<Pod>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Enrolment {
    Out,
    /// Bringing it in has failed so far.
    Pending,
    /// Bringing it in has failed for good; something of it may be left.
    Refused,
    In,
}

impl<M: Mesh> NodeAgent<M> {
    /// An agent for the Pods of a node, with its informers in `factory`. Pods in excluded namespaces stay out.
    pub(crate) fn new<'a>(
        cluster: &Cluster,
        factory: &InformerFactory,
        node: &str,
        excluded: impl IntoIterator<Item = &'a str>,
        mesh: M,
    ) -> Self {
        let limits =
            RateLimits::per_key(Backoff::Exponential { base: Duration::from_millis(5), max: Duration::from_secs(5) })
                .bucket(Bucket::default());
        Self {
            cluster: cluster.clone(),
            excluded: excluded.into_iter().map(str::to_owned).collect(),
            pods: factory.informer::<Pod>().scope(Scope::all().with_fields(format!("spec.nodeName={node}"))).full(),
            namespaces: factory.informer::<Namespace>().full(),
            queue: WorkQueue::with_options("node-agent", Options::default().rate_limits(limits)),
            mesh,
            memory: Arc::default(),
        }
    }

    /// Works until the token is cancelled; the factory is started by whoever made it. The queue is served once both
    /// informers are synced, so nothing is decided on half of the facts.
    ///
    /// # Errors
    /// If an informer can't sync.
    pub(crate) async fn run(&self, stop: &CancellationToken) -> Result<(), SyncError> {
        let _handlers = [self.follow_pods(), self.follow_namespaces()];
        let work = async {
            let synced = tokio::try_join!(self.pods.wait_synced(), self.namespaces.wait_synced());
            synced.map_err(|why| SyncError { not_synced: vec![why] })?;
            while let Some(item) = self.queue.next().await {
                match self.reconcile(item.key()).await {
                    Ok(()) => item.forget(),
                    Err(why) => {
                        tracing::warn!(pod = %item.key(), error = %why, "tried again");
                        item.retry();
                    }
                }
            }
            Ok(())
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            ended = work => ended,
        }
    }

    /// The Pods that are in the mesh by their own account and haven't ended: what the dataplane is to begin with.
    pub(crate) fn snapshot(&self) -> Vec<Arc<Pod>> {
        let mut pods = self.pods.lister().list();
        pods.retain(|pod| annotated(pod) == Enrolment::In && !has_ended(pod));
        pods
    }

    /// The Pod, if it's to be in the mesh.
    ///
    /// # Errors
    /// If its namespace isn't known: then nobody can tell.
    pub(crate) fn pod_if_wanted(&self, key: &ObjectKey) -> Result<Option<Arc<Pod>>, UnknownNamespace> {
        let namespace = ObjectKey::cluster(key.namespace().unwrap_or_default());
        if !self.namespaces.lister().contains(&namespace) {
            return Err(UnknownNamespace(key.clone()));
        }
        Ok(self.pods.lister().get(key).filter(|pod| self.is_wanted(key, pod)))
    }

    // --- what happens ---

    fn follow_pods(&self) -> HandlerHandle {
        let (queue, memory) = (self.queue.clone(), Arc::clone(&self.memory));
        self.pods.on_change(move |event| {
            if let Event::Deleted { object, .. } = &event {
                lock(&memory).gone.entry(event.key().clone()).or_default().push(object.object());
            }
            queue.add(event.key().clone());
        })
    }

    fn follow_namespaces(&self) -> HandlerHandle {
        let (queue, pods) = (self.queue.clone(), self.pods.lister());
        self.namespaces.on_change(move |event| {
            let mode = |namespace: &Namespace| label(namespace.metadata.labels.as_ref(), MODE);
            let flipped = event.old().is_none_or(|old| mode(&old) != mode(&event.object()));
            if flipped && !matches!(event, Event::Deleted { .. }) {
                for key in pods.namespace(event.key().name()).keys() {
                    queue.add(key);
                }
            }
        })
    }

    // --- what is done about it ---

    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.clean_up(key).await?;
        let Some(pod) = self.pods.lister().get(key) else { return Ok(()) };
        let (state, known_ips, last) = self.recall(key, &pod);
        let in_part = matches!(state, Enrolment::In | Enrolment::Pending);
        let ips = ips(&pod);
        if has_ended(&pod) {
            if in_part {
                self.mesh.remove(&last, true).await?;
                self.remember(key, &pod, Enrolment::Out).await?;
            }
            return Ok(());
        }
        if state == Enrolment::In && !ips.is_empty() && ips != known_ips {
            self.mesh.update_ips(&pod, &ips).await?;
            self.note(key, &pod, Enrolment::In);
        }
        match (self.is_wanted(key, &pod), state) {
            (false, _) if in_part => {
                self.mesh.remove(&pod, false).await?;
                self.remember(key, &pod, Enrolment::Out).await
            }
            (false, _) | (true, Enrolment::In) => Ok(()),
            // Its address comes with an event.
            (true, _) if ips.is_empty() => Ok(()),
            (true, _) => self.add(key, &pod, &ips).await,
        }
    }

    async fn add(
        &self,
        key: &ObjectKey,
        pod: &Arc<Pod>,
        ips: &BTreeSet<String>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        match self.mesh.add(pod, ips).await {
            Ok(()) => self.remember(key, pod, Enrolment::In).await,
            Err(AddError::Never(why)) => {
                tracing::error!(pod = %key, error = %why, "stays out of the mesh");
                self.note(key, pod, Enrolment::Refused);
                Ok(())
            }
            Err(later) => {
                self.remember(key, pod, Enrolment::Pending).await?;
                Err(later.into())
            }
        }
    }

    /// Removes from the mesh what is gone, whether or not its namespace is known any more.
    async fn clean_up(&self, key: &ObjectKey) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        loop {
            let first = lock(&self.memory).gone.get(key).and_then(|gone| gone.first().cloned());
            let Some(pod) = first else { return Ok(()) };
            let (state, _, _) = self.recall(key, &pod);
            if state != Enrolment::Out || (self.is_wanted(key, &pod) && !self.knows(key, &pod)) {
                self.mesh.remove(&pod, true).await?;
            }
            let mut memory = lock(&self.memory);
            if memory.done.get(key).is_some_and(|done| Some(&done.uid) == pod.metadata.uid.as_ref()) {
                memory.done.remove(key);
            }
            if let Some(gone) = memory.gone.get_mut(key) {
                gone.remove(0);
                if gone.is_empty() {
                    memory.gone.remove(key);
                }
            }
        }
    }

    /// Not the Pod's own network, not an excluded namespace, and the Pod's label if it has one, else its namespace's.
    fn is_wanted(&self, key: &ObjectKey, pod: &Pod) -> bool {
        let namespace = key.namespace().unwrap_or_default();
        let on_the_host = pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or_default();
        if on_the_host || self.excluded.contains(namespace) {
            return false;
        }
        let by_namespace = || {
            let namespace = self.namespaces.lister().get(&ObjectKey::cluster(namespace));
            namespace.and_then(|namespace| label(namespace.metadata.labels.as_ref(), MODE))
        };
        label(pod.metadata.labels.as_ref(), MODE).or_else(by_namespace).as_deref() == Some("on")
    }

    // --- what was done ---

    fn knows(&self, key: &ObjectKey, pod: &Pod) -> bool {
        lock(&self.memory).done.get(key).is_some_and(|done| Some(&done.uid) == pod.metadata.uid.as_ref())
    }

    /// What was done for this Pod, its addresses then, and its last state that had any. Before anything was done by this
    /// agent, its annotation tells; afterwards it doesn't, because the cache shows it a moment late.
    fn recall(&self, key: &ObjectKey, pod: &Arc<Pod>) -> (Enrolment, BTreeSet<String>, Arc<Pod>) {
        let mut memory = lock(&self.memory);
        match memory.done.get_mut(key).filter(|done| Some(&done.uid) == pod.metadata.uid.as_ref()) {
            Some(done) => {
                if !ips(pod).is_empty() {
                    done.pod = Arc::clone(pod);
                }
                (done.state, done.ips.clone(), Arc::clone(&done.pod))
            }
            None => {
                let state = annotated(pod);
                if state == Enrolment::In {
                    memory.done.insert(key.clone(), Done::new(pod, state));
                }
                (state, ips(pod), Arc::clone(pod))
            }
        }
    }

    fn note(&self, key: &ObjectKey, pod: &Arc<Pod>, state: Enrolment) {
        lock(&self.memory).done.insert(key.clone(), Done::new(pod, state));
    }

    /// Notes what was done, and writes it to the Pod.
    async fn remember(
        &self,
        key: &ObjectKey,
        pod: &Arc<Pod>,
        state: Enrolment,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.note(key, pod, state);
        let word = match state {
            Enrolment::Out | Enrolment::Refused => None,
            Enrolment::Pending => Some("pending"),
            Enrolment::In => Some("enabled"),
        };
        // With the uid, so that a Pod of the same name that came meanwhile isn't taken for it.
        let change = json!({"metadata": {"uid": pod.metadata.uid, "annotations": {REDIRECTION: word}}});
        let pods = Api::<Pod>::namespaced(self.cluster.client(), key.namespace().unwrap_or_default());
        match pods.patch(key.name(), &PatchParams::default(), &Patch::Merge(change)).await {
            Ok(_) => Ok(()),
            // It's gone, and its deletion is on the way here.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Done {
    fn new(pod: &Arc<Pod>, state: Enrolment) -> Self {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        Self { uid, state, ips: ips(pod), pod: Arc::clone(pod) }
    }
}

fn annotated(pod: &Pod) -> Enrolment {
    match label(pod.metadata.annotations.as_ref(), REDIRECTION).as_deref() {
        Some("enabled") => Enrolment::In,
        Some("pending") => Enrolment::Pending,
        _ => Enrolment::Out,
    }
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// All addresses of a Pod, from the list and from the older single field.
fn ips(pod: &Pod) -> BTreeSet<String> {
    let Some(status) = &pod.status else { return BTreeSet::new() };
    let listed = status.pod_ips.iter().flatten().map(|ip| ip.ip.clone());
    listed.chain(status.pod_ip.clone()).filter(|ip| !ip.is_empty()).collect()
}

fn label(labels: Option<&BTreeMap<String, String>>, key: &str) -> Option<String> {
    labels?.get(key).cloned()
}

fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
