// Runs one controller on controller-runtime, and answers benchmarks/controller_process.py by lines on stdin and stdout.
//
//	controller-runtime [-json] pods URL: an empty reconciler for the pods of a load server
//	controller-runtime [-own-writes] empty|write|widgets: for the Widgets of the cluster of KUBECONFIG
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func main() {
	onlyJSON := flag.Bool("json", false, "request built-in types as JSON, and not as protobuf")
	ownWrites := flag.Bool("own-writes", false, "let reads of the cache wait until it has the own writes")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	noted := newArrivals()
	noted.obey(os.Stdin) // the first command comes before the start
	go noted.obeyAll(os.Stdin)
	options := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
	options.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: ownWrites}
	check(run(ctrl.SetupSignalHandler(), flag.Arg(0), flag.Arg(1), *onlyJSON, options, noted))
}

func run(ctx context.Context, mode, url string, onlyJSON bool, options ctrl.Options, noted *arrivals) error {
	config := &rest.Config{Host: url}
	if url == "" {
		found, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
		if err != nil {
			return err
		}
		config = found
	}
	config.QPS = -1 // as config.GetConfig of controller-runtime
	if onlyJSON {
		config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	}
	manager, err := newManager(config, options)
	if err != nil {
		return err
	}
	if err := add(ctx, manager, mode, noted); err != nil {
		return err
	}
	return manager.Start(ctx)
}

func add(ctx context.Context, manager ctrl.Manager, mode string, noted *arrivals) error {
	empty := reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, nil })
	options := controller.Options{MaxConcurrentReconciles: workers}
	single := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	switch mode {
	case "pods":
		return ctrl.NewControllerManagedBy(manager).For(&corev1.Pod{}).WithOptions(options).Complete(noted.around(empty))
	case "empty":
		return ctrl.NewControllerManagedBy(manager).For(&Widget{}, single).WithOptions(options).
			WatchesRawSource(noted.source()).Complete(noted.around(empty))
	case "write":
		return ctrl.NewControllerManagedBy(manager).For(&Widget{}, single).WithOptions(options).
			Complete(noted.after(&writer{manager.GetClient()}))
	case "widgets":
		reconciler := &Reconciler{Client: manager.GetClient(), recorder: manager.GetEventRecorder("widgets")}
		return addWidgets(ctx, manager, noted.source(), noted.after(reconciler))
	}
	return fmt.Errorf("unknown mode %q", mode)
}

// writer writes the status of each Widget whose name begins with "write-" once.
type writer struct{ client.Client }

func (w *writer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if !strings.HasPrefix(request.Name, "write-") {
		return ctrl.Result{}, nil
	}
	widget := &Widget{}
	widget.Namespace, widget.Name = request.Namespace, request.Name
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"size":7}}`))
	return ctrl.Result{}, w.Status().Patch(ctx, widget, patch)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "controller-runtime:", err)
		os.Exit(1)
	}
}
