package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

const unchanged = "000000000000"

// etcd writes pods directly. A write costs a tenth of one by the API server, which would otherwise limit the rate of
// changes. The API server sends the same events.
type etcd struct {
	url    string
	client http.Client
	mutex  sync.Mutex
	pods   map[string]*stored
}

func newEtcd(url string) *etcd {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	return &etcd{url: url, client: http.Client{Transport: &http.Transport{Protocols: protocols}}, pods: map[string]*stored{}}
}

// stored is the value of a pod, and the position of the digits that change.
type stored struct {
	key   []byte
	value []byte
	at    int
}

// create stores the whole pod, with its managed fields.
func (e *etcd) create(ctx context.Context, pod *corev1.Pod) error {
	pod.APIVersion, pod.Kind, pod.ResourceVersion = "v1", "Pod", ""
	pod.Annotations[label] = unchanged
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	var value bytes.Buffer
	if err := info.Serializer.Encode(pod, &value); err != nil {
		return err
	}
	at := bytes.Index(value.Bytes(), []byte(unchanged))
	if at < 0 {
		return fmt.Errorf("%s has no annotation to change", pod.Name)
	}
	key := fmt.Appendf(nil, "/registry/pods/%s/%s", pod.Namespace, pod.Name)
	made := &stored{key: key, value: value.Bytes(), at: at}
	e.mutex.Lock()
	e.pods[pod.Namespace+"/"+pod.Name] = made
	e.mutex.Unlock()
	return e.put(ctx, made.key, made.value)
}

func (e *etcd) change(ctx context.Context, name string, number int64) error {
	pod := e.pods[name]
	copy(pod.value[pod.at:], fmt.Sprintf("%0*d", len(unchanged), number))
	return e.put(ctx, pod.key, pod.value)
}

func (e *etcd) put(ctx context.Context, key, value []byte) error {
	return e.call(ctx, "Put", key, value)
}

// deletePrefix deletes all keys with a prefix, which must not end with the highest byte.
func (e *etcd) deletePrefix(ctx context.Context, prefix []byte) error {
	end := bytes.Clone(prefix)
	end[len(end)-1]++
	return e.call(ctx, "DeleteRange", prefix, end)
}

// call calls a method of etcdserverpb.KV by gRPC: one message with the first fields, which are bytes, its length in
// front, and the status in the trailer.
func (e *etcd) call(ctx context.Context, method string, fields ...[]byte) error {
	var message []byte
	for field, value := range fields {
		message = append(message, byte((field+1)<<3|2))
		message = append(binary.AppendUvarint(message, uint64(len(value))), value...)
	}
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	url := e.url + "/etcdserverpb.KV/" + method
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	response, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	status, reason := response.Trailer.Get("Grpc-Status"), response.Trailer.Get("Grpc-Message")
	if response.StatusCode != http.StatusOK || status != "0" {
		return fmt.Errorf("etcd: %s, status %q: %s", response.Status, status, reason)
	}
	return nil
}
