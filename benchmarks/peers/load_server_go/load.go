package main

import (
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const (
	// Versions of lists and events begin here, above those of all pods.
	firstVersion = 20_000_000
	clockMono    = 1
	timerSlack   = 29 // PR_SET_TIMERSLACK
)

// command tells a watch what to send.
type command struct {
	kind    string // "events", "bookmark", "expire", "end"
	events  int
	rate    float64
	version int64
}

type load struct {
	forms  map[string]*form
	pods   int
	events int
	// The URL without TLS.
	plaintext string

	mutex   sync.Mutex
	arrived *sync.Cond
	version int64
	watches map[chan command]struct{}
	times   []float64
}

func newLoad(pods [][]byte, metadata bool, tool, annotation string, events int) (*load, error) {
	forms, err := newForms(pods, metadata, tool, annotation)
	if err != nil {
		return nil, err
	}
	made := &load{
		forms: forms, pods: len(pods), events: events, version: firstVersion, watches: map[chan command]struct{}{},
	}
	made.arrived = sync.NewCond(&made.mutex)
	return made, nil
}

// serve serves on a listener until the process ends.
func (l *load) serve(on net.Listener) {
	connections := newListener(on)
	check(http.Serve(connections, l.routes(connections)))
}

func (l *load) routes(connections *listener) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /go", func(out http.ResponseWriter, in *http.Request) {
		rate, _ := strconv.ParseFloat(in.FormValue("rate"), 64)
		events, _ := strconv.Atoi(in.FormValue("events"))
		if events == 0 {
			events = l.events
		}
		l.send(command{kind: "events", events: events, rate: rate})
		writeJSON(out, struct{}{})
	})
	for _, kind := range []string{"bookmark", "expire", "end"} {
		mux.HandleFunc("POST /"+kind, func(out http.ResponseWriter, in *http.Request) {
			l.send(command{kind: kind})
			writeJSON(out, struct{}{})
		})
	}
	mux.HandleFunc("GET /times", func(out http.ResponseWriter, in *http.Request) {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		writeJSON(out, l.times)
	})
	mux.HandleFunc("GET /cpu", func(out http.ResponseWriter, in *http.Request) { writeJSON(out, cpuSeconds()) })
	mux.HandleFunc("GET /plaintext", func(out http.ResponseWriter, in *http.Request) { writeJSON(out, l.plaintext) })
	mux.HandleFunc("GET /watches", func(out http.ResponseWriter, in *http.Request) {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		writeJSON(out, len(l.watches))
	})
	mux.HandleFunc("GET /api/v1/pods", func(out http.ResponseWriter, in *http.Request) {
		if again := l.servePods(out, in); again != nil {
			connections.connections <- again
		}
	})
	for path, body := range discovery() {
		mux.HandleFunc("GET "+path, func(out http.ResponseWriter, in *http.Request) { writeJSON(out, body) })
	}
	return mux
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

// send waits until there is a watch, and sends the command to all watches.
func (l *load) send(what command) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for len(l.watches) == 0 {
		l.arrived.Wait()
	}
	what.version = l.version + 1
	l.version += int64(max(1, what.events))
	if what.kind == "events" {
		l.times = l.times[:0]
	}
	for watch := range l.watches {
		watch <- what
	}
}

func (l *load) formOf(accept string) *form {
	name := "json"
	if strings.Contains(accept, "as=PartialObjectMetadata") {
		name = "metadata"
	}
	if strings.HasPrefix(accept, "application/vnd.kubernetes.protobuf") && l.forms[name+" in protobuf"] != nil {
		name += " in protobuf"
	}
	return l.forms[name]
}

// servePods returns the connection of a watch that has ended, once the client uses it again.
func (l *load) servePods(out http.ResponseWriter, in *http.Request) net.Conn {
	form := l.formOf(in.Header.Get("Accept"))
	if form == nil {
		http.Error(out, "this format is not prepared", http.StatusNotAcceptable)
		return nil
	}
	query := in.URL.Query()
	number := func(name string) int { value, _ := strconv.Atoi(query.Get(name)); return value }
	isTrue := func(name string) bool { value, _ := strconv.ParseBool(query.Get(name)); return value }
	first := l.pods
	if name, value, _ := strings.Cut(query.Get("labelSelector"), "="); name == "first" {
		limit, _ := strconv.Atoi(value)
		first = min(first, limit)
	} else if name == "none" {
		first = 0
	}
	l.mutex.Lock()
	version := l.version
	l.mutex.Unlock()
	if isTrue("watch") {
		if !isTrue("sendInitialEvents") {
			first = -1
		}
		return l.watch(out, form, first, version)
	}
	if form.items == nil {
		http.Error(out, "protobuf supports streaming lists only", http.StatusNotAcceptable)
		return nil
	}
	size, write := form.page(number("limit"), number("continue"), first, version)
	out.Header().Set("Content-Type", form.contentType)
	out.Header().Set("Content-Length", strconv.Itoa(size))
	_ = write(out)
	return nil
}

// watch sends the initial list, unless `first` is negative, and then obeys commands until the client is gone, or the
// watch has ended. Then it returns the connection for the next request.
func (l *load) watch(out http.ResponseWriter, form *form, first int, version int64) net.Conn {
	connection, buffered, err := out.(http.Hijacker).Hijack()
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return nil
	}
	gone := make(chan struct{})
	go func() {
		_, _ = buffered.Reader.Peek(1)
		close(gone)
	}()
	if l.sendWatch(connection, form, first, version, gone) != nil {
		connection.Close()
		return nil
	}
	<-gone
	return used{connection, buffered.Reader}
}

// sendWatch returns an error unless the watch has ended in order.
func (l *load) sendWatch(connection net.Conn, form *form, first int, version int64, gone chan struct{}) error {
	head := "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
	if _, err := fmt.Fprintf(connection, head, form.contentType); err != nil {
		return err
	}
	for number := range max(0, first) {
		if _, err := connection.Write(form.added[number].chunk); err != nil {
			return err
		}
	}
	if first >= 0 {
		if _, err := connection.Write(form.end.with(version, nil)); err != nil {
			return err
		}
	}
	commands := make(chan command, 16)
	l.mutex.Lock()
	l.watches[commands] = struct{}{}
	l.arrived.Broadcast()
	l.mutex.Unlock()
	defer func() {
		l.mutex.Lock()
		delete(l.watches, commands)
		l.mutex.Unlock()
	}()
	for {
		select {
		case <-gone:
			return net.ErrClosed
		case what := <-commands:
			if ended, err := l.obey(connection, form, what); ended || err != nil {
				return err
			}
		}
	}
}

// obey returns whether the watch has ended.
func (l *load) obey(connection net.Conn, form *form, what command) (bool, error) {
	end := []byte("0\r\n\r\n")
	switch what.kind {
	case "events":
		return false, l.sendEvents(connection, form, what)
	case "bookmark":
		_, err := connection.Write(form.bookmark.with(what.version, nil))
		return false, err
	case "expire":
		_, err := connection.Write(append(append([]byte(nil), form.expired...), end...))
		return true, err
	default:
		_, err := connection.Write(end)
		return true, err
	}
}

func (l *load) sendEvents(connection net.Conn, form *form, what command) error {
	// Timers of Go are up to 1 ms late, because they are part of its poller; a thread can sleep to the microsecond.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	syscall.RawSyscall(syscall.SYS_PRCTL, timerSlack, 1, 0)
	times := make([]float64, 0, what.events)
	var buffer []byte
	reading, begin := monotonic()
	for index := range what.events {
		// A stride beyond the number of pods' divisors changes all pods, in no order.
		buffer = form.modified[index*7919%len(form.modified)].with(what.version+int64(index), buffer)
		if what.rate > 0 {
			due := time.Duration(float64(index) / what.rate * float64(time.Second))
			if ahead := due - time.Since(begin); ahead > 0 {
				rest := syscall.NsecToTimespec(int64(ahead))
				_ = syscall.Nanosleep(&rest, nil)
			}
		}
		times = append(times, reading+time.Since(begin).Seconds())
		if _, err := connection.Write(buffer); err != nil {
			return err
		}
	}
	l.mutex.Lock()
	l.times = times
	l.mutex.Unlock()
	return nil
}

// monotonic returns one moment, by the clock that all processes share, in seconds, and by that of this process.
func monotonic() (float64, time.Time) {
	var now syscall.Timespec
	var moment time.Time
	gap := time.Hour
	for range 5 { // the shortest attempt was not interrupted
		before := time.Now()
		var reading syscall.Timespec
		syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMono, uintptr(unsafe.Pointer(&reading)), 0)
		if between := time.Since(before); between < gap {
			gap, now, moment = between, reading, before.Add(between/2)
		}
	}
	return float64(now.Sec) + float64(now.Nsec)/1e9, moment
}

// discovery is for clients that use it first.
func discovery() map[string]any {
	resource := func(name, kind string, namespaced bool, verbs ...string) map[string]any {
		return map[string]any{
			"name": name, "singularName": strings.ToLower(kind), "namespaced": namespaced, "kind": kind, "verbs": verbs,
		}
	}
	return map[string]any{
		"/api":  map[string]any{"kind": "APIVersions", "versions": []string{"v1"}},
		"/apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []string{}},
		"/api/v1": map[string]any{
			"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
				resource("namespaces", "Namespace", false, "get", "list"),
				resource("pods", "Pod", true, "get", "list", "watch"),
			},
		},
	}
}
