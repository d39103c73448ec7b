package main

import (
	"bufio"
	"net"
)

// listener accepts new connections, and those on which a watch has ended: as with any server, the next request may come
// by the same connection.
type listener struct {
	net.Listener
	connections chan net.Conn
}

func newListener(inner net.Listener) *listener {
	made := &listener{inner, make(chan net.Conn)}
	go func() {
		for {
			connection, err := inner.Accept()
			check(err)
			made.connections <- connection
		}
	}()
	return made
}

func (l *listener) Accept() (net.Conn, error) { return <-l.connections, nil }

// used is a connection with what was read and not consumed.
type used struct {
	net.Conn
	in *bufio.Reader
}

func (u used) Read(into []byte) (int, error) { return u.in.Read(into) }
