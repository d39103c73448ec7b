// Measures one client-go informer: prints one JSON object with the figures of benchmarks/harness.py.
//
//	client-go [-metadata|-dynamic|-protobuf] [-rates RATE:BEFORE:MEASURED;...] URL EVENTS
//	client-go [-metadata|-protobuf] -cluster EVENTS:RATE:BEFORE:MEASURED URL 0, with the URL of `client-go drive`
//	client-go drive [ETCD] < pods as JSON, one a line
//	client-go seed ETCD < objects to delete and to store, one a line
//	client-go encode < watch events as JSON > watch events as protobuf
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const resync = 0

func cpu() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func rssKiB() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		panic(err)
	}
	return float64(pages*os.Getpagesize()) / 1024
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "encode":
			runEncode()
			return
		case "drive":
			runDrive()
			return
		case "seed":
			runSeed()
			return
		}
	}
	onlyMetadata := flag.Bool("metadata", false, "only metadata, as protobuf, which is the default there")
	unstructured := flag.Bool("dynamic", false, "unstructured objects")
	protobuf := flag.Bool("protobuf", false, "typed objects as protobuf")
	rates := flag.String("rates", "", "the rates of benchmarks/lone_events.py: RATE:EVENTS BEFORE:MEASURED EVENTS;...")
	cluster := flag.String("cluster", "", "use the cluster of KUBECONFIG: EVENTS OF CATCH-UP:RATE:EVENTS BEFORE:MEASURED EVENTS")
	flag.Parse()
	url := flag.Arg(0)
	events, err := strconv.ParseInt(flag.Arg(1), 10, 64)
	if err != nil {
		panic(err)
	}

	config := &rest.Config{Host: url, QPS: -1}
	if *cluster != "" {
		config = clusterConfig()
	}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	var informer cache.SharedIndexInformer
	switch {
	case *onlyMetadata:
		client := metadata.NewForConfigOrDie(metadata.ConfigFor(config))
		informer = metadatainformer.NewSharedInformerFactory(client, resync).ForResource(pods).Informer()
	case *unstructured:
		client := dynamic.NewForConfigOrDie(config)
		informer = dynamicinformer.NewDynamicSharedInformerFactory(client, resync).ForResource(pods).Informer()
	default:
		config.ContentType = "application/json"
		if *protobuf {
			config.ContentType = "application/vnd.kubernetes.protobuf"
		}
		config.AcceptContentTypes = config.ContentType
		client := kubernetes.NewForConfigOrDie(config)
		informer = informers.NewSharedInformerFactory(client, resync).Core().V1().Pods().Informer()
	}

	var seen atomic.Int64
	var begin time.Time
	var beginCPU, watchCPU, watchWall float64
	done := make(chan struct{})
	lone := &arrivals{}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) {},
		UpdateFunc: func(any, any) {
			if *rates != "" || *cluster != "" {
				lone.note()
				return
			}
			if seen.Add(1) == events {
				watchCPU, watchWall = cpu()-beginCPU, time.Since(begin).Seconds()
				close(done)
			}
		},
	})
	if err != nil {
		panic(err)
	}

	debug.FreeOSMemory()
	before := rssKiB()
	var serverBefore, serverAfter float64
	if *cluster != "" {
		if err := call(http.MethodGet, url+"/server-cpu", &serverBefore); err != nil {
			panic(err)
		}
	}
	begin, beginCPU = time.Now(), cpu()
	stop := make(chan struct{})
	go informer.Run(stop)
	if !cache.WaitForCacheSync(stop, registration.HasSynced) {
		panic("not synced")
	}
	syncWall, syncCPU := time.Since(begin).Seconds(), cpu()-beginCPU
	debug.FreeOSMemory()
	objects := len(informer.GetStore().ListKeys())
	report := map[string]any{
		"objects":           objects,
		"sync_wall_seconds": syncWall,
		"sync_cpu_seconds":  syncCPU,
		"kib_per_object":    (rssKiB() - before) / float64(objects),
	}
	if events > 0 {
		begin, beginCPU = time.Now(), cpu()
		response, err := http.Post(url+"/go", "application/json", nil)
		if err != nil {
			panic(err)
		}
		response.Body.Close()
		select {
		case <-done:
		case <-time.After(5 * time.Minute):
			panic(fmt.Sprintf("only %d of %d events came", seen.Load(), events))
		}
		report["watch_us_per_event"] = watchCPU / float64(events) * 1e6
		report["watch_events_per_second"] = float64(events) / watchWall
	}
	if *rates != "" {
		report = map[string]any{}
		if err := lone.run(url, *rates, report); err != nil {
			panic(err)
		}
	}
	if *cluster != "" {
		if err := call(http.MethodGet, url+"/server-cpu", &serverAfter); err != nil {
			panic(err)
		}
		report["server_list_cpu_seconds"] = serverAfter - serverBefore
		var events, rate, before, measured int
		if _, err := fmt.Sscanf(*cluster, "%d:%d:%d:%d", &events, &rate, &before, &measured); err != nil {
			panic(err)
		}
		if err := lone.runCluster(url, events, rate, before, measured, report); err != nil {
			panic(err)
		}
	}
	close(stop)
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		panic(err)
	}
}
