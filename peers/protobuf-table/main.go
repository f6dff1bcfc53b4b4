// protobuf-table writes what the embedded API server must know to read protobuf bodies, and cases to check it with.
//
//	go run . table             the table: every message, field by field, from Go's struct tags
//	go run . cases SEED COUNT  COUNT random objects of every kind: base64 of the protobuf body, a tab, Go's own JSON
//
// The .proto files don't say which fields are pointers nor which are left out when empty, so that zeros couldn't be told
// from unset fields; the Go types say both.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func main() {
	types := runtime.NewScheme()
	metav1.AddToGroupVersion(types, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(scheme.AddToScheme(types))
	utilruntime.Must(apiextensions.AddToScheme(types))
	utilruntime.Must(apiregistration.AddToScheme(types))

	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	switch arguments := os.Args[1:]; {
	case len(arguments) == 1 && arguments[0] == "table":
		writeTable(out, types)
	case len(arguments) == 3 && arguments[0] == "cases":
		seed, err := strconv.ParseInt(arguments[1], 10, 64)
		utilruntime.Must(err)
		count, err := strconv.Atoi(arguments[2])
		utilruntime.Must(err)
		writeCases(out, types, seed, count)
	default:
		fmt.Fprintln(os.Stderr, "usage: protobuf-table table | cases SEED COUNT")
		os.Exit(2)
	}
}

// kinds lists the kinds of the versions that a server serves by default: neither alpha nor beta nor internal ones. Watch
// events are left out: no client sends them.
func kinds(types *runtime.Scheme) []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for gvk := range types.AllKnownTypes() {
		if strings.Contains(gvk.Version, "alpha") || strings.Contains(gvk.Version, "beta") || gvk.Version == runtime.APIVersionInternal ||
			gvk.Kind == metav1.WatchEventKind {
			continue
		}
		if messageOf(types.AllKnownTypes()[gvk]) {
			all = append(all, gvk)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].String() < all[j].String() })
	return all
}
