package llm

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/llm/llmtest"
	"github.com/leat-dev/leat/event"
)

// store is a sink with files, by URL.
type store struct {
	log
	files map[string][]byte
}

func (*store) PutFile(context.Context, agent.File, io.Reader) (event.Media, error) {
	return event.Media{}, agent.ErrNoFiles
}

func (*store) FindFile(context.Context, string) (event.Media, bool, error) {
	return event.Media{}, false, nil
}

func (s *store) OpenFile(_ context.Context, m event.Media) (io.ReadCloser, error) {
	b, ok := s.files[m.URL]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func media(url, mime string) event.Part {
	return event.Part{Kind: event.KindMedia, Media: &event.Media{URL: url, MIME: mime, Name: url}}
}

// Images and documents are sent in each provider's format; other files are mentioned by name.
func TestAttachments(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		s := llmtest.New(t, kind)
		files := &store{files: map[string][]byte{
			"a.png": []byte("picture"), "b.pdf": []byte("document"), "c.txt": []byte("plain words"),
			"d.zip": []byte("zip"), "big.png": make([]byte, maxOne+1),
		}}
		in := question("What is this?")
		in.Message.Parts = []event.Part{
			media("a.png", "image/png"), media("b.pdf", "application/pdf"), media("c.txt", "text/plain; charset=utf-8"),
			media("d.zip", "application/zip"), media("big.png", "image/png"), media("gone.png", "image/png"),
			media("data:image/png;base64,aW5saW5l", "image/png"), media("data:text/plain,broken", "text/plain"),
			{Kind: event.KindData, Data: json.RawMessage(`{"choice":7}`)},
		}
		if err := made(t, kind, s.URL, nil).Run(t.Context(), in, agent.NewEmitter(t.Context(), files)); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(s.Calls()[0].Body)
		if err != nil {
			t.Fatal(err)
		}
		sent := string(b)
		for _, word := range []string{
			base64.StdEncoding.EncodeToString([]byte("picture")), "plain words", "[Attached: d.zip (application/zip). This kind",
			"[Attached: big.png (image/png). It was left out because it is too large.]", "[Attached: gone.png (image/png). It is no longer available.]",
			`choice`, "What is this?", "aW5saW5l", "[Attached: data:text/plain,broken (text/plain). It is no longer available.]",
		} {
			if !strings.Contains(sent, word) {
				t.Errorf("%q is missing in %.2000s", word, sent)
			}
		}
		if has := strings.Contains(sent, base64.StdEncoding.EncodeToString([]byte("document"))); has != (kind != "ollama") {
			t.Errorf("document sent: %v", has)
		}
	})
}

// The budgets are spent on the newest messages first; the message to answer is always sent.
func TestBudgets(t *testing.T) {
	pic := bytes.Repeat([]byte("x"), maxOne)
	files := &store{files: map[string][]byte{"p": pic}}
	var in agent.Input
	for i := range 6 {
		in.History = append(in.History,
			agent.Message{Role: event.User, Text: strings.Repeat("u", 100), Parts: []event.Part{media("p", "image/png")}},
			agent.Message{Role: event.Assistant, Text: strings.Repeat("a", 100+i)})
	}
	in.Message = agent.Message{Role: event.User, Text: strings.Repeat("q", 500)}
	a := &modelAgent{}
	turns, err := a.turns(t.Context(), in, agent.NewEmitter(t.Context(), files))
	if err != nil || len(turns) != 13 {
		t.Fatal(len(turns), err)
	}
	got := ""
	for _, turn := range turns {
		for _, b := range turn.blocks {
			switch {
			case b.isImage():
				got += "p"
			case strings.HasPrefix(b.text, "[Attached"):
				got += "-"
			}
		}
	}
	if got != "---ppp" {
		t.Errorf("images %s, want the newest first", got)
	}
	for bytes, want := range map[int]int{1: 1, 500: 1, 700: 1, 710: 3, 1000: 5} {
		a.cfg.HistoryBytes = bytes
		turns, err := a.turns(t.Context(), in, agent.NewEmitter(t.Context(), files))
		if err != nil || len(turns) != want || turns[0].role != event.User || turns[len(turns)-1].text() != in.Message.Text {
			t.Errorf("%d bytes: %d turns, want %d; %v", bytes, len(turns), want, err)
		}
	}
}

func TestEmptyMessage(t *testing.T) {
	a := &modelAgent{}
	if _, err := a.turns(t.Context(), question(" \n"), agent.NewEmitter(t.Context(), &log{})); err == nil {
		t.Error("no error")
	}
}
