package ui_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/dialect/recording"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// reader is testdata/transcript.js in Node: a line with events goes in, a line with what it holds comes out.
const reader = `
import { Transcript, visibleText } from %q;
import { createInterface } from "node:readline";
let t = new Transcript();
for await (const line of createInterface({ input: process.stdin })) {
  const step = JSON.parse(line);
  let ok = true;
  if (step.new) t = new Transcript();
  if (step.snapshot) t.reset(step.snapshot);
  if (step.events) ok = t.batch(step.events);
  const messages = t.order.map((m) => ({
    id: m.id, turn: m.turn || "", role: m.role, ended: m.ended, state: m.state || "", visible: visibleText(m),
    parts: m.parts.map((p) => ({
      id: p.id, kind: p.kind, name: p.name || "", state: p.state || "", title: p.title || "", join: p.join || "", ended: p.ended,
      text: p.text.text, input: p.input.text, output: p.output.text, stderr: p.stderr.text, history: p.history, error: p.error?.message || "",
    })),
  }));
  const turns = [...t.turns.values()].map((x) => ({
    id: x.id, agent: x.agent || "", state: x.state, outcome: x.outcome || "", error: x.error?.message || "", requests: x.requests.map((r) => r.id),
  }));
  const mismatch = t.fault?.kind === "mismatch" ? t.fault : null;
  console.log(JSON.stringify({ ok, mismatch, seq: t.seq, title: t.title, messages, turns }));
}
`

type view struct {
	OK       bool          `json:"ok"`
	Mismatch *mismatch     `json:"mismatch"`
	Seq      int64         `json:"seq"`
	Title    string        `json:"title"`
	Messages []viewMessage `json:"messages"`
	Turns    []viewTurn    `json:"turns"`
}

// mismatch is what the page reports of a text that is not what its end says.
type mismatch struct {
	Turn, Message, Part, Field string
	Seq                        int64
	Have, Want                 event.Sum
}

type viewMessage struct {
	ID, Turn, Role, Visible string
	State                   event.MessageState
	Ended                   bool
	Parts                   []viewPart
}

type viewPart struct {
	ID, Name, Title, Join, Text, Input, Output, Stderr, Error string
	Kind                                                      event.PartKind
	State                                                     event.PartState
	Ended                                                     bool
	History                                                   []string
}

type viewTurn struct {
	ID, Agent, Outcome, Error string
	State                     transcript.TurnState
	Requests                  []string
}

// look is what the Go fold holds, as the reader tells it.
func look(t *transcript.Transcript, ok bool) view {
	v := view{OK: ok, Seq: t.Seq, Title: t.Title, Messages: []viewMessage{}, Turns: []viewTurn{}}
	for _, m := range t.Messages {
		vm := viewMessage{ID: m.ID, Turn: m.Turn, Role: string(m.Role), State: m.State, Visible: m.Visible(), Ended: m.Final, Parts: []viewPart{}}
		for _, p := range m.Parts {
			vp := viewPart{
				ID: p.ID, Kind: p.Kind, Name: p.Name, State: p.State, Title: p.Title, Join: p.Join, Ended: p.Final, History: append([]string{}, p.History()...),
				Text: p.Text(event.Text), Input: p.Text(event.Input), Output: p.Text(event.Output), Stderr: p.Text(event.Stderr),
			}
			if p.Error != nil {
				vp.Error = p.Error.Message
			}
			vm.Parts = append(vm.Parts, vp)
		}
		v.Messages = append(v.Messages, vm)
	}
	for _, turn := range t.Turns {
		vt := viewTurn{ID: turn.ID, Agent: turn.Agent, State: turn.State, Outcome: string(turn.Outcome), Requests: []string{}}
		if turn.Error != nil {
			vt.Error = turn.Error.Message
		}
		for _, r := range turn.Requests {
			vt.Requests = append(vt.Requests, r.ID)
		}
		v.Turns = append(v.Turns, vt)
	}
	return v
}

// page talks to the reader.
type page struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

func openPage(t *testing.T) *page {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: needs Node to run the page's fold; on Debian: apt-get install nodejs")
	}
	module, err := filepath.Abs("testdata/transcript.js")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "reader.mjs")
	// Node takes the page's file for a module because a module imports it as one.
	copied := filepath.Join(filepath.Dir(script), "transcript.mjs")
	b, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, fmt.Appendf(nil, reader, "./transcript.mjs"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
			t.Errorf("node: %v\n%s", err, stderr.String())
		}
	})
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, 64<<20)
	return &page{t, in, sc}
}

// step is a line for the reader.
type step struct {
	New      bool                 `json:"new,omitempty"`
	Snapshot *transcript.Snapshot `json:"snapshot,omitempty"`
	Events   []event.Event        `json:"events,omitempty"`
}

func (p *page) send(s step) view {
	p.t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		p.t.Fatal(err)
	}
	if !p.out.Scan() {
		p.t.Fatalf("the reader has ended: %v", p.out.Err())
	}
	var v view
	if err := json.Unmarshal(p.out.Bytes(), &v); err != nil {
		p.t.Fatalf("%v: %s", err, p.out.Bytes())
	}
	return v
}

// The page reports a text whose length or checksum differs from the one in its end event, with both values.
func TestMismatch(t *testing.T) {
	p := openPage(t)
	text := "Grüße"
	events := []event.Event{
		{Seq: 1, Type: event.TurnStart, Turn: "t", Body: &event.Body{}},
		{Seq: 2, Type: event.MessageStart, Turn: "t", Message: "m", Body: &event.Body{Role: event.Assistant}},
		{Seq: 3, Type: event.PartStart, Turn: "t", Message: "m", Part: "p", Body: &event.Body{Kind: event.KindText}},
		{Seq: 4, Type: event.PartAppend, Turn: "t", Message: "m", Part: "p", Text: text},
	}
	if v := p.send(step{New: true, Events: events}); !v.OK || v.Mismatch != nil {
		t.Fatalf("%+v", v)
	}
	want := event.Sum{Length: int64(len(text)), CRC: 7}
	v := p.send(step{Events: []event.Event{{Seq: 5, Type: event.PartEnd, Turn: "t", Message: "m", Part: "p", Body: &event.Body{Sums: map[string]event.Sum{"text": want}}}}})
	have := event.Sum{Length: want.Length, CRC: crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli))}
	if diff := cmp.Diff(&mismatch{"t", "m", "p", "text", 5, have, want}, v.Mismatch); v.OK || diff != "" {
		t.Errorf("ok %v\n%s", v.OK, diff)
	}
}

// The page's fold and package transcript reach the same result for readers that are interrupted, resume and get merged batches.
func TestFoldIsThatOfTranscript(t *testing.T) {
	p := openPage(t)
	logs := recorded(t)
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		logs[fmt.Sprintf("random %d", seed)] = scribble(rng)
	}
	for name, log := range logs {
		t.Run(name, func(t *testing.T) {
			p.t = t
			rng := rand.New(rand.NewPCG(uint64(len(log)), 2))
			for range 2 {
				follow(t, p, log, rng)
				confuse(t, p, log, rng)
			}
		})
	}
}

// follow has both readers follow a log, with the same accidents.
func follow(t *testing.T, p *page, log []event.Event, rng *rand.Rand) {
	var fold transcript.Transcript
	at := 0 // events below are in batches that came whole
	var whole transcript.Transcript
	for i := range log {
		if err := whole.Apply(&log[i]); err != nil {
			t.Fatal(err)
		}
	}
	p.send(step{New: true})
	compare := func(what string, got view, ok bool) {
		t.Helper()
		if d := cmp.Diff(look(&fold, ok), got); d != "" {
			t.Fatalf("%s, at %d of %d (-Go +page):\n%s", what, at, len(log), d)
		}
	}
	for at < len(log) {
		upto := min(len(log), at+1+rng.IntN(1+rng.IntN(40)))
		batch := transcript.SplitText(transcript.Merge(log[at:upto], history(&whole)), 16)
		switch rng.IntN(6) {
		case 0: // cut inside: some of it comes, and then all again from the old cursor, merged up to somewhere else
			batch = batch[:rng.IntN(len(batch)+1)]
			upto = at
		case 1: // a snapshot in place of the batch
			var until transcript.Transcript
			for i := range log[:upto] {
				if err := until.Apply(&log[i]); err != nil {
					t.Fatal(err)
				}
			}
			s := until.Snapshot(0)
			fold.Reset(s)
			compare("snapshot", p.send(step{Snapshot: s}), true)
			at = upto
			continue
		}
		ok := true
		for i := range batch {
			if fold.Apply(&batch[i]) != nil {
				ok = false
				break
			}
		}
		compare("batch", p.send(step{Events: batch}), ok)
		if !ok {
			t.Fatalf("a batch of a sound log does not apply: %v", batch)
		}
		at = upto
	}
}

// confuse applies events to both readers in invalid ways: late, early, repeated, with another seq. Both must have the same
// result and refuse the same events.
func confuse(t *testing.T, p *page, log []event.Event, rng *rand.Rand) {
	var fold transcript.Transcript
	p.send(step{New: true})
	n := 1 + rng.IntN(len(log))
	for i := range log[:n] {
		if err := fold.Apply(&log[i]); err != nil {
			t.Fatal(err)
		}
	}
	s := fold.Snapshot(0)
	if rng.IntN(2) == 0 {
		fold.Reset(s)
		p.send(step{Snapshot: s})
	} else {
		p.send(step{Events: log[:n]})
	}
	for range 60 {
		e := log[rng.IntN(len(log))]
		if rng.IntN(2) == 0 {
			e.Seq = int64(n) + int64(rng.IntN(2*len(log))) - int64(len(log)/2)
			e.Seq = max(e.Seq, 1)
		}
		if e.Type == event.PartEnd && rng.IntN(2) == 0 {
			sum := event.Sum{CRC: rng.Uint32()} // of a text that neither holds
			if p := fold.Message(e.Message); p != nil && p.Part(e.Part) != nil {
				sum.Length = int64(p.Part(e.Part).Len(event.Text))
			}
			e.Body = &event.Body{Sums: map[string]event.Sum{"text": sum}}
		}
		ok := fold.Apply(&e) == nil
		if m := fold.Message(e.Message); m != nil && m.Part(e.Part) != nil && !utf8.ValidString(m.Part(e.Part).Text(e.Field)) {
			return // an offset inside a character, which only a broken gateway sends, and which no string of the page can hold
		}
		got := p.send(step{Events: []event.Event{e}})
		got.Mismatch = nil // TestMismatch looks at it
		if d := cmp.Diff(look(&fold, ok), got); d != "" {
			t.Fatalf("%+v (-Go +page):\n%s", e, d)
		}
		if !ok {
			return
		}
	}
}

// history tells the notes of a log's parts.
func history(whole *transcript.Transcript) transcript.History {
	return func(message, part string, seq int64) ([]string, bool) {
		return whole.Message(message).Part(part).HistoryAt(seq)
	}
}

// recorded makes logs of recordings.
func recorded(t *testing.T) map[string][]event.Event {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "dialect", "openclaw", "testdata", "2026.9.6")
	logs := map[string][]event.Event{}
	d, err := all.Registry().Lookup("openclaw")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"multi", "errmid", "tool", "uni", "par", "abort", "media"} {
		f, err := os.Open(filepath.Join(dir, name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := recording.NewReader(f, "")
		if err != nil {
			t.Fatal(err)
		}
		ids := 0
		m := dialect.NewMapper("turn", func() string { ids++; return fmt.Sprint("id", ids) })
		log := []event.Event{{Seq: 1, Type: event.TurnStart, Turn: "turn", Body: &event.Body{Agent: "a"}}}
		take := func(ops []event.Event) {
			events, err := m.Map(ops, 7)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				e.Seq = int64(len(log)) + 1
				log = append(log, e)
			}
		}
		dec := d.Decoder()
		for {
			frame, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			ops, err := dec.Decode(frame.Frame)
			if err != nil {
				t.Fatal(err)
			}
			take(ops)
		}
		ops, _ := dec.Close() // abort is cut on purpose; the rest shows in the fold
		take(ops)
		if len(log) < 5 {
			t.Fatalf("%s: %d events", name, len(log))
		}
		logs[name] = log
	}
	return logs
}

// scribble makes a log with what recordings lack: two fields, retracts, notes, requests, texts of all widths, child turns.
func scribble(rng *rand.Rand) []event.Event {
	var log []event.Event
	var fold transcript.Transcript
	add := func(e event.Event) {
		e.Seq, e.At = int64(len(log))+1, 5
		if e.Type == event.PartAppend {
			e.Offset = int64(fold.Message(e.Message).Part(e.Part).Len(e.Field))
		}
		if err := fold.Apply(&e); err != nil {
			panic(err)
		}
		log = append(log, e)
	}
	texts := []string{"a", "é", "漢字", "😀", " ", "\n", strings.Repeat("xyz ", 9), "ä😀ß"}
	text := func() string { return texts[rng.IntN(len(texts))] + texts[rng.IntN(len(texts))] }
	for turn := range 3 {
		id := fmt.Sprint("t", turn)
		add(event.Event{Type: event.MessageAdd, Message: "u" + id, Body: &event.Body{Role: event.User, Parts: []event.Part{{Kind: event.KindText, Text: text()}}}})
		add(event.Event{Type: event.TurnQueue, Turn: id, Body: &event.Body{Agent: "a", Answers: "u" + id}})
		add(event.Event{Type: event.MessageUpdate, Turn: id, Message: "u" + id, Body: &event.Body{MessageState: event.MessageQueued}})
		add(event.Event{Type: event.TurnStart, Turn: id, Body: &event.Body{Agent: "a"}})
		msg := "m" + id
		add(event.Event{Type: event.MessageStart, Turn: id, Message: msg, Body: &event.Body{Role: event.Assistant}})
		kinds := []event.PartKind{event.KindText, event.KindTool, event.KindStatus, event.KindReasoning}
		for i, k := range kinds {
			b := &event.Body{Kind: k, Join: event.JoinBlank}
			if k == event.KindTool {
				b.Name, b.State = "tool", event.PartRunning
			}
			add(event.Event{Type: event.PartStart, Turn: id, Message: msg, Part: fmt.Sprint("p", i), Body: b})
		}
		for range 30 + rng.IntN(60) {
			i := rng.IntN(len(kinds))
			p := fold.Message(msg).Part(fmt.Sprint("p", i))
			e := event.Event{Type: event.PartAppend, Turn: id, Message: msg, Part: p.ID, Text: text()}
			if kinds[i] == event.KindTool {
				e.Field = []event.Field{event.Input, event.Output, event.Stderr}[rng.IntN(3)]
			}
			if kinds[i] == event.KindStatus {
				e.Note = strings.TrimSpace(e.Text)
			}
			switch rng.IntN(12) {
			case 0:
				e.Type = event.PartReplace
			case 1:
				e.Type, e.Text = event.PartReplace, ""
			case 2:
				if p.Final || kinds[i] == event.KindTool {
					continue
				}
				e = event.Event{Type: event.PartEnd, Turn: id, Message: msg, Part: p.ID, Body: &event.Body{Sums: map[string]event.Sum{"text": p.Sum(event.Text)}}}
			case 3:
				title := text()
				e = event.Event{Type: event.ConversationUpdate, Body: &event.Body{Title: &title}}
			case 4:
				e = event.Event{Type: event.TurnWait, Turn: id, Body: &event.Body{Request: &event.Request{ID: fmt.Sprint("r", len(log)), Kind: event.RequestInput}}}
			case 5:
				open := fold.Turn(id).Requests
				if len(open) == 0 {
					continue
				}
				e = event.Event{Type: event.TurnResume, Turn: id, Body: &event.Body{Answer: &event.Answer{ID: open[0].ID}}}
			case 6:
				e = event.Event{Type: event.TurnUpdate, Turn: id, Body: &event.Body{Phase: text()}}
			case 7:
				title := text()
				e = event.Event{Type: event.PartUpdate, Turn: id, Message: msg, Part: p.ID, Body: &event.Body{Title: &title}}
			}
			if e.Op() && p.Final && (e.Type != event.PartReplace || e.Text != "") {
				continue
			}
			add(e)
		}
		end := &event.Body{Outcome: event.Completed}
		if rng.IntN(2) == 0 {
			end = &event.Body{Outcome: event.Failed, Error: &event.Error{Message: "no"}}
		}
		add(event.Event{Type: event.TurnEnd, Turn: id, Body: end})
	}
	return log
}
