package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

// runCluster adds the figures of benchmarks/real_server.py to the report: a stopped client catches up, and a steady rate.
func (a *arrivals) runCluster(driver string, events, rate, before, measured int, report map[string]any) error {
	if err := a.reset(0, events); err != nil {
		return err
	}
	begin := cpu()
	var continued float64
	if err := call(http.MethodPost, fmt.Sprintf("%s/catch-up?pid=%d&events=%d", driver, os.Getpid(), events), &continued); err != nil {
		return err
	}
	if err := a.wait(); err != nil {
		return err
	}
	report["catch_up_us_per_event"] = (a.finished - begin) / float64(events) * 1e6
	report["catch_up_wall_seconds"] = a.times[events-1] - continued
	if err := a.reset(before, measured); err != nil {
		return err
	}
	var serverBefore, serverAfter float64
	if err := call(http.MethodGet, driver+"/server-cpu", &serverBefore); err != nil {
		return err
	}
	if err := call(http.MethodPost, fmt.Sprintf("%s/go?rate=%d&events=%d", driver, rate, before+measured), nil); err != nil {
		return err
	}
	if err := a.wait(); err != nil {
		return err
	}
	if err := call(http.MethodGet, driver+"/server-cpu", &serverAfter); err != nil {
		return err
	}
	report["steady_us_per_event"] = a.cpu / float64(measured) * 1e6
	report["server_us_per_change"] = (serverAfter - serverBefore) / float64(before+measured) * 1e6
	return nil
}

func (a *arrivals) wait() error {
	select {
	case <-a.done:
		return nil
	case <-time.After(2 * time.Minute):
		return fmt.Errorf("only %d of %d events came", len(a.times), a.last)
	}
}

func call(method, url string, into any) error {
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}
