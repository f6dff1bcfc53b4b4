// Command bench is client-go's shared informer as a client of Informant's benchmarks (`cargo xtask bench`): it does what
// `informant-bench kube-rs` does, and prints the same line of JSON.
//
// All settings are client-go's own, but that the client's limit of requests per second is off.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// The resource version of change number 0.
const changedVersion = 2_000_000_000

// How long a phase may take.
const patience = 10 * time.Minute

var resources = map[string]schema.GroupVersionResource{
	"pods":           {Version: "v1", Resource: "pods"},
	"nodes":          {Version: "v1", Resource: "nodes"},
	"endpointslices": {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	"events":         {Group: "events.k8s.io", Version: "v1", Resource: "events"},
	"widgets":        {Group: "bench.informant.test", Version: "v1", Resource: "widgets"},
}

type options struct {
	url, control, kubeconfig, kind, form, wire string
	tuned, watchList                           bool
	events, relist                             words
}

// A flag that may be given again.
type words []string

func (w *words) String() string { return strings.Join(*w, " ") }

func (w *words) Set(word string) error {
	*w = append(*w, word)
	return nil
}

type object = map[string]any

func main() {
	var o options
	flag.StringVar(&o.url, "url", "", "URL of the server")
	flag.StringVar(&o.control, "control", "", "URL for commands, if the server's own speaks TLS")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "instead of a URL")
	flag.StringVar(&o.kind, "kind", "pods", "what to follow")
	flag.StringVar(&o.form, "form", "typed", "typed, dynamic or metadata")
	flag.StringVar(&o.wire, "wire", "protobuf", "protobuf or json, where it's typed")
	flag.BoolVar(&o.tuned, "tuned", false, "drop managedFields, by a transform")
	flag.BoolVar(&o.watchList, "watch-list", false, "ask for a stream of initial events instead of a list")
	flag.Var(&o.events, "events", "COUNT@RATE events after the sync; may be given again")
	flag.Var(&o.relist, "relist", "then a relist in which so many of a thousand objects have changed; may be given again")
	flag.Parse()
	if o.control == "" {
		o.control = o.url
	}
	found, err := run(o)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o options) (object, error) {
	// The gate is read when the first informer asks for it.
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", fmt.Sprint(o.watchList)); err != nil {
		return nil, err
	}
	informer, err := newInformer(o)
	if err != nil {
		return nil, err
	}
	if o.tuned {
		err := informer.SetTransform(func(each any) (any, error) {
			if accessor, err := meta.Accessor(each); err == nil {
				accessor.SetManagedFields(nil)
			}
			return each, nil
		})
		if err != nil {
			return nil, err
		}
	}
	seen := &seen{}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(each any) { seen.call(each) },
		UpdateFunc: func(_, each any) { seen.call(each) },
		DeleteFunc: func(each any) { seen.call(each) },
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var running sync.WaitGroup
	before := begin()
	running.Go(func() { informer.RunWithContext(ctx) })
	if !until(registration.HasSynced) {
		return nil, fmt.Errorf("not synced after %s", patience)
	}
	synced := before.end(before.since())
	time.Sleep(500 * time.Millisecond)
	resident := status("VmRSS:")
	runtime.GC()
	debug.FreeOSMemory()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	collected := status("VmRSS:")
	watches, relists := []object{}, []object{}
	for _, word := range o.events {
		found, err := watch(o, seen, word)
		if err != nil {
			return nil, err
		}
		watches = append(watches, found)
	}
	for _, word := range o.relist {
		found, err := relist(o, seen, informer, word)
		if err != nil {
			return nil, err
		}
		relists = append(relists, found)
	}
	stop()
	running.Wait()
	user, system := processor()
	return object{
		"client": "client-go", "objects": len(informer.GetStore().ListKeys()), "sync": synced, "resident_bytes": resident,
		"collected_bytes": collected, "held_bytes": memory.HeapAlloc, "watch": watches, "relist": relists,
		"peak_bytes": status("VmHWM:"), "user_cpu_seconds": user, "system_cpu_seconds": system,
	}, nil
}

func newInformer(o options) (cache.SharedIndexInformer, error) {
	config := &rest.Config{Host: o.url}
	if o.kubeconfig != "" {
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig); err != nil {
			return nil, err
		}
	} else if strings.HasPrefix(o.url, "https:") {
		config.Insecure = true
	}
	config.QPS = -1
	resource, known := resources[o.kind]
	if !known {
		return nil, fmt.Errorf("no kind is called %s", o.kind)
	}
	switch o.form {
	case "typed":
		if o.wire == "protobuf" {
			config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
			config.ContentType = "application/vnd.kubernetes.protobuf"
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		generic, err := informers.NewSharedInformerFactory(client, 0).ForResource(resource)
		if err != nil {
			return nil, err
		}
		return generic.Informer(), nil
	case "dynamic":
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(resource).Informer(), nil
	case "metadata":
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return metadatainformer.NewSharedInformerFactory(client, 0).ForResource(resource).Informer(), nil
	default:
		return nil, fmt.Errorf("there's no form %s", o.form)
	}
}

func watch(o options, seen *seen, word string) (object, error) {
	countText, rateText, _ := strings.Cut(word, "@")
	count, err := strconv.ParseUint(countText, 10, 32)
	if err != nil {
		return nil, err
	}
	rate, err := strconv.ParseUint(rateText, 10, 32)
	if err != nil {
		return nil, err
	}
	before := begin()
	version, err := number(o.control, fmt.Sprintf("/bench/events?count=%d&rate=%d", count, rate))
	if err != nil {
		return nil, err
	}
	last := version - changedVersion
	first := last + 1 - count
	if !until(func() bool { return seen.last.Load() >= last }) {
		return nil, fmt.Errorf("events aren't handled after %s", patience)
	}
	sent, err := ask(o.control, fmt.Sprintf("/bench/sent?from=%d&count=%d", first, count))
	if err != nil {
		return nil, err
	}
	seen.lock.Lock()
	defer seen.lock.Unlock()
	var latencies []uint64
	var end, began uint64
	for i, handled := range seen.handled[first : last+1] {
		at := binary.LittleEndian.Uint64(sent[8*i:])
		if i == 0 {
			began = at
		}
		end = max(end, handled)
		if handled > at {
			latencies = append(latencies, handled-at)
		}
	}
	slices.Sort(latencies)
	micros := func(part float64) float64 {
		if len(latencies) == 0 {
			return 0
		}
		return float64(latencies[int(float64(len(latencies)-1)*part+0.5)]) / 1e3
	}
	seconds := float64(end-began) / 1e9
	found := before.end(seconds)
	found["rate"], found["events"], found["handled"] = rate, count, len(latencies)
	found["events_per_second"] = float64(count) / seconds
	found["p50_us"], found["p99_us"], found["p999_us"] = micros(0.5), micros(0.99), micros(0.999)
	return found, nil
}

func relist(o options, seen *seen, informer cache.SharedIndexInformer, permille string) (object, error) {
	time.Sleep(500 * time.Millisecond)
	calls := seen.calls.Load()
	before := begin()
	version, err := number(o.control, "/bench/expire?permille="+permille)
	if err != nil {
		return nil, err
	}
	done := until(func() bool {
		at, err := strconv.ParseUint(informer.LastSyncResourceVersion(), 10, 64)
		return err == nil && at >= version
	})
	if !done {
		return nil, fmt.Errorf("no new list after %s", patience)
	}
	end := now()
	listed, err := number(o.control, "/bench/listed")
	if err != nil {
		return nil, err
	}
	found := before.end(float64(end-listed) / 1e9)
	// Of a handler that comes after the store.
	time.Sleep(500 * time.Millisecond)
	found["changed_permille"], found["calls"] = json.Number(permille), seen.calls.Load()-calls
	return found, nil
}

// What the handler was told.
type seen struct {
	calls, last atomic.Uint64
	lock        sync.Mutex
	handled     []uint64
}

func (s *seen) call(each any) {
	s.calls.Add(1)
	accessor, ok := each.(metav1.Object)
	if !ok {
		return
	}
	version, err := strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
	if err != nil || version <= changedVersion {
		return
	}
	change := version - changedVersion
	s.lock.Lock()
	defer s.lock.Unlock()
	if missing := int(change) + 1 - len(s.handled); missing > 0 {
		s.handled = append(s.handled, make([]uint64, missing)...)
	}
	s.handled[change] = now()
	s.last.Store(max(s.last.Load(), change))
}

// A stretch of work that's measured.
type span struct {
	began        uint64
	user, system float64
}

func begin() span {
	// The peak of memory is forgotten too, where the kernel lets it be.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	user, system := processor()
	return span{now(), user, system}
}

func (s span) since() float64 { return float64(now()-s.began) / 1e9 }

func (s span) end(seconds float64) object {
	user, system := processor()
	return object{"seconds": seconds, "user_cpu_seconds": user - s.user, "system_cpu_seconds": system - s.system, "peak_bytes": status("VmHWM:")}
}

// Nanoseconds of the monotonic clock, which all processes share.
func now() uint64 {
	var time unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &time)
	return uint64(time.Nano())
}

func processor() (float64, float64) {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	seconds := func(time syscall.Timeval) float64 { return float64(time.Nano()) / 1e9 }
	return seconds(usage.Utime), seconds(usage.Stime)
}

func status(name string) uint64 {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kb, _ := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			return kb * 1024
		}
	}
	return 0
}

func until(done func() bool) bool {
	for start := time.Now(); time.Since(start) < patience; time.Sleep(time.Millisecond) {
		if done() {
			return true
		}
	}
	return false
}

func ask(url, path string) ([]byte, error) {
	answer, err := http.Get(url + path)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

func number(url, path string) (uint64, error) {
	text, err := ask(url, path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}
