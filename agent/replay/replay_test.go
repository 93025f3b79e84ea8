package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/replay"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/anthropic"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/dialect/openclaw"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

var dialects = dialect.NewRegistry(openclaw.Dialect(), elizaactions.Dialect(), anthropic.Dialect())

// multi is a recording of a turn with tools between its texts.
var multi = filepath.Join("..", "..", "dialect", "openclaw", "testdata", "2026.9.6", "multi.jsonl")

// desk does the part of a gateway: it maps and folds events, and stores what a journal would. It can die after some commits.
type desk struct {
	t     *testing.T
	ids   int
	log   []event.Event
	fold  transcript.Transcript
	state json.RawMessage
	keys  []byte
	ended bool

	mapper *dialect.Mapper
	left   int // number of commits until it dies; negative if it doesn't
	alive  int
}

var errDied = errors.New("the gateway was killed")

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, left: -1}
	d.mapper = dialect.NewMapper("turn", d.id)
	d.put(event.Event{Type: event.TurnStart, Turn: "turn", Body: &event.Body{Agent: "replay"}})
	return d
}

func (d *desk) id() string { d.ids++; return fmt.Sprint("id", d.ids) }

func (d *desk) Emit(_ context.Context, ops []event.Event, state json.RawMessage) error {
	if d.left == 0 {
		return errDied
	}
	d.left--
	d.emit(ops)
	if state != nil {
		d.state = append(json.RawMessage(nil), state...)
		var err error
		if d.keys, err = d.mapper.State(); err != nil {
			d.t.Fatal(err)
		}
	}
	return nil
}

func (d *desk) emit(ops []event.Event) {
	events, err := d.mapper.Map(ops, 1)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range events {
		d.put(e)
	}
}

func (d *desk) put(e event.Event) {
	e.Seq = d.fold.Seq + 1
	d.ended = d.ended || e.Type == event.TurnEnd && e.Turn == "turn"
	d.log = append(d.log, e)
	if err := d.fold.Apply(&e); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) Flush(context.Context) error { return nil }
func (d *desk) ReportProgress()             { d.alive++ }
func (d *desk) Wait(context.Context, event.Request) (event.Answer, error) {
	return event.Answer{}, errors.New("agent asks no questions in this test")
}

// restart returns the desk of a new process, with the stored data of a killed one.
func (d *desk) restart() {
	d.left = -1
	d.mapper = dialect.NewMapper("turn", d.id)
	if d.keys != nil {
		if err := d.mapper.Restore(d.keys, &d.fold); err != nil {
			d.t.Fatal(err)
		}
	}
}

// said returns the turn as viewers have it.
func (d *desk) said() []string {
	var all []string
	for _, m := range d.fold.Messages {
		for _, p := range m.Parts {
			all = append(all, fmt.Sprint(p.Kind, p.Name, p.State, p.Final, p.Text(event.Text), p.Text(event.Input), p.Text(event.Output)))
		}
	}
	for _, t := range d.fold.Turns {
		all = append(all, fmt.Sprint(t.State, t.Outcome, t.Reason, t.Usage))
	}
	return all
}

func newAgent(t *testing.T, spec string) *replay.Agent {
	t.Helper()
	s, err := agent.ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.Kinds{replay.Kind(dialects)}.Make(s)
	if err != nil {
		t.Fatal(err)
	}
	return a.(*replay.Agent)
}

func script(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.ndjson")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPlays(t *testing.T) {
	d := newDesk(t)
	e := agent.NewEmitter(t.Context(), d)
	if err := newAgent(t, "replay:"+multi+"?dialect=openclaw&speed=0").Run(t.Context(), agent.Input{}, e); err != nil {
		t.Fatal(err)
	}
	if !d.ended || d.fold.Turns[0].Outcome != event.Completed {
		t.Errorf("turns: %v", d.said())
	}
	if v := d.fold.Visible("turn"); !strings.Contains(v, "\n\n") {
		t.Errorf("visible text: %q", v)
	}
}

// Killed after any commit and resumed, the turn has the same result.
func TestResume(t *testing.T) {
	files := map[string]string{
		"openclaw": multi,
		"eliza-actions": script(t, `{"type":"chunk","text":"Hé"}`, `{"type":"callback","text":"Looking"}`, `{"type":"callback","text":" more","merge":"append"}`,
			`{"type":"chunk","text":"Looki"}`, `{"type":"chunk","text":"ng more"}`, `{"type":"chunk","text":" after"}`, `{"type":"done"}`),
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, "replay:"+file+"?speed=0&dialect="+name)
			run := func(left int) (d *desk, killed bool) {
				d = newDesk(t)
				d.left = left
				err := a.Run(t.Context(), agent.Input{}, agent.NewEmitter(t.Context(), d))
				if errors.Is(err, errDied) {
					d.restart()
					err = a.Resume(t.Context(), agent.Input{}, d.state, agent.NewEmitter(t.Context(), d))
					killed = true
				}
				if err != nil {
					t.Fatalf("after %d commits: %v", left, err)
				}
				return d, killed
			}
			whole, _ := run(-1)
			for left, killed := 0, true; killed; left++ {
				var d *desk
				if d, killed = run(left); killed {
					if diff := cmp.Diff(whole.said(), d.said()); diff != "" {
						t.Fatalf("killed after %d commits: %s", left, diff)
					}
				} else if left < 5 {
					t.Fatalf("only %d commits", left)
				}
			}
		})
	}
}

func TestResumeRefusesAnotherFile(t *testing.T) {
	file := script(t, `{"type":"chunk","text":"a"}`, `{"type":"chunk","text":"b"}`, `{"type":"done"}`)
	a := newAgent(t, "replay:"+file+"?dialect=eliza-actions&speed=0")
	d := newDesk(t)
	d.left = 1
	if err := a.Run(t.Context(), agent.Input{}, agent.NewEmitter(t.Context(), d)); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"type":"chunk","text":"other"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.restart()
	err := a.Resume(t.Context(), agent.Input{}, d.state, agent.NewEmitter(t.Context(), d))
	if err == nil || !strings.Contains(err.Error(), "has changed") || !strings.Contains(err.Error(), file) {
		t.Errorf("error: %v", err)
	}
	if err := a.Resume(t.Context(), agent.Input{}, json.RawMessage("{"), agent.NewEmitter(t.Context(), d)); err == nil || !strings.Contains(err.Error(), "stored state") {
		t.Errorf("broken state: %v", err)
	}
}

// A file that ends in the middle fails the turn, and buffered text is emitted.
func TestCutShort(t *testing.T) {
	a := newAgent(t, "replay:"+script(t, `{"type":"callback","text":"Looking"}`, `{"type":"chunk","text":"Look"}`)+"?dialect=eliza-actions&speed=0")
	d := newDesk(t)
	err := a.Run(t.Context(), agent.Input{}, agent.NewEmitter(t.Context(), d))
	var shown *agent.Error
	if !errors.As(err, &shown) || shown.Code != "cut_short" {
		t.Errorf("error: %v", err)
	}
	if got := d.fold.Visible("turn"); got != "Looking\n\nLook" {
		t.Errorf("visible: %q", got)
	}
	if d.ended {
		t.Error("the agent ended the turn itself")
	}
}

func TestInvalidFrame(t *testing.T) {
	file := script(t, `{"type":"chunk","text":"a"}`, `{"type":"chunk","text":`, `{"type":"done"}`)
	err := newAgent(t, "replay:"+file+"?dialect=eliza-actions&speed=0").Run(t.Context(), agent.Input{}, agent.NewEmitter(t.Context(), newDesk(t)))
	if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "frame 2") {
		t.Errorf("error: %v", err)
	}
}

// A stop emits the text that the decoder buffers.
func TestHeldBackAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, "replay:"+script(t, `{"type":"callback","text":"Looking"}`, `{"type":"chunk","text":"Look"}`, `{"type":"chunk","text":"s"}`)+"?dialect=eliza-actions&speed=0.02")
		d := newDesk(t)
		ctx, cancel := context.WithCancel(t.Context())
		e := agent.NewEmitter(ctx, d)
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx, agent.Input{}, e) }()
		time.Sleep(2500 * time.Millisecond) // on the clock of the synctest bubble: after the second frame
		d.emit(e.Close())
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if got := d.fold.Visible("turn"); got != "Looking\n\nLook" {
			t.Errorf("visible: %q", got)
		}
	})
}

func TestPace(t *testing.T) {
	line := func(ms int, text string) string {
		return fmt.Sprintf(`{"t":%d,"c":"x","dir":"in","frame":{"type":"chunk","text":%q}}`, 1_000_000+ms, text)
	}
	recorded := []string{line(0, "a"), line(1000, "b"), line(500, "c"), line(60_500, "d"), `{"t":1060500,"c":"x","dir":"in","frame":{"type":"done"}}`}
	plain := []string{`{"type":"chunk","text":"a"}`, `{"type":"chunk","text":"b"}`, `{"type":"done"}`}
	for _, tt := range []struct {
		name  string
		lines []string
		speed string
		want  time.Duration
	}{
		{"as recorded", recorded, "1", 61 * time.Second},
		{"four times as fast", recorded, "4", 61 * time.Second / 4},
		{"at once", recorded, "0", 0},
		{"without times", plain, "1", 3 * (20 * time.Millisecond)},
		{"without times, slowly", plain, "0.1", 30 * (20 * time.Millisecond)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAgent(t, "replay:"+script(t, tt.lines...)+"?dialect=eliza-actions&speed="+tt.speed)
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				start := time.Now()
				if err := a.Run(t.Context(), agent.Input{}, agent.NewEmitter(t.Context(), d)); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != tt.want {
					t.Errorf("took %v, want %v", took, tt.want)
				}
				if tt.want > time.Minute && d.alive < 5 {
					t.Errorf("in a pause of a minute it said %d times that it is alive", d.alive)
				}
			})
		})
	}
}

func TestClient(t *testing.T) {
	file := script(t,
		`{"t":1,"c":"one","dir":"in","frame":{"type":"chunk","text":"1"}}`, `{"t":1,"c":"two","dir":"in","frame":{"type":"chunk","text":"2"}}`,
		`{"t":2,"c":"two","dir":"in","frame":{"type":"done"}}`, `{"t":3,"c":"one","dir":"in","frame":{"type":"done"}}`)
	for client, want := range map[string]string{"": "1", "&client=one": "1", "&client=two": "2"} {
		d := newDesk(t)
		a := newAgent(t, "replay:"+file+"?dialect=eliza-actions&speed=0"+client)
		if err := a.Run(t.Context(), agent.Input{}, agent.NewEmitter(t.Context(), d)); err != nil {
			t.Fatal(err)
		}
		if got := d.fold.Visible("turn"); got != want {
			t.Errorf("%q: %q", client, got)
		}
	}
}

func TestKindRefuses(t *testing.T) {
	file := script(t, `{"t":1,"c":"one","dir":"in","frame":{"type":"done"}}`)
	empty := script(t)
	for spec, want := range map[string]string{
		"replay?dialect=openclaw":                             "needs a target",
		"replay:" + file:                                      "the dialect is missing",
		"replay:" + file + "?dialect=klingon":                 "klingon",
		"replay:" + file + "?dialect=openclaw&speed=-1":       "speed",
		"replay:" + file + "?dialect=openclaw&client=nobody":  "no such client",
		"replay:" + file + ".none?dialect=openclaw":           "no such file",
		"replay:" + empty + "?dialect=openclaw":               "the file is empty",
		"replay:" + t.TempDir() + "?dialect=openclaw":         "is a directory",
		"replay:" + file + "?dialect=openclaw&loop=1":         `no option "loop"`,
		"replay:" + script(t, "hello") + "?dialect=openclaw":  "unknown form",
		"replay:" + script(t, "{x}\n") + "?dialect=anthropic": "",
	} {
		s, err := agent.ParseSpec(spec)
		if err != nil {
			t.Fatal(err)
		}
		_, err = agent.Kinds{replay.Kind(dialects)}.Make(s)
		if want == "" && err == nil {
			continue // an invalid frame is an error of the decoder, during the playback
		}
		if err == nil || !strings.Contains(err.Error(), want) || want != "needs a target" && s.Target != "" && !strings.Contains(err.Error(), s.Target) && want != "speed" && want != `no option "loop"` {
			t.Errorf("%s: got %v, want %q and the file's name", spec, err, want)
		}
	}
}

func TestCallbacks(t *testing.T) {
	agenttest.Callbacks(t, func(t *testing.T, s agenttest.Script) agenttest.Playback {
		var lines []string
		for _, l := range s.Actions(t) {
			lines = append(lines, strings.TrimSuffix(string(l), "\n"))
		}
		a, err := replay.New(replay.Config{File: script(t, lines...), Dialect: elizaactions.Dialect()})
		if err != nil {
			t.Fatal(err)
		}
		return agenttest.Play(t, a, agent.Input{})
	})
}
