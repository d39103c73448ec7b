package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// arrivals notes the first run of each key since the last "expect", and the CPU time of the measured ones.
type arrivals struct {
	mutex       sync.Mutex
	commands    *bufio.Reader
	runs        int
	known       map[types.NamespacedName]bool
	requested   chan event.GenericEvent
	seen        map[string]bool
	keys        []string
	times       []float64
	first, last int
	cpu         float64
	begin       time.Time
	reading     float64
}

type report struct {
	CPU   float64   `json:"cpu"`
	Keys  []string  `json:"keys"`
	Times []float64 `json:"times"`
}

type usage struct {
	Runs int     `json:"runs"`
	CPU  float64 `json:"cpu"`
	KiB  float64 `json:"rss_kib"`
}

func newArrivals() *arrivals {
	return &arrivals{known: map[types.NamespacedName]bool{}, requested: make(chan event.GenericEvent)}
}

// source requests a run of each known key after the command "again".
func (a *arrivals) source() source.Source {
	return source.Channel(a.requested, &handler.EnqueueRequestForObject{})
}

func (a *arrivals) again() {
	a.mutex.Lock()
	names := slices.Collect(maps.Keys(a.known))
	a.mutex.Unlock()
	for _, name := range names {
		about := &Widget{}
		about.Namespace, about.Name = name.Namespace, name.Name
		a.requested <- event.GenericEvent{Object: about}
	}
}

// around notes each run before the reconciler.
func (a *arrivals) around(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		a.note(request.NamespacedName)
		return inner.Reconcile(ctx, request)
	})
}

// after notes each run that succeeded, after it.
func (a *arrivals) after(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		result, err := inner.Reconcile(ctx, request)
		if err == nil {
			a.note(request.NamespacedName)
		}
		return result, err
	})
}

func (a *arrivals) note(name types.NamespacedName) {
	now, key := time.Now(), name.String()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.runs++
	a.known[name] = true
	if len(a.keys) == a.last || a.seen[key] {
		return
	}
	a.seen[key] = true
	a.keys, a.times = append(a.keys, key), append(a.times, a.reading+now.Sub(a.begin).Seconds())
	switch len(a.keys) {
	case a.first:
		a.cpu = cpu()
	case a.last:
		report := report{cpu() - a.cpu, a.keys, a.times}
		go answer(report)
	}
}

func (a *arrivals) expect(before, measured int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.first, a.last = before, before+measured
	a.seen = make(map[string]bool, a.last)
	a.keys, a.times = make([]string, 0, a.last), make([]float64, 0, a.last)
	a.reading, a.begin = monotonic()
	a.cpu = cpu()
}

func (a *arrivals) obeyAll(in io.Reader) {
	for a.obey(in) {
	}
	os.Exit(0)
}

// obey obeys one command: "expect BEFORE MEASURED", "again" or "usage".
func (a *arrivals) obey(in io.Reader) bool {
	if a.commands == nil {
		a.commands = bufio.NewReader(in)
	}
	line, err := a.commands.ReadString('\n')
	if err != nil {
		return false
	}
	var before, measured int
	if strings.TrimSpace(line) == "usage" {
		debug.FreeOSMemory()
		a.mutex.Lock()
		runs := a.runs
		a.mutex.Unlock()
		answer(usage{runs, cpu(), rssKiB()})
	} else if strings.TrimSpace(line) == "again" {
		a.again()
	} else if _, err := fmt.Sscanf(line, "expect %d %d", &before, &measured); err == nil {
		a.expect(before, measured)
		answer(struct{}{})
	} else {
		check(fmt.Errorf("unknown command %q", line))
	}
	return true
}

func answer(value any) {
	line, err := json.Marshal(value)
	check(err)
	_, err = os.Stdout.Write(append(line, '\n'))
	check(err)
}

func cpu() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func rssKiB() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	check(err)
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	check(err)
	return float64(pages*os.Getpagesize()) / 1024
}

// monotonic returns one moment, by the clock that all processes share, in seconds, and by that of this process.
func monotonic() (float64, time.Time) {
	var reading float64
	var moment time.Time
	gap := time.Hour
	for range 5 { // the shortest attempt was not interrupted
		begin := time.Now()
		var now unix.Timespec
		check(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
		if between := time.Since(begin); between < gap {
			gap, moment, reading = between, begin.Add(between/2), float64(now.Sec)+float64(now.Nsec)/1e9
		}
	}
	return reading, moment
}
