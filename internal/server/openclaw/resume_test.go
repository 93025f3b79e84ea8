package openclaw

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

// A reload in the middle of a run shows what is there, and the deltas continue at the end of it.
func TestReload(t *testing.T) {
	h := newHarness(t)
	a := h.connect("ui")
	a.send(mainKey, "r", "slow")
	text := ""
	a.apply(a.next("chat"), &text)
	b := h.connect("ui")
	page := b.call("chat.startup", map[string]any{"sessionKey": mainKey, "limit": 80, "maxBytes": 262144})
	run := page["inFlightRun"].(map[string]any)
	info := page["sessionInfo"].(map[string]any)
	if run["runId"] != "r" || run["text"] != "one " || info["hasActiveRun"] != true || info["activeRunIds"].([]any)[0] != "r" {
		t.Fatalf("page %v", page)
	}
	if rows := page["messages"].([]any); len(rows) != 1 || rows[0].(map[string]any)["role"] != "user" {
		t.Errorf("rows %v", rows)
	}
	h.open()
	h.open()
	text = run["text"].(string)
	if e := b.finish("r", &text); e["state"] != "final" || text != "one two three" {
		t.Errorf("%v, text %q", e, text)
	}
}

// An answer is read by twenty clients, one after the other, each of which is cut at a random event. Each continues where the page of its
// connection ends, and what each has seen is the beginning of the text in the log.
func TestCuts(t *testing.T) {
	h := newHarness(t)
	rng := rand.New(rand.NewPCG(1, 2))
	h.connect("ui").send(mainKey, "r", "steps")
	var texts []string
	for step := range steps {
		c := h.connect("ui")
		run, ok := c.call("chat.startup", map[string]any{"sessionKey": mainKey})["inFlightRun"].(map[string]any)
		if !ok {
			t.Fatalf("no run is in flight before step %d", step)
		}
		text := run["text"].(string)
		h.open() // the agent writes more than c has seen
		end := fmt.Sprintf("word%d ", (step+1)*wordsPerStep-1)
		for isCut := false; !isCut; isCut = rng.IntN(3) == 0 || strings.HasSuffix(text, end) {
			for e := c.next("chat"); ; e = c.next("chat") {
				if e["state"] == "delta" {
					c.apply(e, &text)
					break
				}
				if step < steps-1 {
					t.Fatalf("the run ends in step %d: %v", step, e)
				}
			}
		}
		if err := c.conn.CloseNow(); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	last := h.connect("ui")
	page := last.call("chat.startup", map[string]any{"sessionKey": mainKey})
	if run, ok := page["inFlightRun"].(map[string]any); ok {
		text := run["text"].(string)
		last.finish("r", &text)
		texts = append(texts, text)
	} else {
		rows := page["messages"].([]any)
		texts = append(texts, textOf(rows[len(rows)-1]))
	}
	want := h.visible(last, mainKey)
	if got := texts[len(texts)-1]; got != want || strings.Count(want, "word") != steps*wordsPerStep {
		t.Errorf("the last client has %d bytes, the log has %d", len(got), len(want))
	}
	for i, text := range texts {
		if i > 0 && len(text) <= len(texts[i-1]) && i < steps || !strings.HasPrefix(want, text) {
			t.Errorf("client %d has %d bytes that aren't the beginning of the log's: %q", i, len(text), text)
		}
	}
}

// Two clients get the same answer.
func TestTwoClients(t *testing.T) {
	h := newHarness(t)
	a, b := h.connect("ui"), h.connect("ui")
	a.send(mainKey, "r", "slow")
	page := b.call("chat.startup", map[string]any{"sessionKey": mainKey})
	h.open()
	h.open()
	one, two := "", page["inFlightRun"].(map[string]any)["text"].(string)
	a.finish("r", &one)
	b.finish("r", &two)
	if one != "one two three" || two != one {
		t.Errorf("%q and %q", one, two)
	}
}

// The socket of a client that reads nothing is full, and neither the agent nor other clients wait for it. When it reads again, it gets the
// rest in few events, and nothing is missing.
func TestSlowReader(t *testing.T) {
	h := newHarness(t)
	slow, fast := h.connect("ui"), h.connect("ui")
	slow.send(mainKey, "r", "blocks") // from here on, slow reads nothing until the run is over
	text := fast.call("chat.startup", map[string]any{"sessionKey": mainKey})["inFlightRun"].(map[string]any)["text"].(string)
	deltas := 0
	for range blocks {
		h.open()
		for want := len(text) + len(aBlock); len(text) < want; deltas++ {
			fast.apply(fast.next("chat"), &text)
		}
	}
	if e := fast.finish("r", &text); e["state"] != "final" || text != strings.Repeat(aBlock, blocks) {
		t.Fatalf("%s, %d bytes", e["state"], len(text))
	}
	// The gateway takes commands for the same conversation, from other connections too.
	fast.send(mainKey, "r2", "hello")
	fast.finish("r2", new(string))

	late, lateDeltas := "", 0
	for e := slow.next("chat"); e["state"] == "delta"; e = slow.next("chat") {
		slow.apply(e, &late)
		lateDeltas++
	}
	if late != text {
		t.Errorf("the slow client has %d bytes of %d", len(late), len(text))
	}
	// A socket that takes everything would have got an event for each block, as fast did.
	if lateDeltas > blocks/2 {
		t.Errorf("the slow client got %d events, the fast one %d: its socket was not full", lateDeltas, deltas)
	}
	slow.finish("r2", new(string))
	t.Logf("events: %d of the slow client, %d of the fast one", lateDeltas, deltas)
}

// After a restart of the gateway, the history has the same rows, and the same key names the same session.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	var sessionID any
	t.Run("before", func(t *testing.T) {
		j, err := sqlite.Open(sqlite.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		h := newHarnessOn(t, j, "")
		c := h.connect("ui")
		c.send(mainKey, "r", "slow")
		text := ""
		c.apply(c.next("chat"), &text)
		sessionID = c.call("chat.history", map[string]any{"sessionKey": mainKey})["sessionId"]
	})
	j, err := sqlite.Open(sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	h := newHarnessOn(t, j, "")
	c := h.connect("ui")
	page := c.call("chat.startup", map[string]any{"sessionKey": mainKey})
	rows := page["messages"].([]any)
	if page["sessionId"] != sessionID || len(rows) != 2 {
		t.Fatalf("page %v", page)
	}
	last := rows[1].(map[string]any)
	if textOf(last) != "one " || last["stopReason"] != "error" || last["__openclaw"].(map[string]any)["runId"] != "r" {
		t.Errorf("row %v", last)
	}
}

// A history has at most as many rows and bytes as the client wants, and the next page has those before.
func TestPages(t *testing.T) {
	h := newHarness(t)
	c := h.connect("ui")
	for _, run := range []string{"a", "b", "c"} {
		text := ""
		c.send(mainKey, run, run)
		c.finish(run, &text)
	}
	var texts []string
	offset := 0.0
	for {
		page := c.call("chat.history", map[string]any{"sessionKey": mainKey, "limit": 4, "offset": offset})
		rows := page["messages"].([]any)
		for i := range rows {
			texts = append(texts, textOf(rows[len(rows)-1-i]))
		}
		if page["hasMore"] != true {
			break
		}
		offset = page["nextOffset"].(float64)
	}
	if got := strings.Join(texts, ","); got != "re: c,c,re: b,b,re: a,a" {
		t.Errorf("pages %s", got)
	}
	// The run in flight is a row of none of the pages.
	running := h.connect("ui")
	running.send(mainKey, "d", "slow")
	running.apply(running.next("chat"), new(string))
	page := c.call("chat.history", map[string]any{"sessionKey": mainKey, "limit": 3})
	before := c.call("chat.history", map[string]any{"sessionKey": mainKey, "limit": 2, "offset": page["nextOffset"]})
	texts = nil
	for _, row := range append(before["messages"].([]any), page["messages"].([]any)...) {
		texts = append(texts, textOf(row))
	}
	if got := strings.Join(texts, ","); got != "b,re: b,c,re: c,slow" {
		t.Errorf("pages %s", got)
	}
	running.call("chat.abort", map[string]any{"sessionKey": mainKey})
	text := ""
	c.send(mainKey, "long", "words")
	c.finish("long", &text)
	page = c.call("chat.history", map[string]any{"sessionKey": mainKey, "maxBytes": 1500})
	rows := page["messages"].([]any)
	last := rows[len(rows)-1].(map[string]any)
	if page["hasMore"] != true || !strings.HasSuffix(textOf(last), "...(truncated)...") || last["__openclaw"].(map[string]any)["truncated"] != true {
		t.Errorf("%d rows, the last one %v", len(rows), last)
	}
}
