// A load server that sends events as an API server does: over TLS, and each event by a write of its own, so that it is
// one chunk and one TLS record.
//
//	load-server -ca FILE [-metadata] [-annotation KEY] [-protobuf-tool '["client-go","encode"]'] < pods as JSON, one a line
//
// The first line on stdout is the URL. Without -ca it serves plaintext. The API is that of benchmarks/load_server.py,
// with these differences:
//
//   - POST /go?rate=4000&events=12000 sends that many events, evenly paced. Each is a new version of a pod. Versions
//     increase over the life of the server.
//   - POST /bookmark sends a bookmark to each watch, and POST /end closes all watches at the end of a chunk.
//   - GET /cpu returns the CPU seconds of the server, GET /watches the number of open watches, and GET /plaintext the URL
//     of the same server without TLS.
//   - labelSelector=none=... selects no pods.
//
// All versions have eight digits, so an event is a copy of a prepared one with another version. With -annotation, the
// value of that annotation changes with it, so that clients that ignore the version see a change.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

func main() {
	ca := flag.String("ca", "", "serve TLS, and write the certificate of the authority to this file")
	metadata := flag.Bool("metadata", false, "also serve metadata only")
	tool := flag.String("protobuf-tool", "", "also serve watches in protobuf; the command that encodes them, as a JSON list")
	annotation := flag.String("annotation", "", "an annotation of eight digits, which changes with each event")
	events := flag.Int("events", 20_000, "the number of events, if the request does not give one")
	seconds := flag.Float64("seconds", 3600, "exit after this time")
	flag.Parse()

	pods, err := readLines()
	check(err)
	load, err := newLoad(pods, *metadata, *tool, *annotation, *events)
	check(err)
	// All data is prepared and buffers are used again: collections would only disturb the pace.
	debug.FreeOSMemory()
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(8 << 30)
	// A thread that sleeps keeps its processor while others are idle, even if all share one core.
	runtime.GOMAXPROCS(4)

	plain, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	load.plaintext = fmt.Sprintf("http://%s", plain.Addr())
	url := load.plaintext
	if *ca != "" {
		certificate, authority, err := newCertificate()
		check(err)
		check(os.WriteFile(*ca, authority, 0o644))
		listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
			Certificates: []tls.Certificate{certificate},
			MinVersion:   tls.VersionTLS13,
			// A write of up to 16 KiB is one record from the start of a connection.
			DynamicRecordSizingDisabled: true,
		})
		check(err)
		url = fmt.Sprintf("https://%s", listener.Addr())
		go load.serve(listener)
	}
	fmt.Println(url)
	time.AfterFunc(time.Duration(*seconds*float64(time.Second)), func() { os.Exit(0) })
	load.serve(plain)
}

func readLines() ([][]byte, error) {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	var lines [][]byte
	for {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			lines = append(lines, line)
		}
		if err != nil {
			if len(lines) == 0 {
				return nil, fmt.Errorf("no pods on stdin: %w", err)
			}
			return lines, nil
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "load-server:", err)
		os.Exit(1)
	}
}

func writeJSON(out http.ResponseWriter, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	out.Header().Set("Content-Type", "application/json")
	out.Header().Set("Content-Length", fmt.Sprint(len(body)))
	_, _ = out.Write(body)
}
