package readme

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/leat-dev/leat/agent"
	agents "github.com/leat-dev/leat/agent/all"
	leat "github.com/leat-dev/leat/clients/go"
	dialects "github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/signature"
	"github.com/leat-dev/leat/internal/base/signature/signaturetest"
	"github.com/leat-dev/leat/test/browser"
	"github.com/leat-dev/leat/transcript"
)

// maxLines is how many lines an agent of the README may have, blank ones aside.
const maxLines = 10

// block returns the code of a document's only block in a language whose text holds a word.
func block(t *testing.T, doc, language, word string) string {
	t.Helper()
	b, err := os.ReadFile("../../" + doc)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(b), -1) {
		if strings.Contains(m[1], word) {
			found = append(found, m[1])
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks of %s with %q", doc, len(found), language, word)
	}
	return found[0]
}

// command returns a document's command that serves a kind of agent, as arguments of the program.
func command(t *testing.T, doc, word string) []string {
	t.Helper()
	for line := range strings.Lines(block(t, doc, "sh", word)) {
		if m := regexp.MustCompile(`^leat (serve) (--agent) '?([^']*)'?\n$`).FindStringSubmatch(line); m != nil && strings.Contains(line, word) {
			return m[1:]
		}
	}
	t.Fatalf("%s does not serve %q", doc, word)
	return nil
}

func needs(t *testing.T, program, install string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("SKIPPED: %s is not installed; install it to have the agents of the documents run (apt-get install %s)", program, install)
	}
}

// bench is an empty folder for trying agents.
type bench struct {
	t      *testing.T
	dir    string
	binary string
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// start starts a program in the folder, which ends with the test.
func (b *bench) start(stdout io.Writer, env []string, name string, args ...string) {
	b.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.dir, append(os.Environ(), env...), stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		end := os.Kill
		if name == b.binary {
			end = os.Interrupt
		}
		if err := cmd.Process.Signal(end); err != nil {
			b.t.Error(err)
		}
		_ = cmd.Wait() // by the signal
	})
}

// serve starts the gateway with the arguments of a document, and returns where it is.
func (b *bench) serve(args ...string) string {
	b.t.Helper()
	r, w := io.Pipe()
	b.t.Cleanup(func() { _ = w.Close() })
	b.start(w, []string{
		"LEAT_LISTEN=127.0.0.1:0", "LEAT_DATA=" + b.t.TempDir(), "LEAT_API_TOKEN=", "ELIZA_API_TOKEN=", "LEAT_CONFIG=", "LEAT_AGENTS=",
	}, b.binary, args...)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if m := regexp.MustCompile(`listens on (http://\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, r) }() // until it ends
			return m[1]
		}
	}
	b.t.Fatal("the gateway does not say where it listens")
	return ""
}

// freePort returns an unused port of the loopback interface.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// await waits until a port accepts connections.
func await(t *testing.T, port string) {
	t.Helper()
	for begin := time.Now(); ; {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Since(begin) > time.Minute {
			t.Fatal("the agent does not listen: ", err)
		}
		time.Sleep(10 * time.Millisecond) // polls another process
	}
}

const (
	question = "one two three four five six seven eight nine ten"
	answered = "You said: " + question + " "
)

// reloaded sends a message, reads a part of the answer, reconnects like a reloaded page, and returns what it reads until the
// end. It reports whether something was left to come.
func reloaded(t *testing.T, url string) (text string, turn *transcript.Turn, amid bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := &leat.Client{URL: url}
	conv, err := c.Create(ctx, leat.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := c.Send(ctx, conv.ID, question)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Follow(ctx, conv.ID, func(u leat.Update) error {
		if v := u.Transcript.Visible(ack.Turn); strings.Contains(v, "two") {
			amid = !strings.Contains(v, "ten")
			return leat.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = (&leat.Client{URL: url}).Follow(ctx, conv.ID, func(u leat.Update) error {
		tr := u.Transcript.Turn(ack.Turn)
		if tr == nil || tr.Unfinished() {
			return nil
		}
		end := *tr
		text, turn = u.Transcript.Visible(ack.Turn), &end
		return leat.ErrStop
	})
	if err != nil {
		t.Fatal(err)
	}
	return text, turn, amid
}

// attempts are made to be there in the middle of an answer: a machine that is busy may read it at once.
const attempts = 5

func wantAnswer(t *testing.T, url, want string) {
	t.Helper()
	for range attempts {
		text, turn, amid := reloaded(t, url)
		if turn.Outcome != event.Completed {
			t.Fatalf("the turn is %s: %v", turn.Outcome, turn.Error)
		}
		if text != want {
			t.Fatalf("readers have %q, want %q", text, want)
		}
		if amid {
			return
		}
	}
	t.Errorf("each of %d answers came at once; nothing was left to come after a reload", attempts)
}

// typeScript reports whether this Node reads TypeScript by itself.
func typeScript(t *testing.T, dir string) bool {
	t.Helper()
	probe := filepath.Join(dir, "probe.ts")
	if err := os.WriteFile(probe, []byte("const n: number = 1;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.Command("node", probe).Run() == nil
}

// The agents of the README and of docs/agents.md run as they stand; only ports are others. Their answers are whole for a
// reader that reconnects in the middle.
func TestOwnAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it compiles and starts the program; run it without -short")
	}
	binary := program(t)
	newBench := func(t *testing.T) *bench { return &bench{t, t.TempDir(), binary} }
	wantShort := func(t *testing.T, code string) {
		t.Helper()
		n := 0
		for line := range strings.Lines(code) {
			if strings.TrimSpace(line) != "" {
				n++
			}
		}
		if n > maxLines {
			t.Errorf("the agent has %d lines, at most %d", n, maxLines)
		}
	}
	t.Run("README, Python", func(t *testing.T) {
		needs(t, "python3", "python3")
		b := newBench(t)
		code := block(t, "README.md", "python", "sys.stdin")
		wantShort(t, code)
		b.write("agent.py", code)
		wantAnswer(t, b.serve(command(t, "README.md", "exec:python3")...), answered)
	})
	t.Run("README, TypeScript", func(t *testing.T) {
		needs(t, "node", "nodejs")
		b := newBench(t)
		code := block(t, "README.md", "ts", "createServer")
		wantShort(t, code)
		names := []string{"agent.mjs"}
		if typeScript(t, b.dir) {
			names = append(names, "agent.ts")
		} else {
			t.Log("this Node does not read TypeScript: agent.ts is run as agent.mjs alone")
		}
		for _, name := range names {
			port := freePort(t)
			b.write(name, strings.ReplaceAll(code, "8000", port))
			b.write("package.json", `{"type":"module"}`)
			b.start(os.Stderr, nil, "node", name)
			await(t, port)
			args := command(t, "README.md", "http://127.0.0.1:8000")
			args[2] = strings.ReplaceAll(args[2], "8000", port)
			wantAnswer(t, b.serve(args...), answered)
		}
	})
	t.Run("README, Python, in a browser", func(t *testing.T) {
		needs(t, "python3", "python3")
		page := browser.Open(t)
		b := newBench(t)
		b.write("agent.py", block(t, "README.md", "python", "sys.stdin"))
		page.Go(b.serve(command(t, "README.md", "exec:python3")...))
		const log = "(" + browser.Log + ")"
		page.Wait("the page is online", browser.Connected)
		page.Ask(question)
		page.Wait("the answer begins", log+`.includes("You said: one two")`)
		if strings.Contains(page.Eval(log), strings.TrimSpace(answered)) {
			t.Log("the answer was whole before the reload: this machine is busy")
		}
		page.Reload()
		page.Wait("the answer is whole after the reload", log+`.includes("`+strings.TrimSpace(answered)+`")`)
		if text := page.Eval(log); strings.Count(text, "You said") != 1 {
			t.Errorf("the answer stands there twice: %s", text)
		}
	})
	t.Run("docs/agents.md, server", func(t *testing.T) {
		needs(t, "python3", "python3")
		b := newBench(t)
		b.write("signature.py", block(t, "docs/agents.md", "python", "# signature.py"))
		b.write("server.py", block(t, "docs/agents.md", "python", "# server.py"))
		port := freePort(t)
		b.start(os.Stderr, []string{"SECRET=s3cret"}, "python3", "server.py", port)
		await(t, port)
		args := command(t, "docs/agents.md", "secret=s3cret")
		args[2] = strings.ReplaceAll(args[2], "8000", port)
		wantAnswer(t, b.serve(args...), "Thinking…\n\n"+answered)
		args[2] = strings.ReplaceAll(args[2], "s3cret", "wrong")
		c := &leat.Client{URL: b.serve(args...)}
		if turn := askOnce(t, c); turn.Error == nil || !strings.Contains(turn.Error.Message, "401") {
			t.Errorf("with a wrong secret the turn is %s: %v", turn.Outcome, turn.Error)
		}
	})
	t.Run("docs/agents.md, worker", func(t *testing.T) {
		needs(t, "python3", "python3")
		b := newBench(t)
		b.write("worker.py", block(t, "docs/agents.md", "python", "# worker.py"))
		port := freePort(t)
		b.start(os.Stderr, nil, "python3", "worker.py", port)
		await(t, port)
		wantAnswer(t, b.serve("serve", "--agent", "http://127.0.0.1:"+port+"/"), answered)
	})
	t.Run("docs/agents.schema.json", func(t *testing.T) { schemaHolds(t, newBench(t)) })
}

// Every agent that the documentation names on a command line is one, with options that its kind knows.
func TestAgentsOfTheDocs(t *testing.T) {
	for name, least := range map[string]int{"agents.md": 2, "providers.md": 7} {
		b, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all := regexp.MustCompile(`--agent '([^']*)'`).FindAllStringSubmatch(string(b), -1)
		if len(all) < least {
			t.Fatalf("%s: commands: %q", name, all)
		}
		for _, m := range all {
			spec, err := agent.ParseSpec(m[1])
			if err != nil {
				t.Error(err)
				continue
			}
			if _, err := agents.Kinds(dialects.Registry()).Check(spec); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// askOnce asks and returns the turn when it has ended.
func askOnce(t *testing.T, c *leat.Client) (turn transcript.Turn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conv, err := c.Create(ctx, leat.CreateOptions{Metadata: map[string]json.RawMessage{"theme": json.RawMessage(`"dark"`)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"before", question} {
		ack, err := c.Send(ctx, conv.ID, text)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Follow(ctx, conv.ID, func(u leat.Update) error {
			if tr := u.Transcript.Turn(ack.Turn); tr != nil && !tr.Unfinished() {
				turn = *tr
				return leat.ErrStop
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return turn
}

// schemaHolds has the real program send turns, and checks what comes against the schema.
func schemaHolds(t *testing.T, b *bench) {
	path, err := filepath.Abs("../../docs/agents.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(name string, v any) error {
		s, err := jsonschema.NewCompiler().Compile("file://" + filepath.ToSlash(path) + "#/$defs/" + name)
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
	type request struct {
		path, signature string
		body            []byte
	}
	got := make(chan request, 16)
	cut := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- request{r.URL.Path, r.Header.Get(signature.Header), body}
		if strings.Contains(string(body), "wait forever") && r.URL.Path == "/chat" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-cut:
			}
			return
		}
		fmt.Fprintln(w, `{"type":"chunk","text":"ok"}`+"\n"+`{"type":"done"}`)
	}))
	defer upstream.Close()
	defer close(cut)
	c := &leat.Client{URL: b.serve("serve", "--agent", "a=http:"+upstream.URL+"/chat?secret=s3cret&stop="+upstream.URL+"/stop")}
	if turn := askOnce(t, c); turn.Outcome != event.Completed {
		t.Fatalf("the turn is %s: %v", turn.Outcome, turn.Error)
	}
	check := func(name, at string) map[string]any {
		t.Helper()
		r := <-got
		if r.path != at {
			t.Fatalf("a request to %s, want %s", r.path, at)
		}
		var v map[string]any
		if err := json.Unmarshal(r.body, &v); err != nil {
			t.Fatal(err)
		}
		if err := valid(name, any(v)); err != nil {
			t.Errorf("%s\n%v", r.body, err)
		}
		if err := errors.Join(valid("signature", r.signature), signaturetest.Verify("s3cret", r.signature, r.body, time.Now(), 0)); err != nil {
			t.Errorf("%s: %v", r.signature, err)
		}
		return v
	}
	check("input", "/chat")
	second := check("input", "/chat")
	for _, key := range []string{"history", "metadata", "ingest"} {
		if second[key] == nil {
			t.Errorf("the second turn has no %s: %v", key, second)
		}
	}
	tools, err := json.Marshal([]agent.ClientTool{{Name: "map", Description: "shows a map", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "beep"}})
	if err != nil {
		t.Fatal(err)
	}
	var anyTools any
	if err := json.Unmarshal(tools, &anyTools); err != nil {
		t.Fatal(err)
	}
	second["tools"] = anyTools
	if err := valid("input", any(second)); err != nil {
		t.Errorf("an input with tools: %v", err)
	}
	// The schema exists to find unknown fields.
	second["surprise"] = 1
	if valid("input", any(second)) == nil {
		t.Error("the schema takes a key that it does not know")
	}
	if valid("signature", "t=1,v1=abc") == nil {
		t.Error("the schema accepts an invalid signature")
	}
	conv, err := c.Create(t.Context(), leat.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := c.Send(t.Context(), conv.ID, "wait forever")
	if err != nil {
		t.Fatal(err)
	}
	check("input", "/chat")
	if _, err := c.Stop(t.Context(), conv.ID, ack.Turn); err != nil {
		t.Fatal(err)
	}
	if stop := check("stop", "/stop"); stop["turn"] != ack.Turn {
		t.Errorf("stop request for turn %v, want %s", stop["turn"], ack.Turn)
	}
}

// The receivers of docs/agents.md tell right signatures from wrong ones.
func TestReceivers(t *testing.T) {
	at := time.Unix(1795194262, 0)
	body := `{"a":"ü"}`
	right := signature.Sign("s3cret", at, []byte(body))
	_, mac, _ := strings.Cut(right, ",")
	_, wrong, _ := strings.Cut(signature.Sign("other", at, []byte(body)), ",")
	cases := []struct {
		Header, Body string
		Now          int64
		Want         bool
	}{
		{right, body, at.Unix(), true},
		{right, body, at.Unix() + 300, true},
		{right, body, at.Unix() - 300, true},
		{right, body, at.Unix() + 301, false},
		{right, body, at.Unix() - 301, false},
		{right, body + " ", at.Unix(), false},
		{strings.Replace(right, ",", ", ", 1), body, at.Unix(), true},
		{right + "," + wrong + ",v2=x", body, at.Unix(), true},
		{"t=1795194262," + wrong + "," + mac, body, at.Unix(), true},
		{"t=1795194262," + wrong, body, at.Unix(), false},
		{"t=1795194263," + mac, body, at.Unix(), false},
		{mac, body, at.Unix(), false},
		{"t=1795194262", body, at.Unix(), false},
		{"t=1795194262,v1=", body, at.Unix(), false},
		{right[:len(right)-2], body, at.Unix(), false},
		{"", body, at.Unix(), false},
		{"v1,t,=,,", body, at.Unix(), false},
	}
	asked, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ program, language, name, call string }{
		{"python3", "python", "signature.py", `
import json, sys
print(json.dumps([signed("s3cret", c["Header"], c["Body"].encode(), c["Now"]) for c in json.loads(sys.argv[1])]))
`},
		{"node", "ts", "signature.mjs", `
console.log(JSON.stringify(JSON.parse(process.argv[2]).map((c) => signed("s3cret", c.Header, Buffer.from(c.Body), c.Now))));
`},
	} {
		t.Run(tt.program, func(t *testing.T) {
			needs(t, tt.program, strings.Replace(tt.program, "node", "nodejs", 1))
			path := filepath.Join(t.TempDir(), tt.name)
			code := block(t, "docs/agents.md", tt.language, "signature."+tt.language[:2]) + tt.call
			if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), tt.program, path, string(asked)).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var got []bool
			if err := json.Unmarshal(out, &got); err != nil || len(got) != len(cases) {
				t.Fatalf("%v\n%s", err, out)
			}
			for i, c := range cases {
				if got[i] != c.Want {
					t.Errorf("%q over %q at %d: %v", c.Header, c.Body, c.Now, got[i])
				}
			}
		})
	}
}
