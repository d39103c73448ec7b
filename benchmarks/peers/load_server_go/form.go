package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
)

const (
	digits     = 8
	listSuffix = "List"
)

// form is all responses in one format. An event is prepared as a body, in which the eight digits at some positions are
// the version.
type form struct {
	contentType string
	listHead    string
	items       [][]byte // of lists, in JSON
	added       []prepared
	modified    []prepared
	end         prepared
	bookmark    prepared
	expired     []byte
}

type prepared struct {
	chunk []byte
	at    []int
}

// with writes the chunk with another version into the buffer and returns it.
func (p prepared) with(version int64, buffer []byte) []byte {
	buffer = append(buffer[:0], p.chunk...)
	for _, begin := range p.at {
		rest := version
		for at := begin + digits - 1; at >= begin; at-- {
			buffer[at] = byte('0' + rest%10)
			rest /= 10
		}
	}
	return buffer
}

func chunked(body []byte) []byte {
	chunk := append(strconv.AppendInt(nil, int64(len(body)), 16), "\r\n"...)
	return append(append(chunk, body...), "\r\n"...)
}

// prepare finds the digits behind each of the given bytes.
func prepare(body []byte, places []string) (prepared, error) {
	made := prepared{chunk: chunked(body)}
	for _, before := range places {
		at := bytes.Index(made.chunk, []byte(before))
		if at < 0 || at+len(before)+digits > len(made.chunk) {
			return prepared{}, fmt.Errorf("no %q in %.200q", before, body)
		}
		at += len(before)
		for _, digit := range made.chunk[at : at+digits] {
			if digit < '0' || digit > '9' {
				return prepared{}, fmt.Errorf("%q is not before %d digits in %.200q", before, digits, body)
			}
		}
		made.at = append(made.at, at)
	}
	return made, nil
}

// jsonPlaces returns what is before the version, and before the value of an annotation that equals it, if there is one.
func jsonPlaces(annotation string) []string {
	if annotation == "" {
		return []string{jsonBefore}
	}
	return []string{jsonBefore, fmt.Sprintf(`"%s":"`, annotation)}
}

// protobufPlaces returns the same for protobuf: the annotation is an entry of a map, key and value.
func protobufPlaces(annotation string) []string {
	if annotation == "" {
		return []string{protobufBefore}
	}
	return []string{protobufBefore, fmt.Sprintf("\x0a%c%s\x12%c", len(annotation), annotation, digits)}
}

const (
	jsonBefore = `"resourceVersion":"`
	// resourceVersion is field 6 of the metadata, a string.
	protobufBefore = "\x32\x08"
	expired        = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
		`"message":"too old resource version","reason":"Expired","code":410}}` + "\n"
	endMark = `"annotations":{"k8s.io/initial-events-end":"true"}`
)

// lines returns all events as JSON, one a line: one ADDED for each pod, the end of the initial list, a bookmark, 410.
func lines(items [][]byte, kind, apiVersion string) [][]byte {
	head := fmt.Sprintf(`"kind":"%s","apiVersion":"%s"`, kind, apiVersion)
	mark := `{"type":"BOOKMARK","object":{%s,"metadata":{"resourceVersion":"10000000"%s}}}` + "\n"
	all := make([][]byte, 0, len(items)+3)
	for _, item := range items {
		all = append(all, fmt.Appendf(nil, `{"type":"ADDED","object":{%s,%s}`+"\n", head, item[1:]))
	}
	return append(all, fmt.Appendf(nil, mark, head, ","+endMark), fmt.Appendf(nil, mark, head, ""), []byte(expired))
}

func newForm(items [][]byte, kind, apiVersion, annotation string) (*form, error) {
	all := lines(items, kind, apiVersion)
	modified := make([][]byte, len(items))
	for number := range items {
		modified[number] = bytes.Replace(all[number], []byte(`"ADDED"`), []byte(`"MODIFIED"`), 1)
	}
	listHead := fmt.Sprintf(`"kind":"%s","apiVersion":"%s"`, kind+listSuffix, apiVersion)
	made := &form{contentType: "application/json", listHead: listHead, items: items}
	return made, made.fill(all, modified, jsonPlaces(annotation))
}

// newProtobuf encodes the same events by a tool, which reads JSON and writes frames.
func newProtobuf(items [][]byte, kind, apiVersion, annotation string, command []string) (*form, error) {
	tool := exec.Command(command[0], command[1:]...)
	tool.Stdin = bytes.NewReader(bytes.Join(lines(items, kind, apiVersion), nil))
	tool.Stderr = os.Stderr
	out, err := tool.Output()
	if err != nil {
		return nil, err
	}
	var frames [][]byte
	for len(out) > 0 {
		size := 4 + int(binary.BigEndian.Uint32(out))
		frames, out = append(frames, out[:size:size]), out[size:]
	}
	if len(frames) != len(items)+3 {
		return nil, fmt.Errorf("%s: %d frames, expected %d", command[0], len(frames), len(items)+3)
	}
	modified := make([][]byte, len(items))
	for number, frame := range frames[:len(items)] {
		rest, found := bytes.CutPrefix(frame[4:], []byte("\x0a\x05ADDED"))
		if !found {
			return nil, fmt.Errorf("unexpected frame %.40q", frame)
		}
		changed := binary.BigEndian.AppendUint32(nil, uint32(len(frame)-4+len("MODIFIED")-len("ADDED")))
		modified[number] = append(append(changed, "\x0a\x08MODIFIED"...), rest...)
	}
	made := &form{contentType: "application/vnd.kubernetes.protobuf;stream=watch"}
	return made, made.fill(frames, modified, protobufPlaces(annotation))
}

func (f *form) fill(all, modified [][]byte, places []string) error {
	count := len(modified)
	f.added, f.modified = make([]prepared, count), make([]prepared, count)
	var err error
	put := func(to *prepared, body []byte, places []string) {
		if err == nil {
			*to, err = prepare(body, places)
		}
	}
	for number := range count {
		put(&f.added[number], all[number], places)
		put(&f.modified[number], modified[number], places)
	}
	put(&f.end, all[count], places[:1])
	put(&f.bookmark, all[count+1], places[:1])
	f.expired = chunked(all[count+2])
	return err
}

// page writes a page of the list of the first pods to `out`, and returns its size before it does.
func (f *form) page(limit, start, first int, version int64) (int, func(out io.Writer) error) {
	stop := first
	if limit > 0 {
		stop = min(start+limit, first)
	}
	stop = max(start, stop)
	token := ""
	if left := first - stop; left > 0 {
		token = fmt.Sprintf(`"continue":"%d","remainingItemCount":%d,`, stop, left)
	}
	head := fmt.Sprintf(`{%s,"metadata":{%s"resourceVersion":"%d"},"items":[`, f.listHead, token, version)
	tail := "]}\n"
	size := len(head) + len(tail) + max(0, stop-start-1)
	for _, item := range f.items[start:stop] {
		size += len(item)
	}
	return size, func(out io.Writer) error {
		body := append(make([]byte, 0, size), head...)
		for number, item := range f.items[start:stop] {
			if number > 0 {
				body = append(body, ',')
			}
			body = append(body, item...)
		}
		_, err := out.Write(append(body, tail...))
		return err
	}
}

func metadataOf(pods [][]byte) ([][]byte, error) {
	items := make([][]byte, len(pods))
	for number, pod := range pods {
		at := bytes.Index(pod, []byte(`,"spec":`))
		if at < 0 {
			return nil, fmt.Errorf("no spec in %.200q", pod)
		}
		items[number] = append(pod[:at:at], '}')
	}
	return items, nil
}

func newForms(pods [][]byte, metadata bool, tool, annotation string) (map[string]*form, error) {
	var command []string
	if tool != "" {
		if err := json.Unmarshal([]byte(tool), &command); err != nil {
			return nil, err
		}
	}
	type source struct {
		name, kind, apiVersion string
		items                  [][]byte
	}
	sources := []source{{"json", "Pod", "v1", pods}}
	if metadata {
		items, err := metadataOf(pods)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source{"metadata", "PartialObjectMetadata", "meta.k8s.io/v1", items})
	}
	forms := map[string]*form{}
	for _, each := range sources {
		made, err := newForm(each.items, each.kind, each.apiVersion, annotation)
		if err != nil {
			return nil, err
		}
		forms[each.name] = made
		if len(command) > 0 {
			encoded, err := newProtobuf(each.items, each.kind, each.apiVersion, annotation, command)
			if err != nil {
				return nil, err
			}
			forms[each.name+" in protobuf"] = encoded
		}
	}
	return forms, nil
}
