package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
)

// runSeed writes objects to etcd as the API server would: "delete PREFIX" deletes all keys with a prefix, "put KEY JSON"
// stores an object. Deletions end before the next line is read; objects are stored concurrently.
func runSeed() {
	if err := newEtcd(os.Args[2]).seed(context.Background(), bufio.NewReaderSize(os.Stdin, 1<<20)); err != nil {
		fmt.Fprintln(os.Stderr, "client-go seed:", err)
		os.Exit(1)
	}
}

func (e *etcd) seed(ctx context.Context, in *bufio.Reader) error {
	puts := make(chan [][]byte, writers)
	failed := make(chan error, writers)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for fields := range puts {
				if err := e.put(ctx, fields[1], fields[2]); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	err := e.readSeeds(ctx, in, puts, failed)
	close(puts)
	group.Wait()
	select {
	case failure := <-failed:
		return failure
	default:
		return err
	}
}

func (e *etcd) readSeeds(ctx context.Context, in *bufio.Reader, puts chan<- [][]byte, failed <-chan error) error {
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		fields := bytes.SplitN(bytes.TrimSpace(line), []byte(" "), 3)
		switch {
		case len(fields) == 2 && string(fields[0]) == "delete":
			if err := e.deletePrefix(ctx, fields[1]); err != nil {
				return err
			}
		case len(fields) == 3 && string(fields[0]) == "put":
			select {
			case puts <- fields:
			case err := <-failed:
				return err
			}
		default:
			return fmt.Errorf("unknown line %.80q", line)
		}
	}
}
