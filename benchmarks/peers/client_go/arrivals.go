package main

import (
	"encoding/json"
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

// run lets the server send events at each rate, and adds the figures to the report.
func (a *arrivals) run(url, rates string, report map[string]any) error {
	for _, each := range strings.Split(rates, ";") {
		var rate, before, measured int
		if _, err := fmt.Sscanf(each, "%d:%d:%d", &rate, &before, &measured); err != nil {
			return fmt.Errorf("-rates %s: %w", each, err)
		}
		if err := a.reset(before, measured); err != nil {
			return err
		}
		name := fmt.Sprint(rate)
		if rate == 0 {
			name = "flood"
		}
		response, err := http.Post(fmt.Sprintf("%s/go?rate=%d&events=%d", url, rate, before+measured), "", nil)
		if err != nil {
			return err
		}
		response.Body.Close()
		if err := a.wait(); err != nil {
			return err
		}
		report["cpu_us_"+name] = a.cpu / float64(measured) * 1e6
		if rate == 0 {
			report["events_per_second_flood"] = float64(measured) / (a.times[a.last-1] - a.times[before-1])
			continue
		}
		delays, err := a.delays(url, before)
		if err != nil {
			return err
		}
		report["p50_ms_"+name] = quantile(delays, 0.5)
		report["p99_ms_"+name] = quantile(delays, 0.99)
	}
	return nil
}

// delays returns the sorted times from the server's write to the handler, in milliseconds.
func (a *arrivals) delays(url string, before int) ([]float64, error) {
	response, err := http.Get(url + "/times")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var sent []float64
	if err := json.NewDecoder(response.Body).Decode(&sent); err != nil {
		return nil, err
	}
	if len(sent) != a.last {
		return nil, fmt.Errorf("the server sent %d events, expected %d", len(sent), a.last)
	}
	var delays []float64
	for number := before; number < a.last; number++ {
		delays = append(delays, (a.times[number]-sent[number])*1000)
	}
	sort.Float64s(delays)
	return delays, nil
}

func quantile(sorted []float64, share float64) float64 {
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*share))]
}
