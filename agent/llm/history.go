// A conversation as the messages of a model API, with the files that the model can read.

package llm

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

const (
	// maxAttached limits the attachments of a call, in bytes, and maxOne each of them. Providers refuse larger requests.
	maxAttached = 16 << 20
	maxOne      = 5 << 20
)

// turn is what one side has written before the other side answers. APIs require that the sides alternate and that the user is
// first and last.
type turn struct {
	role   event.Role // User or Assistant
	blocks []block
}

// block is a text or a file with its bytes.
type block struct {
	text string
	mime string // empty for a text
	name string
	data []byte
}

// isImage reports whether the block is an image.
func (b *block) isImage() bool { return strings.HasPrefix(b.mime, "image/") }

// text returns all texts of a turn, for APIs that accept only one.
func (t *turn) text() string {
	var texts []string
	for _, b := range t.blocks {
		if b.mime == "" {
			texts = append(texts, b.text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// turns converts the conversation to turns. It goes backward from the newest message, so that the budgets for
// texts and attachments are spent on the newest messages. The newest message is always included, however long
// it is.
//
// The result alternates between the two sides and starts and ends with the user, as the APIs require.
// Consecutive messages of one side are merged, messages without content are skipped, and an answer whose
// question exceeds the budget is dropped with it.
func (a *modelAgent) turns(ctx context.Context, in agent.Input, emitter *agent.Emitter) ([]turn, error) {
	messages := append(slices.Clone(in.History), in.Message)
	attached, texts := maxAttached, a.cfg.HistoryBytes
	var reversed []turn
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		if texts -= len(m.Text); a.cfg.HistoryBytes > 0 && texts < 0 && i < len(messages)-1 {
			break
		}
		blocks, err := a.blocks(ctx, m, emitter, &attached)
		if err != nil {
			return nil, err
		}
		if len(blocks) == 0 {
			continue
		}
		role := event.Assistant
		if m.Role != event.Assistant {
			role = event.User // APIs have no system role between messages
		}
		// Consecutive messages of one side, such as two questions after a failed turn, become one turn.
		if n := len(reversed); n > 0 && reversed[n-1].role == role {
			reversed[n-1].blocks = append(blocks, reversed[n-1].blocks...)
			continue
		}
		reversed = append(reversed, turn{role, blocks})
	}
	if n := len(reversed); n > 0 && reversed[n-1].role == event.Assistant {
		reversed = reversed[:n-1] // the question that it answered exceeds the budget
	}
	if len(reversed) == 0 || reversed[0].role != event.User {
		return nil, &agent.Error{Code: codeRefused, Message: "the message has no content that a model could answer"}
	}
	slices.Reverse(reversed)
	return reversed, nil
}

// blocks returns the content of a message. budget is the remaining size of attachments, which it reduces. Attachments of
// answers are left out, since APIs accept files only from the user.
func (a *modelAgent) blocks(ctx context.Context, m *agent.Message, emitter *agent.Emitter, budget *int) ([]block, error) {
	var content []block
	if m.Role != event.Assistant {
		for i := range m.Parts {
			switch p := &m.Parts[i]; {
			case p.Kind == event.KindMedia && p.Media != nil:
				b, err := a.attach(ctx, p.Media, emitter, budget)
				if err != nil {
					return nil, err
				}
				content = append(content, b)
			case p.Kind == event.KindData && len(p.Data) > 0:
				content = append(content, block{text: string(p.Data)})
			}
		}
	}
	if strings.TrimSpace(m.Text) != "" {
		content = append(content, block{text: m.Text})
	}
	return content, nil
}

// attach reads a file. If the model can't get it, the block is a note with the file's name and the reason, so
// that the model doesn't pretend to know the content. Text files become text, other files must be of a type
// that the API reads. The file counts towards the budget only if it is sent. It returns an error only if the
// turn has ended.
func (a *modelAgent) attach(ctx context.Context, m *event.Media, emitter *agent.Emitter, budget *int) (block, error) {
	kind, _, err := mime.ParseMediaType(m.MIME)
	if err != nil {
		kind = "application/octet-stream"
	}
	note := func(reason string) (block, error) {
		return block{text: fmt.Sprintf("[Attached: %s (%s). %s]", cmp.Or(m.Name, "a file"), kind, reason)}, nil
	}
	plain := textual(kind)
	if !plain && !images[kind] && (a.api.reads == nil || !a.api.reads(kind)) {
		return note("This kind of file can't be shown to you.")
	}
	// One byte more than the limit is read, to distinguish a file of exactly the limit from a larger one.
	limit := min(*budget, maxOne)
	r, err := open(ctx, m, emitter)
	if err != nil {
		if ctx.Err() != nil {
			return block{}, context.Cause(ctx)
		}
		emitter.Log().Warn("attachment not read", "error", err)
		return note("It is no longer available.")
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	switch {
	case ctx.Err() != nil:
		return block{}, context.Cause(ctx)
	case err != nil:
		emitter.Log().Warn("attachment not read", "error", err)
		return note("It is no longer available.")
	case len(data) > limit:
		return note("It was left out because it is too large.")
	}
	*budget -= len(data)
	if plain {
		return block{text: fmt.Sprintf("[Attached: %s]\n%s", m.Name, strings.ToValidUTF8(string(data), "\ufffd"))}, nil
	}
	return block{mime: kind, name: m.Name, data: data}, nil
}

// open opens a file, which is stored in the gateway or embedded in the message as a data URL. Other URLs aren't
// fetched, since they could point into the gateway's network.
func open(ctx context.Context, m *event.Media, emitter *agent.Emitter) (io.ReadCloser, error) {
	if content, ok := strings.CutPrefix(m.URL, "data:"); ok {
		head, data, ok := strings.Cut(content, ",")
		if !ok || !strings.HasSuffix(head, ";base64") {
			return nil, fmt.Errorf("%w: a data URL that isn't base64", fs.ErrInvalid)
		}
		return io.NopCloser(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data))), nil
	}
	return emitter.OpenFile(ctx, *m)
}

// images are the image types that all providers accept.
var images = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// textual reports whether a file is sent as text.
func textual(kind string) bool {
	return strings.HasPrefix(kind, "text/") || kind == "application/json" || kind == "application/xml" || kind == "application/yaml" || kind == "application/x-ndjson"
}

// pdf reports whether a file is a PDF, the only document type that most providers read.
func pdf(kind string) bool { return kind == "application/pdf" }
