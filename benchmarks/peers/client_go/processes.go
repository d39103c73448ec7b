package main

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processes are those of a local API server and its etcd.
type processes []string

const (
	listening      = "0A"
	ticksPerSecond = 100 // of the kernel's interface, on any machine
)

// serverProcesses finds the processes that listen at the addresses. It finds none of another machine.
func serverProcesses(addresses ...string) processes {
	var found processes
	for _, address := range addresses {
		parsed, err := url.Parse(address)
		if err != nil {
			continue
		}
		host := net.ParseIP(parsed.Hostname())
		if parsed.Hostname() != "localhost" && (host == nil || !host.IsLoopback()) {
			continue
		}
		socket := listeningSocket(parsed.Port())
		folders, _ := filepath.Glob("/proc/[0-9]*")
		for _, folder := range folders {
			if socket != "" && hasFile(folder, socket) {
				found = append(found, folder)
			}
		}
	}
	return found
}

func listeningSocket(port string) string {
	number, err := strconv.Atoi(port)
	if err != nil {
		return ""
	}
	suffix := fmt.Sprintf(":%04X", number)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(table)
		if err != nil {
			continue
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) > 9 && strings.HasSuffix(fields[1], suffix) && fields[3] == listening {
				return "socket:[" + fields[9] + "]"
			}
		}
	}
	return ""
}

func hasFile(folder, target string) bool {
	files, _ := filepath.Glob(folder + "/fd/*")
	for _, file := range files {
		if found, err := os.Readlink(file); err == nil && found == target {
			return true
		}
	}
	return false
}

// cpu returns the seconds of user and system time.
func (p processes) cpu() float64 {
	total := 0.0
	for _, folder := range p {
		text, err := os.ReadFile(folder + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, _ := strconv.ParseFloat(field, 64)
			total += ticks / ticksPerSecond
		}
	}
	return total
}
