package data_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
	"github.com/leat-dev/leat/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	quiet = slog.New(slog.DiscardHandler)
	admin = gateway.Principal{Admin: true}
	alice = gateway.Principal{Tenant: "acme", Subject: "alice-7731"}
	bob   = gateway.Principal{Tenant: "acme", Subject: "bob-4242"}
)

func subject(p gateway.Principal) data.Subject {
	return data.Subject{Tenant: p.Tenant, Subject: p.Subject}
}

// echo is an agent that sends a status and repeats the message.
type echo struct{}

func (echo) Run(_ context.Context, in agent.Input, out *agent.Emitter) error {
	return errors.Join(out.Status("looking at "+in.Message.Text, "replace"), out.Text("you said "), out.Text(in.Message.Text))
}

// mute is an agent whose answer doesn't repeat the message.
type mute struct{}

func (mute) Run(_ context.Context, _ agent.Input, out *agent.Emitter) error { return out.Text("noted") }

type harness struct {
	t *testing.T
	*gateway.Gateway
	journal journal.Journal
}

func newHarness(t *testing.T, j journal.Journal, changes ...func(*gateway.Config)) *harness {
	t.Helper()
	if j == nil {
		j = memory.New()
	}
	agents := gateway.Agents{"a": {Agent: echo{}}, "b": {Agent: echo{}}, "mute": {Agent: mute{}}}
	c := gateway.Config{Journal: j, Agents: agents, DefaultAgent: "a", Dialects: dialect.NewRegistry()}
	for _, change := range changes {
		change(&c)
	}
	g, err := gateway.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return &harness{t, g, j}
}

func onDisk(t *testing.T, dir string) *sqlite.Journal {
	t.Helper()
	j, err := sqlite.Open(sqlite.Options{Dir: dir, Sync: sqlite.Normal, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (h *harness) close() {
	h.t.Helper()
	if err := h.Shutdown(context.Background()); err != nil {
		h.t.Error("shutdown:", err)
	}
}

// talk creates a conversation with one message and its answer.
func (h *harness) talk(p gateway.Principal, agent, text string) (id string) {
	h.t.Helper()
	s, _, err := h.Create(h.t.Context(), p, gateway.CreateOptions{Agent: agent, Title: "about " + text, Key: "made " + text})
	if err != nil {
		h.t.Fatal(err)
	}
	h.say(p, s.ID, text)
	return s.ID
}

func (h *harness) say(p gateway.Principal, id, text string) {
	h.t.Helper()
	h.sayTo(p, id, "", text)
}

// ask sends a message to the agent mute, which doesn't repeat it.
func (h *harness) ask(p gateway.Principal, id, text string) {
	h.t.Helper()
	h.sayTo(p, id, "mute", text)
}

func (h *harness) sayTo(p gateway.Principal, id, agent, text string) {
	h.t.Helper()
	ack, err := h.Do(h.t.Context(), p, id, gateway.Command{Type: gateway.CommandSend, Agent: agent, Message: &gateway.CommandMessage{Text: text}})
	if err != nil {
		h.t.Fatal(err)
	}
	f, err := h.Feed(h.t.Context(), admin, id)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Release()
	for over := false; !over; {
		changed := f.Notify()
		f.View(func(t *transcript.Transcript) {
			turn := t.Turn(ack.Turn)
			over = turn != nil && !turn.Unfinished()
		})
		if !over {
			<-changed
		}
	}
}

func (h *harness) lists(p gateway.Principal) (ids []string) {
	h.t.Helper()
	all, err := h.List(h.t.Context(), p, nil, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return ids
}

// grep returns a file below dir that contains the text, or "".
func grep(t *testing.T, dir, text string) (found string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			found = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (h *harness) export(p gateway.Principal, of data.Subject, c ...data.Collection) (lines []string) {
	h.t.Helper()
	err := data.NewExporter(h.Gateway, h.journal, c).Export(h.t.Context(), p, of, func(b []byte) error {
		if !json.Valid(b) {
			h.t.Errorf("invalid JSON: %s", b)
		}
		lines = append(lines, string(b))
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return lines
}

func (h *harness) load(lines []string) data.Importing {
	h.t.Helper()
	out, err := data.NewImporter(h.Gateway).Import(h.t.Context(), admin, strings.NewReader(strings.Join(lines, "\n")+"\n"))
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}
