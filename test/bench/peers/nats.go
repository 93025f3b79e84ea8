package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// startNATS starts a NATS server with a stream in memory. Viewers subscribe by WebSocket. They get messages without waiting for the stream,
// which is faster than a consumer of it.
func startNATS() (*peer, error) {
	dir, err := os.MkdirTemp("", "leat-bench-nats")
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: dir,
		Websocket: server.WebsocketOpts{Host: "127.0.0.1", Port: -1, NoTLS: true},
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.Start()
	stop := func() {
		s.Shutdown()
		s.WaitForShutdown()
		_ = os.RemoveAll(dir)
	}
	if !s.ReadyForConnections(10 * time.Second) {
		stop()
		return nil, errors.New("nats: not ready")
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		stop()
		return nil, fmt.Errorf("nats: %w", err)
	}
	js, err := conn.JetStream()
	if err == nil {
		_, err = js.AddStream(&nats.StreamConfig{Name: "BENCH", Subjects: []string{"bench.>"}, Storage: nats.MemoryStorage, MaxMsgsPerSubject: historySize})
	}
	ports := s.PortsInfo(time.Second)
	if err != nil || ports == nil || len(ports.WebSocket) == 0 {
		stop()
		return nil, fmt.Errorf("nats: no address for WebSockets: %w", err)
	}
	return &peer{
		viewers: trimScheme(ports.WebSocket[0]),
		publish: func(channel string, token []byte) error { return conn.Publish("bench."+channel, token) },
		close:   func() { conn.Close(); stop() },
	}, nil
}

// trimScheme returns the host and port of a URL such as ws://127.0.0.1:80.
func trimScheme(url string) string {
	for i := range url {
		if i+3 <= len(url) && url[i:i+3] == "://" {
			return url[i+3:]
		}
	}
	return url
}
