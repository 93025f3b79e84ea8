package openclaw

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

type sendParams struct {
	Session     string       `json:"sessionKey"`
	Message     string       `json:"message"`
	Key         string       `json:"idempotencyKey"`
	QueueMode   string       `json:"queueMode,omitempty"`
	Attachments []attachment `json:"attachments,omitempty"`
}

type attachment struct {
	Type    string `json:"type"`
	MIME    string `json:"mimeType,omitempty"`
	Name    string `json:"fileName,omitempty"`
	Content string `json:"content"` // base64
}

type sendResult struct {
	Run     string `json:"runId"`
	Status  string `json:"status"`
	Summary string `json:"summary"`
}

// send hands a run's message to the gateway. That it may have it is durable before. A refusal that says to come back is
// followed, for as long as sendLimit; where the connection is lost the run's fate is looked up on the next one.
func (t *turn) send(ctx context.Context, conn *connection, r *run) error {
	m := t.in.Message
	if r.Message != nil {
		m = *r.Message
	}
	p := sendParams{Session: t.session, Message: m.Text, Key: r.ID}
	switch {
	case r.Message != nil:
		p.QueueMode = "steer"
	case conn.protocol() >= numberedProtocol:
		p.QueueMode = "followup" // another client's run is not to answer it
	}
	var err error
	if p.Message, p.Attachments, err = t.attachments(ctx, conn, m); err != nil {
		return err
	}
	if err := t.requestToolFrames(ctx, conn); err != nil {
		return err
	}
	r.IsSent, r.SentAt, r.link = true, time.Now().UnixMilli(), conn
	err = t.step(func() ([]event.Event, error) {
		return []event.Event{{Type: event.TurnUpdate, Turn: t.in.Key, Body: &event.Body{Upstream: &event.Upstream{Run: r.ID}}}}, nil
	})
	if err != nil {
		return err
	}
	if err := t.save(); err != nil {
		return err
	}
	b, startedAt := backoff{}, time.Now()
	for {
		answer, err := conn.ask(ctx, "chat.send", p, t.emitter.CaptureSent)
		var rpcErr *rpcError
		switch {
		case err == nil:
			return t.handleSendResponse(ctx, conn, r, answer)
		case !errors.As(err, &rpcErr):
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			t.unsure = true
			return err
		}
		t.emitter.CaptureReceived(mustJSON(map[string]any{"type": "res", "ok": false, "error": rpcErr}))
		if rpcErr.isDisowned() {
			if id, ok := nextID(r.ID); ok {
				next, err := t.replace(r, id)
				if err != nil {
					return err
				}
				return t.send(ctx, conn, next)
			}
		}
		after, retryable := temporary(rpcErr)
		wait := b.next(after)
		if r.Message != nil || !retryable || time.Since(startedAt)+wait > sendLimit {
			r.IsSent = false
			if explanation := explain(rpcErr); explanation != nil {
				return explanation
			}
			return rpcErr
		}
		t.emitter.Log().Info("OpenClaw asks to come back", "error", rpcErr.Message, "in", wait.String())
		t.showPhase(ctx, "retrying")
		var trouble *agent.Error
		if errors.As(agentError(rpcErr), &trouble) {
			t.emitter.Trouble(trouble)
		}
		if err := sleepConnected(ctx, conn, wait); err != nil {
			return err
		}
	}
}

// replace gives a message that the gateway refuses under the id of its run another run.
func (t *turn) replace(r *run, id string) (*run, error) {
	t.emitter.Log().Info("OpenClaw was restarted while the message waited; it is sent under another id", "run", id, "before", r.ID)
	t.a.mu.Lock()
	t.a.runs[id] = t
	t.a.mu.Unlock()
	next := &run{ID: id, Message: r.Message}
	return next, t.step(func() ([]event.Event, error) {
		r.IsOver = true
		t.st.Runs = append(t.st.Runs, next)
		return nil, nil
	})
}

// maxSends bounds how often a message is sent under another id: as often as the gateway may be killed while it waits.
const maxSends = 9

// nextID returns the id of the next run of a message, see [Agent.firstRun]: the turn in it gets a number, as in turn~2.message.
func nextID(id string) (next string, ok bool) {
	turn, message, hasMessage := strings.Cut(id, ".")
	turn, number, hasNumber := strings.Cut(turn, "~")
	n := 1
	if hasNumber {
		var err error
		if n, err = strconv.Atoi(number); err != nil {
			return "", false
		}
	}
	if next = turn + "~" + strconv.Itoa(n+1); hasMessage {
		next += "." + message
	}
	return next, n < maxSends
}

// acknowledged takes the answer to chat.send. All but an error means that the gateway has the message.
func (t *turn) handleSendResponse(ctx context.Context, conn *connection, r *run, answer *response) error {
	t.emitter.CaptureReceived(answer.raw)
	var s sendResult
	if err := json.Unmarshal(answer.frame.Payload, &s); err != nil {
		return fmt.Errorf("chat.send: %w", err)
	}
	r.IsAccepted = true
	switch s.Status {
	case "ok", "error": // it had it before, and the run has ended since
		t.unsure = true
		return t.lookUp(ctx, conn)
	}
	return t.save()
}

// verbose makes a gateway before protocol 4 send the frames of tools whole.
func (t *turn) requestToolFrames(ctx context.Context, conn *connection) error {
	if conn.protocol() >= numberedProtocol {
		return nil
	}
	err := conn.call(ctx, "sessions.patch", map[string]string{"key": t.session, "verboseLevel": "full"}, nil)
	var rpcErr *rpcError
	if errors.As(err, &rpcErr) {
		t.emitter.Log().Warn("OpenClaw will not show tools whole", "error", rpcErr.Message)
		return nil
	}
	return err
}

// attachments reads a message's files. One that does not lie in the store is named in the text, with its address, and one that is
// too large to be attached with its path, where the agent finds it in the workspace.
func (t *turn) attachments(ctx context.Context, conn *connection, m agent.Message) (string, []attachment, error) {
	text := m.Text
	var attached []attachment
	for _, p := range m.Parts {
		if p.Kind != event.KindMedia || p.Media == nil {
			continue
		}
		if p.Media.URL == "" {
			continue // it was named by a path, and is not there: its part says so
		}
		f, err := t.emitter.OpenFile(ctx, *p.Media)
		if err != nil {
			if ctx.Err() != nil {
				return "", nil, context.Cause(ctx)
			}
			if strings.HasPrefix(p.Media.URL, "https://") || strings.HasPrefix(p.Media.URL, "http://") {
				text = strings.TrimLeft(text+"\n\n", "\n") + p.Media.URL
				continue
			}
			return "", nil, &agent.Error{Code: codeAttachment, Message: fmt.Sprintf("the file %s can't be handed to OpenClaw", fileName(p.Media)), Detail: err.Error()}
		}
		a, err := encode(f, conn.attachmentLimit(), p.Media)
		if errors.Is(err, errTooLarge) {
			if at := t.emitter.FilePath(ctx, *p.Media); at != "" {
				_ = f.Close() // nothing was written
				text = strings.TrimLeft(text+"\n\n", "\n") + "MEDIA:" + at
				continue
			}
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return "", nil, &agent.Error{Code: codeAttachment, Message: fmt.Sprintf("the file %s can't be handed to OpenClaw", fileName(p.Media)), Detail: err.Error()}
		}
		attached = append(attached, a)
	}
	return text, attached, nil
}

var errTooLarge = errors.New("it has more than the")

// oldAttachment is the limit of gateways that name none, in bytes.
const oldAttachment = 5_000_000

func (l *connection) attachmentLimit() int64 {
	if p := l.hello.Policy.Attachments; p != nil && p.MaxBytes > 0 {
		return p.MaxBytes
	}
	return oldAttachment
}

func encode(r io.Reader, limit int64, m *event.Media) (attachment, error) {
	a := attachment{Type: "file", MIME: m.MIME, Name: fileName(m)}
	if strings.HasPrefix(m.MIME, "image/") {
		a.Type = "image"
	}
	var b bytes.Buffer
	e := base64.NewEncoder(base64.StdEncoding, &b)
	n, err := io.Copy(e, io.LimitReader(r, limit+1))
	if err := errors.Join(err, e.Close()); err != nil {
		return a, err
	}
	if n > limit {
		return a, fmt.Errorf("%w %d bytes that are taken", errTooLarge, limit)
	}
	a.Content = b.String()
	return a, nil
}

func fileName(m *event.Media) string {
	if m.Name != "" {
		return m.Name
	}
	return "file"
}

// sleep waits, or returns why that was cut short.
func sleepConnected(ctx context.Context, conn *connection, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-conn.closed:
		return errLost
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// mustJSON encodes what always can be.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("openclaw: " + err.Error())
	}
	return b
}
