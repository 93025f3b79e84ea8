package memory

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// Both ends write more than the pipe holds; each blocks until the other end reads, and no byte is lost.
func TestPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := newPipe()
		sent := bytes.Repeat([]byte("0123456789"), maxUnread/5)
		done := make(chan error, 1)
		go func() {
			_, err := client.Write(sent)
			done <- errors.Join(err, client.Close())
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("the write did not wait for the reader")
		default:
		}
		got, err := io.ReadAll(server)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Both ends can write at the same moment before either reads, as two peers do that ping each other.
func TestPipeBothWrite(t *testing.T) {
	client, server := newPipe()
	for _, e := range []io.Writer{client, server} {
		if _, err := io.WriteString(e, "ping"); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []io.Reader{client, server} {
		if n, err := e.Read(make([]byte, 10)); n != 4 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
}

func TestPipeClosed(t *testing.T) {
	client, server := newPipe()
	if err := client.SetDeadline(time.Now()); !errors.Is(err, os.ErrNoDeadline) {
		t.Errorf("a deadline: %v", err)
	}
	if _, err := io.WriteString(client, "last"); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("read from a closed end: %v", err)
	}
	if _, err := server.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("write to a closed end: %v", err)
	}
	if b, err := io.ReadAll(server); string(b) != "last" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}
