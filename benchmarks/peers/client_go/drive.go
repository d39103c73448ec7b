// drive [ETCD] populates a real cluster with the pods from stdin, one a line as JSON, and then changes them on request.
// With the URL of etcd, it writes there. Otherwise it writes by the API server.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	writers = 24
	label   = "aioinformer-benchmark"
	pause   = 3 * time.Second
)

var podsResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func clusterConfig() *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		panic(err)
	}
	config.QPS = -1
	return config
}

type driver struct {
	typed    kubernetes.Interface
	metadata metadata.Interface
	pods     []types.NamespacedName
	cursor   atomic.Int64
	etcd     *etcd
	server   processes
}

func runDrive() {
	config := clusterConfig()
	made := &driver{metadata: metadata.NewForConfigOrDie(metadata.ConfigFor(config)), server: serverProcesses(append(os.Args[2:], config.Host)...)}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	if len(os.Args) > 2 {
		made.etcd = newEtcd(os.Args[2])
	}
	made.typed = kubernetes.NewForConfigOrDie(config)
	if err := made.populate(os.Stdin); err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	panic(http.Serve(listener, made.routes()))
}

// populate creates the pods that do not exist.
func (d *driver) populate(in io.Reader) error {
	ctx := context.Background()
	pods := make(chan *corev1.Pod, writers)
	failed := make(chan error, writers)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for pod := range pods {
				if err := d.create(ctx, pod); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	existing, err := d.existing(ctx)
	if err != nil {
		return err
	}
	reader := bufio.NewReaderSize(in, 1<<20)
	namespaces := map[string]bool{}
	for {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		pod := &corev1.Pod{}
		if err := json.Unmarshal(line, pod); err != nil {
			return err
		}
		if !namespaces[pod.Namespace] {
			namespaces[pod.Namespace] = true
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: pod.Namespace, Labels: map[string]string{label: "true"},
			}}
			_, err := d.typed.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
			if err != nil && !errors.IsAlreadyExists(err) {
				return err
			}
		}
		name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		d.pods = append(d.pods, name)
		if existing[name] {
			continue
		}
		select {
		case pods <- pod:
		case err := <-failed:
			return err
		}
	}
	close(pods)
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	// The server answers once its cache contains all pods. Then it rests.
	if _, err = d.existing(ctx); err == nil {
		time.Sleep(pause)
	}
	return err
}

// existing returns the names of the pods of earlier runs.
func (d *driver) existing(ctx context.Context) (map[types.NamespacedName]bool, error) {
	list, err := d.metadata.Resource(podsResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := map[types.NamespacedName]bool{}
	for _, pod := range list.Items {
		found[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = true
	}
	return found, nil
}

// create creates a pod and its status, as a controller and a node would.
func (d *driver) create(ctx context.Context, pod *corev1.Pod) error {
	if d.etcd != nil {
		return d.etcd.create(ctx, pod)
	}
	status := pod.Status
	pod.UID, pod.ResourceVersion, pod.ManagedFields, pod.CreationTimestamp = "", "", nil, metav1.Time{}
	client := d.typed.CoreV1().Pods(pod.Namespace)
	created, err := client.Create(ctx, pod, metav1.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		return nil
	} else if err != nil {
		return err
	}
	created.Status = status
	_, err = client.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	return err
}

func (d *driver) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(number func(string) int) (any, error)) {
		mux.HandleFunc(pattern, func(out http.ResponseWriter, in *http.Request) {
			result, err := answer(func(name string) int { value, _ := strconv.Atoi(in.FormValue(name)); return value })
			if err != nil {
				http.Error(out, err.Error(), http.StatusInternalServerError)
				return
			}
			out.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(out).Encode(result)
		})
	}
	handle("GET /pods", func(func(string) int) (any, error) { return len(d.pods), nil })
	handle("GET /server-cpu", func(func(string) int) (any, error) { return d.server.cpu(), nil })
	handle("POST /catch-up", func(number func(string) int) (any, error) { return d.catchUp(number("pid"), number("events")) })
	handle("POST /go", func(number func(string) int) (any, error) {
		go func() {
			if err := d.change(number("events"), number("rate")); err != nil {
				panic(err)
			}
		}()
		return nil, nil
	})
	return mux
}

// catchUp stops the client, changes pods, and lets the client go on. It returns the time at which it does.
func (d *driver) catchUp(pid, events int) (float64, error) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return 0, err
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	if err := d.change(events, 0); err != nil {
		return 0, err
	}
	// The server may still be sending what the client does not read.
	time.Sleep(time.Second)
	reading, _, err := monotonic()
	return reading, err
}

// change changes that many pods, each once, at an even rate if it is not 0.
func (d *driver) change(events, rate int) error {
	numbers := make(chan int64, writers)
	failed := make(chan error, writers)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for number := range numbers {
				if err := d.patch(number); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	begin := time.Now()
	for index := range events {
		if rate > 0 {
			time.Sleep(time.Duration(float64(index)/float64(rate)*float64(time.Second)) - time.Since(begin))
		}
		select {
		case numbers <- d.cursor.Add(1):
		case err := <-failed:
			return err
		}
	}
	close(numbers)
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func (d *driver) patch(number int64) error {
	pod := d.pods[number%int64(len(d.pods))]
	if d.etcd != nil {
		return d.etcd.change(context.Background(), pod.String(), number)
	}
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{"%s":"%012d"}}}`, label, number)
	client := d.metadata.Resource(podsResource).Namespace(pod.Namespace)
	_, err := client.Patch(context.Background(), pod.Name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}
