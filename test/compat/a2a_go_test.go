package compat

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// a2aTest is a gateway with one of the clients for Go.
type a2aTest struct {
	*harness
	control string // of the gates
	connect a2aMaker
}

// client returns a client of an agent.
func (a *a2aTest) client(t *testing.T, agent string) a2aClient {
	t.Helper()
	c, err := a.connect(t.Context(), a.url, agent, secret, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// open opens a gate.
func (a *a2aTest) open(t *testing.T, gate string) {
	t.Helper()
	res, err := http.Post(a.control+"/"+gate, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusNoContent {
		t.Fatalf("%v, %s", err, res.Status)
	}
}

// logged returns the visible text of a task in the log.
func (a *a2aTest) logged(t *testing.T, task string) (text string) {
	t.Helper()
	admin := gateway.Principal{Admin: true}
	conversation, _, err := a.gw.Turn(t.Context(), admin, gateway.ActionRead, task)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.gw.ViewTranscript(t.Context(), admin, conversation, func(tr *transcript.Transcript) bool {
		text = tr.Visible(task)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return text
}

// want fails the test unless a task has a state and a text, which is that of the log too.
func (a *a2aTest) want(t *testing.T, task *a2aTask, err error, state, text string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if task.state != state || task.text() != text {
		t.Fatalf("%s %q, want %s %q", task.state, task.text(), state, text)
	}
	if logged := a.logged(t, task.id); logged != text {
		t.Fatalf("the log has %q, want %q", logged, text)
	}
}

// The official client for Go, in both versions of the protocol.
func TestA2AGo(t *testing.T) {
	for version, maker := range map[string]a2aMaker{"0.3": newClientOld, "1.0": newClientNew} {
		t.Run(version, func(t *testing.T) {
			h, control := startChats(t)
			a := &a2aTest{h, control, maker}
			t.Run("card", a.card)
			t.Run("plain", a.plain)
			t.Run("long text", a.long)
			t.Run("kinds of content", a.kinds)
			t.Run("files and data", a.files)
			t.Run("approval", a.approval)
			t.Run("failing", a.failing)
			t.Run("cancel", a.cancel)
			t.Run("reload", a.reload)
			t.Run("cuts", a.cuts)
			t.Run("refusals", a.refusals)
		})
	}
}

// The client authenticates by the scheme of the card.
func (a *a2aTest) card(t *testing.T) {
	if got := a.client(t, "plain").card(); got != "plain 0.3.0 JSONRPC true" && got != "plain 1.0 JSONRPC true" {
		t.Errorf("card %s", got)
	}
	for agent, token := range map[string]string{"nobody": secret, "plain": "wrong"} {
		if _, err := a.connect(t.Context(), a.url, agent, token, http.DefaultClient); err == nil {
			t.Errorf("a card of %s with the token %s", agent, token)
		}
	}
}

func (a *a2aTest) plain(t *testing.T) {
	c := a.client(t, "plain")
	sent, err := c.send(t.Context(), a2aMessage{Text: "hello"})
	a.want(t, sent, err, "completed", "re: hello")
	streamed, err := readTask(c.stream(t.Context(), a2aMessage{Text: "again", Context: sent.context}), nil)
	a.want(t, streamed, err, "completed", "re: again")
	if streamed.context != sent.context || streamed.id == sent.id {
		t.Errorf("%s in %s, after %s in %s", streamed.id, streamed.context, sent.id, sent.context)
	}
	got, err := c.get(t.Context(), sent.id)
	a.want(t, got, err, "completed", "re: hello")
	if !slices.Equal(got.history, []string{"user hello"}) {
		t.Errorf("history %q", got.history)
	}
	// The same message again is the same task.
	m := a2aMessage{ID: uuid.NewString(), Context: "chosen " + uuid.NewString(), Text: "hello"}
	first, err := c.send(t.Context(), m)
	a.want(t, first, err, "completed", "re: hello")
	second, err := readTask(c.stream(t.Context(), m), nil)
	a.want(t, second, err, "completed", "re: hello")
	if first.id != second.id || second.context != m.Context {
		t.Errorf("%s in %s, then %s in %s", first.id, first.context, second.id, second.context)
	}
}

// The text is far above 64 KiB, which is the longest line of a scanner by default.
func (a *a2aTest) long(t *testing.T) {
	text := strings.Repeat("größer 🌍\n", 20_000)
	task, err := readTask(a.client(t, "plain").stream(t.Context(), a2aMessage{Text: text}), nil)
	a.want(t, task, err, "completed", "re: "+text)
}

func (a *a2aTest) kinds(t *testing.T) {
	for agent, text := range map[string]string{"tools": "Done.", "thinker": "It is noon.", "status": "On it.\n\nNow playing", "replacing": "It is ten."} {
		task, err := readTask(a.client(t, agent).stream(t.Context(), a2aMessage{Text: "hello"}), nil)
		a.want(t, task, err, "completed", text)
	}
}

func (a *a2aTest) files(t *testing.T) {
	c := a.client(t, "files")
	task, err := readTask(c.stream(t.Context(), a2aMessage{Text: "look", File: []byte("hi")}), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.get(t.Context(), task.id)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range []*a2aTask{task, got} {
		var kinds []string
		for _, artifact := range task.artifacts {
			kinds = append(kinds, artifact.kinds...)
		}
		slices.Sort(kinds)
		if task.state != "completed" || !slices.Equal(kinds, []string{"data map[chart:[1 2]]", "file"}) {
			t.Errorf("%s %q", task.state, kinds)
		}
	}
}

func (a *a2aTest) approval(t *testing.T) {
	c := a.client(t, "approval")
	asked, err := readTask(c.stream(t.Context(), a2aMessage{Text: "hello"}), nil)
	a.want(t, asked, err, "input-required", "I need to look. ")
	if asked.note != "Run ls?" {
		t.Errorf("question %q", asked.note)
	}
	got, err := c.get(t.Context(), asked.id)
	a.want(t, got, err, "input-required", "I need to look. ")
	done, err := readTask(c.stream(t.Context(), a2aMessage{Text: "approve", Task: asked.id, Context: asked.context}), nil)
	a.want(t, done, err, "completed", "I need to look. There is one file.")
	if done.id != asked.id {
		t.Errorf("the answer is in %s, the question in %s", done.id, asked.id)
	}
	other, err := c.send(t.Context(), a2aMessage{Text: "hello"})
	a.want(t, other, err, "input-required", "I need to look. ")
	denied, err := c.send(t.Context(), a2aMessage{Data: map[string]any{"approved": false}, Task: other.id})
	a.want(t, denied, err, "completed", "I need to look. Then I can't tell.")
}

func (a *a2aTest) failing(t *testing.T) {
	c := a.client(t, "failing")
	task, err := readTask(c.stream(t.Context(), a2aMessage{Text: "hello"}), nil)
	a.want(t, task, err, "failed", "so far")
	got, err := c.get(t.Context(), task.id)
	a.want(t, got, err, "failed", "so far")
	if task.note != "The model is busy." || got.note != task.note {
		t.Errorf("%q, then %q", task.note, got.note)
	}
}

// before is the text of the agent long up to its gate.
func before() string { return strings.Join(pieces()[:40], "") }

func (a *a2aTest) cancel(t *testing.T) {
	c := a.client(t, "long")
	var canceled *a2aTask
	streamed, err := readTask(c.stream(t.Context(), a2aMessage{Text: uuid.NewString()}), func(task *a2aTask) (err error) {
		if task.text() == before() && canceled == nil {
			canceled, err = c.cancel(t.Context(), task.id)
		}
		return err
	})
	a.want(t, streamed, err, "canceled", before())
	a.want(t, canceled, nil, "canceled", before())
	if _, err := c.cancel(t.Context(), streamed.id); !errors.Is(err, c.errors().notCancelable) {
		t.Errorf("canceled again: %v", err)
	}
}

// A client disconnects, and two subscribe at once.
func (a *a2aTest) reload(t *testing.T) {
	c, gate := a.client(t, "long"), uuid.NewString()
	reached := func(task *a2aTask) error {
		if task.text() == before() {
			return errEnough
		}
		return nil
	}
	task, err := readTask(c.stream(t.Context(), a2aMessage{Text: gate}), reached)
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	type end struct {
		task *a2aTask
		err  error
	}
	ends, begun := make(chan end, 2), make(chan struct{}, 2)
	for range 2 {
		go func() {
			hasBegun := false
			task, err := readTask(c.subscribe(ctx, task.id), func(*a2aTask) error {
				if !hasBegun {
					hasBegun = true
					begun <- struct{}{}
				}
				return nil
			})
			ends <- end{task, err}
		}()
	}
	for range 2 {
		select {
		case <-begun:
		case e := <-ends:
			t.Fatalf("ended before the rest: %v", e.err)
		}
	}
	a.open(t, gate)
	a.open(t, gate+"-end")
	long := strings.Join(pieces(), "")
	for range 2 {
		e := <-ends
		a.want(t, e.task, e.err, "completed", long)
	}
	got, err := c.get(t.Context(), task.id)
	a.want(t, got, err, "completed", long)
	if _, err := readTask(c.subscribe(t.Context(), task.id), nil); !errors.Is(err, c.errors().unsupported) {
		t.Errorf("subscribed to a task that has ended: %v", err)
	}
}

// Each of 20 tasks is cut once, while the agent writes. A client that has received nothing sends its message again; another one subscribes.
func (a *a2aTest) cuts(t *testing.T) {
	const tasks = 20
	long, seed := strings.Join(pieces(), ""), uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	proxy := startCutter(t, a.url)
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	c, err := a.connect(t.Context(), proxy.url, "long", secret, web)
	if err != nil {
		t.Fatal(err)
	}
	unsent := 0
	for range tasks {
		m := a2aMessage{ID: uuid.NewString(), Context: uuid.NewString(), Text: uuid.NewString()}
		a.open(t, m.Text)
		proxy.after(1 + r.Int64N(6000))
		task, err := readTask(c.stream(t.Context(), m), func(task *a2aTask) error {
			if task.text() == long {
				proxy.cut() // before its bytes are used up
			}
			return nil
		})
		if err == nil || errors.Is(err, context.Canceled) {
			t.Fatalf("seed %d: not cut: %v, %+v", seed, err, task)
		}
		proxy.after(-1)
		events := c.stream(t.Context(), m)
		if task == nil {
			unsent++
		} else {
			if !strings.HasPrefix(long, task.text()) {
				t.Fatalf("seed %d: cut after %q", seed, task.text())
			}
			events = c.subscribe(t.Context(), task.id)
		}
		isOpen := false
		rest, err := readTask(events, func(task *a2aTask) error {
			if !isOpen {
				isOpen = true
				a.open(t, m.Text+"-end")
			}
			if !strings.HasPrefix(long, task.text()) {
				return fmt.Errorf("%q", task.text())
			}
			return nil
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		a.want(t, rest, err, "completed", long)
	}
	t.Logf("%d tasks, %d cut by their bytes, %d of them before the task arrived", tasks, proxy.count(), unsent)
}

func (a *a2aTest) refusals(t *testing.T) {
	c := a.client(t, "plain")
	known := c.errors()
	done, err := c.send(t.Context(), a2aMessage{Text: "hello"})
	a.want(t, done, err, "completed", "re: hello")
	for name, call := range map[string]struct {
		run  func() error
		want error
	}{
		"get":       {func() error { _, err := c.get(t.Context(), "nothing"); return err }, known.notFound},
		"cancel":    {func() error { _, err := c.cancel(t.Context(), "nothing"); return err }, known.notFound},
		"subscribe": {func() error { _, err := readTask(c.subscribe(t.Context(), "nothing"), nil); return err }, known.notFound},
		"ended":     {func() error { _, err := c.cancel(t.Context(), done.id); return err }, known.notCancelable},
		"answer":    {func() error { _, err := c.send(t.Context(), a2aMessage{Text: "yes", Task: done.id}); return err }, known.unsupported},
		"stream": {func() error {
			_, err := readTask(c.stream(t.Context(), a2aMessage{Text: "yes", Task: done.id}), nil)
			return err
		}, known.unsupported},
		"push":  {func() error { _, err := c.send(t.Context(), a2aMessage{Text: "hello", HasPush: true}); return err }, known.noPush},
		"empty": {func() error { _, err := c.send(t.Context(), a2aMessage{}); return err }, known.invalid},
	} {
		if err := call.run(); !errors.Is(err, call.want) {
			t.Errorf("%s: %v, want %v", name, err, call.want)
		}
	}
}
