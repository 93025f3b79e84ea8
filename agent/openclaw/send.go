// Sending a turn's message. A send whose response was lost is repeated under the same id, which the gateway recognises.

package openclaw

import (
	"bytes"
	"cmp"
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
	"github.com/leat-dev/leat/internal/base/retry"
)

// sendParams are the parameters of chat.send. Key is the id of the run; the gateway executes a key once.
type sendParams struct {
	Session     string       `json:"sessionKey"`
	Message     string       `json:"message"`
	Key         string       `json:"idempotencyKey"`
	QueueMode   string       `json:"queueMode,omitempty"`
	Attachments []attachment `json:"attachments,omitempty"`
}

// attachment is a file in chat.send, as the gateway's own clients send it.
type attachment struct {
	Type    string `json:"type"`
	MIME    string `json:"mimeType,omitempty"`
	Name    string `json:"fileName,omitempty"`
	Content string `json:"content"` // base64
}

// sendResult is the response to chat.send.
type sendResult struct {
	Run     string `json:"runId"`
	Status  string `json:"status"`
	Summary string `json:"summary"`
}

// send sends a run's message. The run's state is durable before the call, so that a restarted Leat looks the message up instead
// of sending it twice. If the gateway asks for a retry, send repeats the call for up to sendLimit; a steered message is not
// retried, because Steer can report it. If the connection is lost, the error wraps errLost and lookUp finds out on the next one
// whether the message arrived.
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
		p.QueueMode = "followup" // so that no run of another client takes it in
	}
	var err error
	if p.Message, p.Attachments, err = t.attachments(ctx, conn, m); err != nil {
		return err
	}
	if err := t.requestToolFrames(ctx, conn); err != nil {
		return err
	}
	// From here on the message counts as sent, although it is not: after a crash between save and the call, the look-up finds that the
	// gateway doesn't have it and sends it. The other way round it could be sent twice.
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
	b, startedAt := retry.Backoff{Schedule: backoff}, time.Now()
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
		wait := waitFor(&b, after)
		if r.Message != nil || !retryable || time.Since(startedAt)+wait > sendLimit {
			r.IsSent = false
			if explanation := explain(rpcErr); explanation != nil {
				return explanation
			}
			return rpcErr
		}
		t.emitter.Log().Info("OpenClaw asked for a retry", "error", rpcErr.Message, "in", wait.String())
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

// replace gives a message a new run, because the gateway refuses it under the id of r.
func (t *turn) replace(r *run, id string) (*run, error) {
	t.emitter.Log().Info("OpenClaw restarted while the message was queued; sending it under another id", "run", id, "before", r.ID)
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

// maxSends is how many ids a message is sent under at most. Each restart of the gateway while the message is queued uses up one.
const maxSends = 9

// nextID returns the id for the next attempt to send a message, see [turn.firstRun]: the turn in it gets a number, as in
// turn~2.message. It is false if maxSends ids have been used.
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

// handleSendResponse handles a response to chat.send that is not an error. In all its forms the gateway has the message.
func (t *turn) handleSendResponse(ctx context.Context, conn *connection, r *run, answer *response) error {
	t.emitter.CaptureReceived(answer.raw)
	var s sendResult
	if err := json.Unmarshal(answer.frame.Payload, &s); err != nil {
		return fmt.Errorf("chat.send: %w", err)
	}
	r.IsAccepted = true
	switch s.Status {
	case "ok", "error": // a repeated call: the run has already ended
		t.unsure = true
		return t.lookUp(ctx, conn)
	}
	return t.save()
}

// requestToolFrames makes a gateway before protocol 4 send complete tool frames. If the gateway refuses, tools are shown from
// the history only.
func (t *turn) requestToolFrames(ctx context.Context, conn *connection) error {
	if conn.protocol() >= numberedProtocol {
		return nil
	}
	err := conn.call(ctx, "sessions.patch", map[string]string{"key": t.session, "verboseLevel": "full"}, nil)
	if rpcErr, ok := errors.AsType[*rpcError](err); ok {
		t.emitter.Log().Warn("OpenClaw refused to send complete tool frames", "error", rpcErr.Message)
		return nil
	}
	return err
}

// attachments returns the text and the files to send. A file on the web that is not in the store is added to the text as its
// address. A file that is too large to attach is added as its path in the workspace, where the agent finds it. Any other file
// that can't be read is an error, since the message would be sent without it.
func (t *turn) attachments(ctx context.Context, conn *connection, m agent.Message) (string, []attachment, error) {
	text := m.Text
	var attached []attachment
	for _, p := range m.Parts {
		if p.Kind != event.KindMedia || p.Media == nil {
			continue
		}
		if p.Media.URL == "" {
			continue // a file named by a path that does not exist; its part shows the error
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
				_ = f.Close() // opened for reading only
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

var errTooLarge = errors.New("openclaw: the file exceeds the limit of")

// oldAttachment is the limit of gateways whose hello has none, in bytes.
const oldAttachment = 5_000_000

// attachmentLimit returns the size of the largest attachment, in bytes.
func (l *connection) attachmentLimit() int64 {
	if p := l.hello.Policy.Attachments; p != nil && p.MaxBytes > 0 {
		return p.MaxBytes
	}
	return oldAttachment
}

// encode reads a file as an attachment. If it is larger than limit, the error is errTooLarge.
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
		return a, fmt.Errorf("%w %d bytes", errTooLarge, limit)
	}
	a.Content = b.String()
	return a, nil
}

// fileName returns the name of a file for the gateway.
func fileName(m *event.Media) string {
	return cmp.Or(m.Name, "file")
}

// sleepConnected waits for d. It returns errLost if the connection ends first, and the cause if ctx does.
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

// mustJSON encodes a value that always can be encoded.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("openclaw: " + err.Error())
	}
	return b
}
