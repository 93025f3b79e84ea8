package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/service/quota"
)

// A host gets the revision that it wants, or the newest one if the server doesn't know it.
func TestInitialize(t *testing.T) {
	p := connect(t, newGateway(t, quota.Limits{}))
	for wanted, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "2099-01-01": "2025-11-25", "": "2025-11-25",
	} {
		var got struct {
			ProtocolVersion, Instructions string
			Capabilities                  map[string]any
			ServerInfo                    struct{ Name, Version string }
		}
		m := p.response(p.send("initialize", map[string]any{"protocolVersion": wanted, "capabilities": map[string]any{}, "clientInfo": map[string]string{"name": "test", "version": "1"}}))
		if err := json.Unmarshal(m.Result, &got); err != nil {
			t.Fatal(err)
		}
		if _, hasTools := got.Capabilities["tools"]; got.ProtocolVersion != want || !hasTools || len(got.Capabilities) != 1 || got.ServerInfo.Name != "leat" || got.ServerInfo.Version != "1" || got.Instructions == "" {
			t.Errorf("%s: %s", wanted, m.Result)
		}
	}
}

// What isn't a request of the protocol gets an error of the protocol, and the server continues.
func TestProtocolErrors(t *testing.T) {
	p := connect(t, newGateway(t, quota.Limits{}))
	for _, tt := range []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":1,`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"invalid message: unexpected end of JSON input"}}`},
		{`hello`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"invalid message: invalid character 'h' looking for beginning of value"}}`},
		{`{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message needs a method or an id"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"unknown method resources/list"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"unknown method server/discover"}}`},
		{`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"nothing"}}`, `{"jsonrpc":"2.0","id":"x","error":{"code":-32602,"message":"unknown tool \"nothing\""}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool \"\""}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: json: cannot unmarshal number into Go struct field callParams.name of type string"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: json: cannot unmarshal array into Go value of type struct { Version string \"json:\\\"protocolVersion\\\"\" }"}}`},
		// Notifications and the cancellation of an unknown request get no response.
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}` + "\n\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"result":{}}`},
	} {
		p.write(tt.line)
		if got := p.line(); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.line, got, tt.want)
		}
	}
}

// The revisions before 2025-06-18 have batches.
func TestBatches(t *testing.T) {
	p := connect(t, newGateway(t, quota.Limits{}))
	for version, accepts := range map[string]bool{"2024-11-05": true, "2025-03-26": true, "2025-06-18": false, "2025-11-25": false} {
		p.response(p.send("initialize", map[string]string{"protocolVersion": version}))
		p.write(`[{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"ask","arguments":{"text":"one"}}},{"jsonrpc":"2.0","method":"notifications/initialized"},` +
			`{"jsonrpc":"2.0","id":"b","method":"ping"},{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"ask","arguments":{"text":"two"}}}]`)
		line := p.line()
		if !accepts {
			if !strings.Contains(line, `"id":null,"error":{"code":-32700`) {
				t.Errorf("%s: %s", version, line)
			}
			continue
		}
		var responses []struct {
			ID     string
			Result outcome
		}
		if err := json.Unmarshal([]byte(line), &responses); err != nil {
			t.Fatalf("%s: %v: %s", version, err, line)
		}
		got := map[string]string{}
		for _, r := range responses {
			got[r.ID] = ""
			if len(r.Result.Content) > 0 {
				got[r.ID] = r.Result.shown()
			}
		}
		if _, hasPing := got["b"]; len(responses) != 3 || !hasPing || got["a"] != "re: one" || got["c"] != "re: two" {
			t.Errorf("%s: %s", version, line)
		}
	}
}
