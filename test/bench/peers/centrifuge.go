package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"time"

	"github.com/centrifugal/centrifuge"
)

const (
	historySize = 1000 // messages of a channel
	historyTime = 10 * time.Minute
)

// startCentrifuge starts a node of Centrifuge with its memory broker, which keeps a history of each channel.
func startCentrifuge() (*peer, error) {
	node, err := centrifuge.New(centrifuge.Config{LogLevel: centrifuge.LogLevelError})
	if err != nil {
		return nil, err
	}
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return centrifuge.ConnectReply{Credentials: &centrifuge.Credentials{UserID: "bench"}}, nil
	})
	node.OnConnect(func(client *centrifuge.Client) {
		client.OnSubscribe(func(_ centrifuge.SubscribeEvent, answer centrifuge.SubscribeCallback) {
			answer(centrifuge.SubscribeReply{Options: centrifuge.SubscribeOptions{EnableRecovery: true}}, nil)
		})
	})
	if err := node.Run(); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	// The load answers no pings, so they are sent without waiting for an answer.
	handler := centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{
		PingPongConfig: centrifuge.PingPongConfig{PingInterval: 15 * time.Second, PongTimeout: -1},
		CheckOrigin:    func(*http.Request) bool { return true },
	})
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(l) }()
	return &peer{
		viewers: l.Addr().String(),
		publish: func(channel string, token []byte) error {
			data, err := json.Marshal(map[string]string{"text": string(token)})
			if err != nil {
				return err
			}
			_, err = node.Publish(channel, data, centrifuge.WithHistory(historySize, historyTime))
			return err
		},
		close: func() {
			_ = server.Close()
			_ = node.Shutdown(context.Background())
		},
	}, nil
}
