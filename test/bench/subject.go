package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
)

// subject is a program with conversations that tokens are sent to and viewers read from.
type subject struct {
	name  string // column of the table
	kind  string // how viewers connect: SSE or WebSocket; "" if the figures belong to both
	start func(ctx context.Context, e *env, conversations int) (*target, error)
}

// target is a running subject.
type target struct {
	*process
	memory   func(context.Context) (memory, error)
	viewer   func(conversation int) access
	producer func(ctx context.Context, c *crowd, conversation int) (*producer, error)
	// profile writes a CPU profile for the next seconds, if that was requested. The returned function waits for it.
	profile func(ctx context.Context, name string) (finish func() error)
	log     func() string // the end of the program's log

	hasHistory bool // a new viewer gets the earlier tokens
}

// leat returns the subject Leat with one kind of viewers.
func leat(kind string) subject {
	return subject{name: "Leat", kind: kind, start: func(ctx context.Context, e *env, conversations int) (*target, error) {
		g, err := e.leat.start(ctx, e.dir, "demo")
		if err != nil {
			return nil, err
		}
		err = each(conversations, func(i int) error { return g.create(ctx, conversationID(i)) })
		if err != nil {
			return nil, errors.Join(err, g.stop())
		}
		return &target{
			process: g.process, memory: g.memory, log: g.logTail, hasHistory: true,
			viewer: func(i int) access {
				if kind == "WebSocket" {
					return socketAccess(g.addr, conversationID(i))
				}
				return eventsAccess(g.addr, conversationID(i), "")
			},
			producer: func(ctx context.Context, c *crowd, i int) (*producer, error) {
				return push(ctx, c, g.addr, conversationID(i))
			},
			profile: func(ctx context.Context, name string) func() error { return g.profileFor(ctx, name, e.size.fanoutTime) },
		}, nil
	}}
}

func conversationID(i int) string { return fmt.Sprintf("bench-%04d", i) }

// eventsAccess reads a conversation by SSE, from a cursor on if there is one.
func eventsAccess(addr, conversation, cursor string) access {
	request := "GET /api/conversations/" + conversation + "/events HTTP/1.1\r\nHost: " + addr + "\r\nAccept: text/event-stream\r\n"
	if cursor != "" {
		request += "Last-Event-ID: " + cursor + "\r\n"
	}
	return access{addr: addr, request: []byte(request + "\r\n"), framing: &response{}, ready: `"type":"hello"`, count: "id: "}
}

// socketAccess reads a conversation by WebSocket.
func socketAccess(addr, conversation string) access {
	subscribe := textFrame(`{"type":"subscribe","conversation":"` + conversation + `"}`)
	return access{addr: addr, request: upgrade(addr, "/api/ws"), framing: &response{after: subscribe}, ready: `"type":"subscribed"`, count: `"type":"batch"`}
}

// raw returns the baseline [fan] in one of its modes, with frames as long as those of the gateway.
func raw(mode string) subject { return rawSized(mode, 0, false) }

// rawSized returns the baseline [fan] with frames of size bytes or, if that is 0, as long as those of the gateway. It can make each
// frame durable first, as the gateway does.
func rawSized(mode string, size int, isDurable bool) subject {
	return subject{name: "raw, " + mode, start: func(ctx context.Context, e *env, _ int) (*target, error) {
		if err := e.probe(ctx); err != nil {
			return nil, err
		}
		args := []string{mode, strconv.Itoa(cmp.Or(size, e.frameSize))}
		if isDurable {
			args = append(args, e.dir)
		}
		child, err := startChild("fan", args...)
		if err != nil {
			return nil, err
		}
		return lineTarget(child), nil
	}}
}

// lineTarget returns the target of a program whose connections begin with "P <n>" or "V <n>".
func lineTarget(p *process) *target {
	first := func(role string, i int) access {
		return access{addr: p.addr, request: []byte(role + " " + strconv.Itoa(i) + "\n"), framing: noFraming{}, ready: acceptLine}
	}
	return &target{
		process: p, memory: p.memory, log: func() string { return "" },
		viewer: func(i int) access { return first("V", i) },
		producer: func(ctx context.Context, c *crowd, i int) (*producer, error) {
			return connectProducer(ctx, c, first("P", i))
		},
		profile: func(context.Context, string) func() error { return func() error { return nil } },
	}
}

// fans returns the subjects of a fan-out: both baselines, Leat with both kinds of viewers, and the peers.
func (e *env) fans() []subject {
	return append([]subject{raw("loop"), raw("writers"), leat("SSE"), leat("WebSocket")}, e.peers()...)
}

// peers returns the peers if they were requested. They are a module of their own, whose program has the same interface as [fan], except
// that its viewers speak the peer's protocol.
func (e *env) peers() []subject {
	if e.peerPath == "" {
		return nil
	}
	centrifuge := subject{name: "Centrifuge", kind: "WebSocket", start: func(context.Context, *env, int) (*target, error) {
		p, err := startCommand("centrifuge", exec.Command(e.peerPath, "centrifuge"))
		if err != nil {
			return nil, err
		}
		t := lineTarget(p)
		t.viewer = func(i int) access {
			join := append(textFrame(`{"id":1,"connect":{}}`), textFrame(`{"id":2,"subscribe":{"channel":"`+strconv.Itoa(i)+`"}}`)...)
			return access{addr: p.viewerAddr, request: upgrade(p.viewerAddr, "/"), framing: &response{after: join}, ready: `"id":2`}
		}
		return t, nil
	}}
	nats := subject{name: "NATS", kind: "WebSocket", start: func(context.Context, *env, int) (*target, error) {
		p, err := startCommand("nats", exec.Command(e.peerPath, "nats"))
		if err != nil {
			return nil, err
		}
		t := lineTarget(p)
		t.viewer = func(i int) access {
			join := textFrame("CONNECT {\"verbose\":false}\r\nSUB bench." + strconv.Itoa(i) + " 1\r\nPING\r\n")
			return access{addr: p.viewerAddr, request: upgrade(p.viewerAddr, "/"), framing: &response{after: join}, ready: "PONG"}
		}
		return t, nil
	}}
	return []subject{centrifuge, nats}
}
