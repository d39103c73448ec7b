package main

import (
	"fmt"
	"net/http"
	"sort"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// arrivals notes when the handler was called for each event, and the CPU time of the measured part.
type arrivals struct {
	mutex       sync.Mutex
	times       []float64
	first, last int
	cpu         float64
	finished    float64
	done        chan struct{}
	begin       time.Time
	reading     float64
}

func (a *arrivals) note() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.times = append(a.times, a.reading+time.Since(a.begin).Seconds())
	switch len(a.times) {
	case a.first:
		a.cpu = cpu()
	case a.last:
		a.finished = cpu()
		a.cpu = a.finished - a.cpu
		close(a.done)
	}
}

func (a *arrivals) reset(before, measured int) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.first, a.last = before, before+measured
	a.times = make([]float64, 0, a.last)
	a.done = make(chan struct{})
	var err error
	a.reading, a.begin, err = monotonic()
	return err
}

// monotonic returns one moment, by the clock that all processes share, in seconds, and by that of this process.
func monotonic() (float64, time.Time, error) {
	var reading float64
	var moment time.Time
	gap := time.Hour
	for range 5 { // the shortest attempt was not interrupted
		begin := time.Now()
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			return 0, begin, err
		}
		if between := time.Since(begin); between < gap {
			gap, moment, reading = between, begin.Add(between/2), float64(now.Sec)+float64(now.Nsec)/1e9
		}
	}
	return reading, moment, nil
}

const (
	uneven   = 0.1 // as in benchmarks/lone_events.py
	attempts = 3
)

// run lets the server send events at each rate, and adds the figures to the report.
func (a *arrivals) run(url, rates string, report map[string]any) error {
	for _, each := range strings.Split(rates, ";") {
		var rate, before, measured int
		if _, err := fmt.Sscanf(each, "%d:%d:%d", &rate, &before, &measured); err != nil {
			return fmt.Errorf("-rates %s: %w", each, err)
		}
		for range attempts {
			share, err := a.runRate(url, rate, before, measured, report)
			if err != nil {
				return err
			}
			if share < uneven {
				break
			}
		}
	}
	return nil
}

// runRate returns the share of events that the server sent at uneven times.
func (a *arrivals) runRate(url string, rate, before, measured int, report map[string]any) (float64, error) {
	if err := a.reset(before, measured); err != nil {
		return 0, err
	}
	target := fmt.Sprintf("%s/go?rate=%d&events=%d", url, rate, before+measured)
	if err := call(http.MethodPost, target, nil); err != nil {
		return 0, err
	}
	if err := a.wait(); err != nil {
		return 0, err
	}
	name := fmt.Sprint(rate)
	if rate == 0 {
		name = "flood"
	}
	report["cpu_us_"+name] = a.cpu / float64(measured) * 1e6
	if rate == 0 {
		report["events_per_second_flood"] = float64(measured) / (a.times[a.last-1] - a.times[before-1])
		return 0, nil
	}
	var sent []float64
	if err := call(http.MethodGet, url+"/times", &sent); err != nil {
		return 0, err
	}
	if len(sent) != a.last {
		return 0, fmt.Errorf("the server sent %d events, expected %d", len(sent), a.last)
	}
	var delays []float64
	closer := 0
	for number := before; number < a.last; number++ {
		delays = append(delays, (a.times[number]-sent[number])*1000)
		if sent[number]-sent[number-1] < 0.5/float64(rate) {
			closer++
		}
	}
	sort.Float64s(delays)
	report["p50_ms_"+name] = quantile(delays, 0.5)
	report["p99_ms_"+name] = quantile(delays, 0.99)
	share := float64(closer) / float64(measured)
	report["uneven_share_"+name] = share
	return share, nil
}

func quantile(sorted []float64, share float64) float64 {
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*share))]
}
