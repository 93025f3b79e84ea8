package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/server/outputtest"
	"github.com/leat-dev/leat/internal/service/quota"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// actor is an agent that does what a message says, or repeats it.
var actor = outputtest.AgentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	switch in.Message.Text {
	case "wait":
		if err := errors.Join(out.Text("so far"), out.Flush()); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	case "fail":
		return errors.Join(out.Text("so far"), &agent.Error{Code: "overloaded_error", Message: "The model is busy."})
	case "permission":
		return outputtest.AskPermission.Run(ctx, in, out)
	case "nothing":
		return nil
	}
	return outputtest.Echo.Run(ctx, in, out)
})

// newGateway returns the operator's client of a gateway. The limits are those of the user ann.
func newGateway(t *testing.T, limits quota.Limits) *leat.Client {
	t.Helper()
	h := outputtest.Start(t, actor, limits, func(h *outputtest.Harness) {
		native.Register(h.Server, h.Gateway)
		eliza.Register(h.Server, h.Gateway, eliza.Options{})
	})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &leat.Client{URL: h.URL, Token: outputtest.Secret, HTTP: &http.Client{Transport: transport}}
}

// intercept is what a test does with a request of a client. next sends it.
type intercept func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error)

// network is the network between a client and its gateway.
type network struct {
	next      http.RoundTripper
	intercept intercept
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	return n.intercept(r, func() (*http.Response, error) { return n.next.RoundTrip(r) })
}

// through returns a client whose requests pass an intercept.
func through(c *leat.Client, f intercept) *leat.Client {
	return &leat.Client{URL: c.URL, Token: c.Token, Subject: c.Subject, HTTP: &http.Client{Transport: &network{c.HTTP.Transport, f}}}
}

// commandOf returns the type of the command that a request sends, "create", or "" for other requests. It leaves the body readable.
func commandOf(t *testing.T, r *http.Request) string {
	t.Helper()
	if r.Method != http.MethodPost {
		return ""
	}
	if r.URL.Path == "/api/conversations" {
		return "create"
	}
	body, err := r.GetBody()
	if err != nil {
		t.Error(err)
		return ""
	}
	var command leat.Command
	if err := json.NewDecoder(body).Decode(&command); err != nil {
		t.Error(err)
	}
	return command.Type
}

// message is a message of the server.
type message struct {
	ID     *int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

// outcome is the result of a tool.
type outcome struct {
	Content []struct{ Text string }
	answerOutput
	IsError bool
	// Structured are all keys of the structured content.
	Structured map[string]any
}

// shown is the text for people.
func (o *outcome) shown() string {
	if len(o.Content) != 1 {
		return fmt.Sprintf("%d texts", len(o.Content))
	}
	return o.Content[0].Text
}

// peer is the host, the other side of a server.
type peer struct {
	t         *testing.T
	client    *leat.Client
	in        *io.PipeWriter
	host      *host
	lines     chan string // what the server has written; as a host does, the peer reads at any time
	done      chan error
	calls     int
	notes     []message
	responses map[int]message
}

// connect starts a server for a host.
func connect(t *testing.T, c *leat.Client) *peer {
	t.Helper()
	input, in := io.Pipe()
	out, output := io.Pipe()
	p := &peer{t: t, client: c, in: in, lines: make(chan string, 1000), done: make(chan error, 1), responses: map[int]message{}}
	o := Options{
		Client: c, Version: "1", Input: input, Output: output, Explain: func(err error) error { return err },
		Title: func(s string) string { return strings.ToUpper(s[:min(len(s), 20)]) },
	}
	p.host = newHost(o)
	go func() { p.done <- p.host.conn.Serve(context.WithoutCancel(t.Context()), input) }()
	go func() {
		defer close(p.lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			p.lines <- scanner.Text()
		}
		_ = out.CloseWithError(scanner.Err())
	}()
	t.Cleanup(func() {
		p.close()
		_ = output.Close()
		for range p.lines {
		}
	})
	return p
}

// close ends the input and waits for the server. It may be called more than once.
func (p *peer) close() {
	p.t.Helper()
	_ = p.in.Close()
	if err := <-p.done; err != nil {
		p.t.Error(err)
	}
	p.done <- nil
}

// end ends the input. When it returns, the calls in progress are canceled.
func (p *peer) end() {
	_ = p.in.Close()
	ctx := p.host.conn.Context()
	<-ctx.Done()
	_ = context.Cause(ctx) // waits until the contexts that depend on it have ended too
}

func (p *peer) write(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) line() string {
	p.t.Helper()
	line, ok := <-p.lines
	if !ok {
		p.t.Fatal("the server has ended")
	}
	return line
}

// send sends a request and returns its id.
func (p *peer) send(method string, params any) int {
	p.t.Helper()
	p.calls++
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": p.calls, "method": method, "params": params})
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(string(b))
	return p.calls
}

// response waits for the response to a request. It keeps what arrives before.
func (p *peer) response(id int) message {
	p.t.Helper()
	for {
		if m, ok := p.responses[id]; ok {
			delete(p.responses, id)
			return m
		}
		var m message
		line := p.line()
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			p.t.Fatalf("%v: %s", err, line)
		}
		switch {
		case m.Method != "":
			p.notes = append(p.notes, m)
		case m.ID != nil:
			p.responses[*m.ID] = m
		default:
			p.t.Fatalf("a response without an id: %s", line)
		}
	}
}

// start calls a tool without waiting for its result.
func (p *peer) start(tool string, arguments any) int {
	p.t.Helper()
	return p.send("tools/call", map[string]any{"name": tool, "arguments": arguments, "_meta": map[string]any{"progressToken": "a token"}})
}

// result waits for the result of a tool.
func (p *peer) result(id int) *outcome {
	p.t.Helper()
	m := p.response(id)
	if m.Error != nil {
		p.t.Fatalf("an error of the protocol: %+v", *m.Error)
	}
	o := &outcome{}
	var structured struct{ StructuredContent json.RawMessage }
	if err := errors.Join(json.Unmarshal(m.Result, o), json.Unmarshal(m.Result, &structured)); err != nil {
		p.t.Fatal(err)
	}
	if structured.StructuredContent != nil {
		if err := errors.Join(json.Unmarshal(structured.StructuredContent, &o.answerOutput), json.Unmarshal(structured.StructuredContent, &o.Structured)); err != nil {
			p.t.Fatal(err)
		}
	}
	return o
}

func (p *peer) call(tool string, arguments any) *outcome {
	p.t.Helper()
	return p.result(p.start(tool, arguments))
}

// cancel gives a request up. When it returns, the server has handled that.
func (p *peer) cancel(id int) {
	p.t.Helper()
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
	p.response(p.send("ping", nil))
}

// arguments are the arguments of a tool.
type arguments map[string]any
