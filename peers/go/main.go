// Command informer runs client-go's own shared informers on a server and says what they see, a line at a time:
// "synced N" once, then "add KEY", "update KEY" and "delete KEY".
//
// One informer is typed and asks for protobuf, as controllers do; the other is dynamic. Both use client-go's defaults, so
// they begin with a watch that sends the present state first.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: informer KUBECONFIG NAMESPACE configmaps|RESOURCE.VERSION.GROUP")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, namespace, resource string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	informer, err := newInformer(config, namespace, resource)
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { say("add", object) },
		UpdateFunc: func(_, object any) { say("update", object) },
		DeleteFunc: func(object any) { say("delete", object) },
	})
	if err != nil {
		return err
	}
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return fmt.Errorf("%s never synced", resource)
	}
	fmt.Println("synced", len(informer.GetStore().ListKeys()))
	<-ctx.Done()
	return nil
}

func newInformer(config *rest.Config, namespace, resource string) (cache.SharedIndexInformer, error) {
	if resource == "configmaps" {
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		config.ContentType = "application/vnd.kubernetes.protobuf"
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
		return factory.Core().V1().ConfigMaps().Informer(), nil
	}
	parsed, _ := schema.ParseResourceArg(resource)
	if parsed == nil {
		return nil, fmt.Errorf("%q isn't RESOURCE.VERSION.GROUP", resource)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	return factory.ForResource(*parsed).Informer(), nil
}

func say(what string, object any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		key = err.Error()
	}
	fmt.Println(what, key)
}
