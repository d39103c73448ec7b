// client-go's own informers, as the clients of scripted servers.
//
// Standard input has commands, a line of JSON each: {"start": "name", "url": "http://…", "streaming": true} starts an
// informer, {"stop": "name"} stops it. Standard output has what was delivered, and the store when an informer stops.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

type command struct {
	Start     string `json:"start"`
	URL       string `json:"url"`
	Streaming bool   `json:"streaming"`
	Stop      string `json:"stop"`
}

type line struct {
	Script    string   `json:"script"`
	Key       string   `json:"key"`
	Delivered string   `json:"delivered,omitempty"`
	Store     []string `json:"store"`
}

var (
	output      = json.NewEncoder(os.Stdout)
	outputMutex sync.Mutex
)

func write(said line) {
	outputMutex.Lock()
	defer outputMutex.Unlock()
	if err := output.Encode(said); err != nil {
		panic(err)
	}
}

// pages is a ListWatch whose client does not stream lists.
type pages struct{ *cache.ListWatch }

func (pages) IsWatchListSemanticsUnSupported() bool { return true }

// render returns the notation of scripts, NAME@VERSION=VALUE#UID.
func render(object any) string {
	item, ok := object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Sprintf("%T", object)
	}
	text := item.GetName() + "@" + item.GetResourceVersion()
	if item.GetNamespace() != "default" {
		text = item.GetNamespace() + "/" + text
	}
	value, _, _ := unstructured.NestedString(item.Object, "spec", "value")
	if value != "v"+item.GetResourceVersion() {
		text += "=" + value
	}
	if uid := string(item.GetUID()); uid != "u-"+item.GetName() {
		text += "#" + uid
	}
	return text
}

func short(key string) string { return strings.TrimPrefix(key, "default/") }

func run(ctx context.Context, asked command) error {
	client, err := dynamic.NewForConfig(&rest.Config{Host: asked.URL, QPS: -1})
	if err != nil {
		return err
	}
	collection := client.Resource(widgets)
	functions := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return collection.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return collection.Watch(ctx, options)
		},
	}
	var source cache.ListerWatcher = functions
	if !asked.Streaming {
		source = pages{functions}
	}
	informer := cache.NewSharedIndexInformerWithOptions(
		source, &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{},
	)
	note := func(object any, delivered string) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil {
			key = err.Error()
		}
		write(line{Script: asked.Start, Key: short(key), Delivered: delivered})
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			delivered := "add "
			if initial {
				delivered = "initial add "
			}
			note(object, delivered+render(object))
		},
		UpdateFunc: func(old, object any) { note(object, "update "+render(old)+" -> "+render(object)) },
		DeleteFunc: func(object any) {
			if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				note(object, "delete, last known "+render(tombstone.Obj))
				return
			}
			note(object, "delete "+render(object))
		},
	})
	if err != nil {
		return err
	}
	informer.RunWithContext(ctx)
	store := []string{}
	for _, object := range informer.GetStore().List() {
		store = append(store, render(object))
	}
	sort.Strings(store)
	write(line{Script: asked.Start, Store: store})
	return nil
}

func main() {
	running := map[string]context.CancelFunc{}
	var all sync.WaitGroup
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		var asked command
		if err := json.Unmarshal(commands.Bytes(), &asked); err != nil {
			panic(err)
		}
		if asked.Stop != "" {
			running[asked.Stop]()
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		running[asked.Start] = cancel
		all.Add(1)
		go func() {
			defer all.Done()
			if err := run(ctx, asked); err != nil {
				panic(err)
			}
		}()
	}
	for _, cancel := range running {
		cancel()
	}
	all.Wait()
}
