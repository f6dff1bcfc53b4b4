//! Over real HTTP and TLS, on loopback, through a proxy that cuts connections.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ::http::{Request, Response};
use futures::future::BoxFuture;
use informant_apiserver::ListenOptions;
use informant_cache::{Cluster, InformerFactory, ListerWatcher, ObjectKey, RequestError};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{assert_holds_what_the_server_has, config_map, server};

/// Passes connections on to a server and cuts all that are open when told to, wherever their bytes are.
struct Proxy {
    port: u16,
    cut: broadcast::Sender<()>,
    connections: Arc<AtomicUsize>,
    tasks: JoinSet<()>,
}

impl Proxy {
    async fn before(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (cut, connections) = (broadcast::channel(1).0, Arc::new(AtomicUsize::new(0)));
        let (cuts, count) = (cut.clone(), Arc::clone(&connections));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (mut cut, server) = (cuts.subscribe(), server.clone());
                open.spawn(async move {
                    let Ok(server) = TcpStream::connect(server).await else { return };
                    tokio::select! {
                        _ = cut.recv() => {}
                        () = pass(client, server) => {}
                    }
                });
            }
        });
        Self { port, cut, connections, tasks }
    }

    fn cut(&self) {
        let _ = self.cut.send(());
    }
}

/// Passes bytes in pieces of odd sizes, so that frames are split anywhere.
async fn pass(client: TcpStream, server: TcpStream) {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let up = async move { tokio::io::copy(&mut from_client, &mut to_server).await.map(drop) };
    let down = async move {
        let mut piece = [0; 37];
        loop {
            let read = from_server.read(&mut piece).await?;
            if read == 0 {
                return Ok::<(), std::io::Error>(());
            }
            to_client.write_all(&piece[..read]).await?;
        }
    };
    let _ = tokio::join!(up, down);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_informer_follows_a_server_over_tls_and_survives_its_connections_being_cut() {
    let (server, cancel) = (server(), CancellationToken::new());
    let listening = server.listen(ListenOptions::default()).await.unwrap();
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&listening.kubeconfig()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    config.default_retry = false;
    let direct = kube::Client::try_from(config.clone()).unwrap();
    let api = Api::<ConfigMap>::namespaced(direct.clone(), "default");

    let authority = config.cluster_url.authority().unwrap().to_string();
    let proxy = Proxy::before(authority).await;
    config.cluster_url = format!("https://127.0.0.1:{}/", proxy.port).parse().unwrap();
    let factory = InformerFactory::builder(kube::Client::try_from(config).unwrap()).seed(1).build();
    let informer = factory.informer::<ConfigMap>().full();
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    for number in 0..40 {
        api.create(&PostParams::default(), &config_map(&format!("c{number}"), "1")).await.unwrap();
        if number == 20 {
            proxy.cut();
        }
    }
    for number in 0..10 {
        api.delete(&format!("c{number}"), &DeleteParams::default()).await.unwrap();
        let patch = Patch::Merge(json!({"data": {"value": "2"}}));
        api.patch(&format!("c{}", number + 10), &PatchParams::default(), &patch).await.unwrap();
    }
    assert_holds_what_the_server_has(&informer, &direct).await;
    assert_eq!(informer.status().counters.lists, 1, "a cut watch is resumed: {:?}", informer.status());
    assert!(proxy.connections.load(Ordering::SeqCst) > 1);
    factory.shutdown().await;
    drop(proxy.tasks);
    listening.shutdown().await;
}

/// Sends requests on and notes them.
struct Noting {
    client: kube::Client,
    seen: Arc<Mutex<Vec<String>>>,
}

impl ListerWatcher for Noting {
    fn request(&self, request: Request<()>) -> BoxFuture<'_, Result<Response<Body>, RequestError>> {
        self.seen.lock().unwrap().push(request.uri().to_string());
        ListerWatcher::request(&self.client, request)
    }
}

/// client-go fact 121: without a form of their own, objects are streamed from the first request on, also by a real server.
/// (client-go's fakes can't stream and are listed; the scripted server streams as well.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dynamic_and_metadata_informers_stream_what_is_there_over_http() {
    let (server, cancel) = (server(), CancellationToken::new());
    let listening = server.listen(ListenOptions::default()).await.unwrap();
    let cluster = Cluster::from_kubeconfig(&listening.kubeconfig()).await.unwrap();
    let api = Api::<ConfigMap>::namespaced(cluster.client(), "default");
    api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let factory = InformerFactory::builder(cluster.clone()).seed(1).build();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noting = || Noting { client: cluster.client(), seen: Arc::clone(&seen) };
    let dynamic = factory.dynamic(ApiResource::erase::<ConfigMap>(&())).from(noting()).full();
    let metadata = factory.metadata::<ConfigMap>().from(noting()).full();
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    assert!(dynamic.lister().contains(&ObjectKey::namespaced("default", "a")));
    assert_eq!(dynamic.lister().keys(), metadata.lister().keys());
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen.iter().all(|uri| uri.contains("watch=true") && uri.contains("sendInitialEvents=true")), "{seen:?}");
    factory.shutdown().await;
    listening.shutdown().await;
}
