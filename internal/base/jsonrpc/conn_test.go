package jsonrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is the other side of a connection, which writes and reads lines.
type peer struct {
	t    *testing.T
	conn *Conn
	in   *io.PipeWriter
	out  *bufio.Reader
	done chan error
}

func connect(t *testing.T, handle func(string, json.RawMessage) Work) *peer {
	t.Helper()
	input, in := io.Pipe()
	out, output := io.Pipe()
	p := &peer{t: t, in: in, out: bufio.NewReader(out), done: make(chan error, 1)}
	p.conn = New(Options{Output: output, Handle: handle, CancelMethod: "cancel"})
	go func() { p.done <- p.conn.Serve(t.Context(), input) }()
	t.Cleanup(func() {
		_ = in.Close() // ends Serve, if the test has not
		_ = out.Close()
	})
	return p
}

func (p *peer) write(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) wants(line string) {
	p.t.Helper()
	got, err := p.out.ReadString('\n')
	if err != nil || strings.TrimSpace(got) != line {
		p.t.Fatalf("%v\ngot  %swant %s", err, got, line)
	}
}

func TestRequests(t *testing.T) {
	p := connect(t, func(method string, params json.RawMessage) Work {
		switch method {
		case "echo":
			return func(context.Context) (any, error) { return params, nil }
		case "nothing":
			return func(context.Context) (any, error) { return nil, nil }
		case "decode":
			var n int
			err := Decode(params, &n)
			return func(context.Context) (any, error) { return n, err }
		case "fail":
			return func(context.Context) (any, error) { return nil, errors.New("broken") }
		case "wait":
			return func(ctx context.Context) (any, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}
		return nil
	})
	for _, tt := range [][2]string{
		{`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1}}`, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`},
		{`{"jsonrpc":"2.0","id":"x","method":"nothing"}`, `{"jsonrpc":"2.0","id":"x","result":{}}`},
		{`{"jsonrpc":"2.0","id":2,"method":"unknown"}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"unknown method unknown"}}`},
		{`{"jsonrpc":"2.0","id":3,"method":"fail"}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"broken"}}`},
		{`{"jsonrpc":"2.0","id":4,"method":"decode","params":"a"}`, `{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"invalid params: json: cannot unmarshal string into Go value of type int"}}`},
		{`[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"invalid message: json: cannot unmarshal array into Go value of type jsonrpc.message"}}`},
		{`{}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message needs a method or an id"}}`},
	} {
		p.write(tt[0])
		p.wants(tt[1])
	}
	// Notifications, canceled requests without a waiting peer, and late responses get no answer.
	p.write(`{"jsonrpc":"2.0","method":"unknown"}` + "\n\n" + `{"jsonrpc":"2.0","method":"cancel","params":{"requestId":77}}` + "\n" + `{"jsonrpc":"2.0","id":9,"result":{}}`)
	p.write(`{"jsonrpc":"2.0","id":6,"method":"wait"}`)
	p.write(`{"jsonrpc":"2.0","method":"cancel","params":{"requestId":6}}`)
	p.wants(`{"jsonrpc":"2.0","id":6,"error":{"code":-32800,"message":"the request was canceled"}}`)
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-p.done; err != nil {
		t.Errorf("the end of the input is an error: %v", err)
	}
}

func TestCalls(t *testing.T) {
	p := connect(t, func(string, json.RawMessage) Work { return nil })
	var result struct{ A int }
	errs := make(chan error, 1)
	go func() { errs <- p.conn.Call(t.Context(), "ask", map[string]int{"b": 2}, &result) }()
	p.wants(`{"jsonrpc":"2.0","id":1,"method":"ask","params":{"b":2}}`)
	p.write(`{"jsonrpc":"2.0","id":1,"result":{"a":3}}`)
	if err := <-errs; err != nil || result.A != 3 {
		t.Fatalf("%v %v", err, result)
	}
	go func() { errs <- p.conn.Call(t.Context(), "ask", nil, nil) }()
	p.wants(`{"jsonrpc":"2.0","id":2,"method":"ask","params":{}}`)
	p.write(`{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}`)
	var failure *Error
	if err := <-errs; !errors.As(err, &failure) || failure.Code != -1 {
		t.Fatalf("%v", err)
	}
	// A call that is given up is withdrawn.
	ctx, cancel := context.WithCancel(t.Context())
	go func() { errs <- p.conn.Call(ctx, "ask", nil, nil) }()
	p.wants(`{"jsonrpc":"2.0","id":3,"method":"ask","params":{}}`)
	cancel()
	p.wants(`{"jsonrpc":"2.0","method":"cancel","params":{"requestId":3}}`)
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	// A call ends with the connection.
	go func() { errs <- p.conn.Call(t.Context(), "ask", nil, nil) }()
	p.wants(`{"jsonrpc":"2.0","id":4,"method":"ask","params":{}}`)
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-errs; !errors.Is(err, ErrClosed) {
		t.Fatalf("%v", err)
	}
}

// A line above the limit ends the connection.
func TestTooLong(t *testing.T) {
	c := New(Options{Output: io.Discard, Handle: func(string, json.RawMessage) Work { return nil }})
	err := c.Serve(t.Context(), io.LimitReader(zeros{}, maxLine+1))
	if !errors.Is(err, errTooLong) {
		t.Errorf("%v", err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
