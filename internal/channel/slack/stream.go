package slack

import (
	"context"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/internal/channel/live"
)

// stream is a native stream that can be appended to. It exists only in the memory of the delivery. After a restart its message is
// found by a search.
type stream struct {
	// text is the one that it shows. isOpaque means that this is not known: then nothing can be appended.
	text     string
	isOpaque bool
	// last is the text that was to be shown before. The difference between the two versions shows which part of the text is final.
	last string
	// tasks are the chunks of a card that were sent, by id.
	tasks map[string]chunk
}

// chunk is a piece of a stream. A stream consists of chunks only, or of texts only.
type chunk struct {
	// Type is markdown_text, plan_update or task_update.
	Type  string `json:"type"`
	Text  string `json:"text,omitempty"`
	ID    string `json:"id,omitempty"`
	Title string `json:"title,omitempty"`
	// Status is pending, in_progress, complete or error.
	Status string `json:"status,omitempty"`
	// Output is the end of the tool's output.
	Output string `json:"output,omitempty"`
}

// textChunks returns a text as chunks, or none for an empty text.
func textChunks(text string) []chunk {
	if text == "" {
		return nil
	}
	return []chunk{{Type: "markdown_text", Text: text}}
}

// canStream reports whether a stream may be started: in direct messages only threads have them, and in channels they have a reader. A
// refusal by the chat is remembered for the delivery.
func (t *chat) canStream() bool {
	if t.noStreams {
		return false
	}
	if t.at.isDirect() {
		return t.at.thread != ""
	}
	return t.reader != ""
}

// start starts a stream with what can be shown already, and returns its id. An error of the platform leaves no stream, and the caller
// sends a message instead.
func (t *chat) start(ctx context.Context, p live.Post) (string, error) {
	form := params{"channel": t.at.channel}
	if t.at.thread != "" {
		form["thread_ts"] = t.at.thread
	}
	if !t.at.isDirect() {
		form["recipient_user_id"], form["recipient_team_id"] = t.reader, t.c.person(ctx, t.reader).team
	}
	s := &stream{}
	var chunks []chunk
	if p.Kind == live.Card {
		form["task_display_mode"] = "plan"
		chunks = s.changed(p.Status)
	} else {
		s.last = p.Text.Text
		s.text = firstPart(p.Text.Text)
		chunks = textChunks(s.text)
	}
	if len(chunks) > 0 {
		form.with("chunks", chunks)
	}
	var answer struct {
		TS string `json:"ts"`
	}
	if err := t.c.client.call(ctx, methodStart, form, &answer); err != nil {
		return "", err
	}
	s.record(chunks)
	t.streams[answer.TS] = s
	return answer.TS, nil
}

// extend appends what a text that grows has more than the stream. If the text doesn't continue the stream, the stream is ended, and
// the next request edits it.
func (t *chat) extend(ctx context.Context, ts string, s *stream, text string) error {
	suffix, ok := s.growth(text)
	switch {
	case !ok:
		return t.leave(ctx, ts)
	case suffix == "":
		return nil
	}
	err := t.call(ctx, methodAppend, ts, textChunks(suffix), nil)
	if err == nil {
		s.text += suffix
		return nil
	}
	return t.interrupted(ctx, ts, s, err)
}

// complete ends a stream with the rest of its text. If the stream shows something else, it becomes a message and is edited. The key
// becomes metadata of the message at the same time, so later searches find it.
func (t *chat) complete(ctx context.Context, ts string, s *stream, p live.Post) error {
	final := p.Text.Text
	isWhole := strings.TrimRight(s.text, " \n") == strings.TrimRight(final, " \n")
	suffix, isGrown := strings.CutPrefix(final, s.text)
	if s.isOpaque || !isGrown && !isWhole {
		return t.leave(ctx, ts)
	}
	if !isGrown {
		suffix = ""
	}
	form := params{}
	if p.Key != "" {
		form.with("metadata", keyed(p.Key))
	}
	err := t.call(ctx, methodStop, ts, textChunks(suffix), form)
	if err == nil {
		delete(t.streams, ts)
		return nil
	}
	return t.interrupted(ctx, ts, s, err) // also if the stream has ended: an edit gives the message its key
}

// interrupted handles an error of a stream. A stream that has ended by time is the most common case, and the text continues in the
// same message by edits.
func (t *chat) interrupted(ctx context.Context, ts string, s *stream, err error) error {
	meaning := explain(err)
	switch {
	case is(err, reasonNotStream, reasonStopped):
		delete(t.streams, ts)
		if is(err, reasonStopped) {
			t.stopRun(ctx, ts)
		}
		return fmt.Errorf("%w: %w", live.ErrRepeat, err) // as an edit
	case isUnknown(meaning):
		s.isOpaque = true // the text was possibly appended
	case meaning == err && isRefusal(err): // for example because the message is too long
		return t.leave(ctx, ts)
	}
	return meaning
}

// leave ends a stream whose text is not the one to be shown, so that it can be edited. Its result is always an error, which makes the
// engine repeat the request in another form.
func (t *chat) leave(ctx context.Context, ts string) error {
	err := t.call(ctx, methodStop, ts, nil, nil)
	switch {
	case err == nil, is(err, reasonNotStream, reasonStopped):
		delete(t.streams, ts)
		return fmt.Errorf("%w: the stream doesn't show the text", live.ErrRepeat)
	case is(err, reasonNoText): // it is empty
		if err := t.Delete(ctx, reference(t.at.channel, ts, "")); err != nil {
			return err
		}
		return live.ErrMissing
	}
	return explain(err)
}

// call calls a method for a stream.
func (t *chat) call(ctx context.Context, method, ts string, chunks []chunk, form params) error {
	if form == nil {
		form = params{}
	}
	form["channel"], form["ts"] = t.at.channel, ts
	if len(chunks) > 0 {
		form.with("chunks", chunks)
	}
	return t.c.client.call(ctx, method, form, nil)
}
