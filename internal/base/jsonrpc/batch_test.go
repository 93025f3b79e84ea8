package jsonrpc

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

func TestBatches(t *testing.T) {
	gate := make(chan struct{})
	p := connect(t, func(method string, params json.RawMessage) Work {
		switch method {
		case "echo":
			return func(context.Context) (any, error) { return params, nil }
		case "late":
			return func(context.Context) (any, error) {
				<-gate
				return nil, nil
			}
		case "open":
			close(gate)
		case "withdrawn":
			return func(ctx context.Context) (any, error) {
				<-ctx.Done()
				return nil, ErrNoResponse
			}
		}
		return nil
	})
	p.write(`[{"jsonrpc":"2.0","id":1,"method":"echo"}]`)
	p.wants(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"invalid message: json: cannot unmarshal array into Go value of type jsonrpc.message"}}`)
	p.conn.AcceptBatches(true)
	// The requests run at the same time, and notifications, responses and withdrawn requests have no response.
	p.write(`[{"jsonrpc":"2.0","id":1,"method":"late"},{"jsonrpc":"2.0","id":2,"method":"withdrawn"},{"jsonrpc":"2.0","id":77,"result":{}},` +
		`{"jsonrpc":"2.0","method":"open"},{"jsonrpc":"2.0","method":"cancel","params":{"requestId":2}}]`)
	p.wants(`[{"jsonrpc":"2.0","id":1,"result":{}}]`)
	p.write(`[{"jsonrpc":"2.0","id":"a","method":"echo","params":{"b":1}},7,{}]`)
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var responses []message
	if err := json.Unmarshal(line, &responses); err != nil {
		t.Fatal(err)
	}
	byID := map[string]int{}
	for _, m := range responses {
		byID[string(m.ID)]++
		if m.Version != "2.0" {
			t.Errorf("version %q", m.Version)
		}
	}
	if len(responses) != 3 || byID[`"a"`] != 1 || byID["null"] != 2 {
		t.Errorf("responses %s", line)
	}
	// A batch of notifications has no answer, so the next line is that of the next message.
	p.write(`[{"jsonrpc":"2.0","method":"unknown"},{"jsonrpc":"2.0","method":"unknown"}]`)
	for _, tt := range [][2]string{
		{`[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a batch needs 1 to 1000 messages"}}`},
		{`[` + strings.Repeat(`{},`, maxBatch) + `{}]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a batch needs 1 to 1000 messages"}}`},
		{`[1`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"invalid batch: unexpected end of JSON input"}}`},
	} {
		p.write(tt[0])
		p.wants(tt[1])
	}
	p.conn.AcceptBatches(false)
	p.write(`[]`)
	p.wants(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"invalid message: json: cannot unmarshal array into Go value of type jsonrpc.message"}}`)
}
