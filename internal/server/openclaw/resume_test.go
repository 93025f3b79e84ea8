package openclaw

import (
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

// Twenty connections are cut at random while an answer is written. Each client continues where the page of its connection
// ends, and the text at the end is that of the log.
func TestCuts(t *testing.T) {
	h := newHarness(t)
	rng := rand.New(rand.NewPCG(1, 2))
	h.connect("ui").send(mainKey, "r", "words")
	for cut := range 20 {
		c := h.connect("ui")
		page := c.call("chat.startup", map[string]any{"sessionKey": mainKey})
		run, ok := page["inFlightRun"].(map[string]any)
		if !ok {
			break // the answer is complete
		}
		text := run["text"].(string)
		for range rng.IntN(10) {
			e := c.next("chat")
			if e["state"] != "delta" {
				break
			}
			c.apply(e, &text)
		}
		if cut%2 == 0 {
			_ = c.conn.CloseNow()
		}
	}
	last := h.connect("ui")
	page := last.call("chat.startup", map[string]any{"sessionKey": mainKey})
	text := ""
	if run, ok := page["inFlightRun"].(map[string]any); ok {
		text = run["text"].(string)
		last.finish("r", &text)
	} else {
		rows := page["messages"].([]any)
		text = textOf(rows[len(rows)-1])
	}
	if want := h.visible(last, mainKey); text != want || strings.Count(text, "word") != 400 {
		t.Errorf("got %d bytes, the log has %d", len(text), len(want))
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

// A client that reads nothing delays neither the agent nor another client, and gets everything later.
func TestSlowReader(t *testing.T) {
	h := newHarness(t)
	slow, fast := h.connect("ui"), h.connect("ui")
	slow.send(mainKey, "first", "hello")
	text := ""
	slow.finish("first", &text)
	fast.send(mainKey, "r", "words") // slow reads this session too, and nothing of it now
	text = ""
	fast.finish("r", &text)
	if strings.Count(text, "word") != 400 {
		t.Errorf("%d bytes", len(text))
	}
	late := ""
	slow.finish("r", &late)
	if late != text {
		t.Errorf("the slow client has %d bytes of %d", len(late), len(text))
	}
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
	text := ""
	c.send(mainKey, "long", "words")
	c.finish("long", &text)
	page := c.call("chat.history", map[string]any{"sessionKey": mainKey, "maxBytes": 1500})
	rows := page["messages"].([]any)
	last := rows[len(rows)-1].(map[string]any)
	if page["hasMore"] != true || !strings.HasSuffix(textOf(last), "...(truncated)...") || last["__openclaw"].(map[string]any)["truncated"] != true {
		t.Errorf("%d rows, the last one %v", len(rows), last)
	}
}
