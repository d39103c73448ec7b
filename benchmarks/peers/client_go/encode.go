// encode reads watch events as JSON from stdin, one per line, and writes them as a server does in protobuf.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	corev1 "k8s.io/api/core/v1"
)

type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

func objectOf(raw []byte) (runtime.Object, error) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(raw, &kind); err != nil {
		return nil, err
	}
	var object runtime.Object
	switch kind.Kind {
	case "Status":
		object = &metav1.Status{}
	case "PartialObjectMetadata":
		object = &metav1.PartialObjectMetadata{}
	default:
		object = &corev1.Pod{}
	}
	return object, json.Unmarshal(raw, object)
}

func encode(in io.Reader, out io.Writer) error {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	buffered := bufio.NewWriterSize(out, 1<<20)
	frames := info.StreamSerializer.Framer.NewFrameWriter(buffered)
	decoder := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	for {
		var line event
		if err := decoder.Decode(&line); err == io.EOF {
			return buffered.Flush()
		} else if err != nil {
			return err
		}
		object, err := objectOf(line.Object)
		if err != nil {
			return err
		}
		var raw bytes.Buffer
		if err := info.Serializer.Encode(object, &raw); err != nil {
			return err
		}
		watchEvent := &metav1.WatchEvent{Type: line.Type, Object: runtime.RawExtension{Raw: raw.Bytes()}}
		if err := info.StreamSerializer.Encode(watchEvent, frames); err != nil {
			return err
		}
	}
}

func runEncode() {
	if err := encode(os.Stdin, os.Stdout); err != nil {
		panic(err)
	}
}
