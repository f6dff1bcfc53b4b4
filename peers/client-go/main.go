// Command informers runs client-go's shared informers beside Informant's on one cluster, for `peers/soak/run.py`. It says on
// standard output what they are told, as lines of JSON, and answers the lines "dump" and "quit" on standard input.
//
// Pods and ConfigMaps are typed and travel as protobuf, as in controllers; Things, of a CRD, are dynamic. All settings are
// client-go's own, but that the client's limit of requests per second is off.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// One line: an event of a handler.
type event struct {
	Time            float64 `json:"t"`
	Handler         string  `json:"h"`
	Resource        string  `json:"r"`
	Event           string  `json:"e"`
	Key             string  `json:"k"`
	UID             string  `json:"u"`
	ResourceVersion string  `json:"v"`
	Tombstone       bool    `json:"unknown,omitempty"`
}

// One line: an error that an informer reported.
type failure struct {
	Time     float64 `json:"t"`
	Resource string  `json:"r"`
	Error    string  `json:"error"`
}

// One line: what an informer holds.
type dump struct {
	Resource string            `json:"dump"`
	Held     map[string]string `json:"held"`
	Lists    int64             `json:"lists"`
}

func main() {
	if len(os.Args) != 5 || (os.Args[4] != "on" && os.Args[4] != "off") {
		fmt.Fprintln(os.Stderr, "usage: informers KUBECONFIG NAMESPACE GROUP-OF-THINGS on|off   (whether lists are streamed)")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4] == "on"); err != nil {
		fmt.Fprintln(os.Stderr, "informers:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, namespace, group string, watchList bool) error {
	// The gate is read when the first informer asks for it.
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", fmt.Sprint(watchList)); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	lists := new(atomic.Int64)
	all, err := newInformers(kubeconfig, namespace, group, lists)
	if err != nil {
		return err
	}
	out := &output{encoder: json.NewEncoder(os.Stdout)}
	var synced []cache.InformerSynced
	var running sync.WaitGroup
	for resource, informer := range all {
		registration, err := listen(out, resource, informer)
		if err != nil {
			return err
		}
		synced = append(synced, registration.HasSynced)
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), synced...) {
			out.say(map[string]any{"t": now(), "synced": true})
		}
	}()
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() && commands.Text() != "quit" {
		for resource, informer := range all {
			held := map[string]string{}
			for _, object := range informer.GetStore().List() {
				key, accessor := describe(object)
				held[key] = accessor.GetResourceVersion()
			}
			out.say(dump{resource, held, lists.Load()})
		}
	}
	stop()
	running.Wait()
	return nil
}

func newInformers(kubeconfig, namespace, group string, lists *atomic.Int64) (map[string]cache.SharedIndexInformer, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return counter{inner, lists} })
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	typed := rest.CopyConfig(config)
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return nil, err
	}
	core := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace)).Core().V1()
	others := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamicClient, 0, namespace, nil)
	return map[string]cache.SharedIndexInformer{
		"pods":       core.Pods().Informer(),
		"configmaps": core.ConfigMaps().Informer(),
		"things":     others.ForResource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}).Informer(),
	}, nil
}

func listen(out *output, resource string, informer cache.SharedIndexInformer) (cache.ResourceEventHandlerRegistration, error) {
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		out.say(failure{now(), resource, err.Error()})
	})
	if err != nil {
		return nil, err
	}
	tell := func(what string, object any) {
		last, unknown := object.(cache.DeletedFinalStateUnknown)
		if unknown {
			object = last.Obj
		}
		key, accessor := describe(object)
		out.say(event{now(), "early", resource, what, key, string(accessor.GetUID()), accessor.GetResourceVersion(), unknown})
	}
	return informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell("added", object) },
		UpdateFunc: func(_, object any) { tell("updated", object) },
		DeleteFunc: func(object any) { tell("deleted", object) },
	})
}

func describe(object any) (string, metav1.Object) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(errors.New("an informer gave something that is no object"))
	}
	return accessor.GetNamespace() + "/" + accessor.GetName(), accessor
}

// Counts the requests for the present state: lists, and watches that begin with it.
type counter struct {
	inner http.RoundTripper
	lists *atomic.Int64
}

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if query.Get("watch") == "" || query.Get("sendInitialEvents") == "true" {
		c.lists.Add(1)
	}
	return c.inner.RoundTrip(request)
}

// Standard output, a line at a time.
type output struct {
	lock    sync.Mutex
	encoder *json.Encoder
}

func (o *output) say(line any) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if err := o.encoder.Encode(line); err != nil {
		fmt.Fprintln(os.Stderr, "informers:", err)
		os.Exit(1)
	}
}

func now() float64 {
	return float64(time.Now().UnixNano()) / 1e9
}
