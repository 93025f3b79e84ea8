package slack

import (
	"context"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxText is the limit of a message, in characters. The API accepts 12,000 in one request, and refuses messages of about 13,000 in
	// total.
	maxText = 10000
	// cursor follows a text that grows by edits. A stream needs none.
	cursor = " ▍"
	// statusLife is a little less than the 2 min for which a status is shown. Slack removes a status after two minutes without a
	// message.
	statusLife = 110 * time.Second
	// settleTime is how long a request without an answer may take to have its effect. A search that is made earlier could miss a
	// message that is about to appear, and it would be sent twice.
	settleTime = 3 * time.Second
)

// rules say Idempotent, because a chat looks for a message before it repeats a request without an answer.
var rules = live.Rules{
	Platform: "slack", Format: markup.SlackMarkdown, MaxText: maxText, InPlace: true, Idempotent: true, HasButtons: true, TypingLife: statusLife, MaxFile: maxFile,
}

// chat is a chat of a delivery. It remembers what the chat has refused, and which streams are open. It embeds the search, because
// whether a message exists matters for each of its methods.
type chat struct {
	c  *bot
	at place
	// reader is the person whose message is answered, or empty if that is not known. Only for them a stream can be started in a
	// channel. Slack demands the reader of a stream as recipient_user_id.
	reader  string
	streams map[string]*stream // by the id of the message
	// noStreams and noStatus are set when the chat has refused one.
	noStreams, noStatus bool
	search
}

var _ live.FileChat = (*chat)(nil)

// newChat returns the chat for a delivery. state is that of one that was interrupted, or nil.
func (c *bot) newChat(at place, state []byte) *chat {
	return &chat{c: c, at: at, streams: map[string]*stream{}, search: newSearch(state)}
}

// Post implements [live.Chat]. It searches before it creates, if a message may exist. Then it tries a stream, and a message if the
// chat has none.
func (t *chat) Post(ctx context.Context, p live.Post) (string, error) {
	ts, reader := parseReference(p.ReplyTo)
	t.reader = reader
	isGrowing := p.Kind == live.Text || p.Kind == live.Card
	if t.isNeeded || t.doubts[p.Key] {
		if err := t.searchChat(ctx, ts); err != nil && (!isGrowing || !is(err, reasonNoScope)) {
			return "", t.undecided(err)
		}
	}
	// The earlier request has taken effect after all.
	if existing := t.take(p.Key); existing != "" {
		return t.result(existing, nil)
	}
	if isGrowing && t.orphan != "" { // it is the message that was being created
		ts, t.orphan = t.orphan, ""
		t.streams[ts] = &stream{isOpaque: p.Kind == live.Text}
		return t.result(ts, nil)
	}
	var err error
	if isGrowing && t.canStream() {
		ts, err = t.start(ctx, p)
		switch {
		case isNoStream(err):
			t.noStreams = true
			return "", fmt.Errorf("%w: %w", live.ErrRepeat, err)
		case !isOwnLimit(err):
			return t.result(ts, t.doubt(p.Key, err))
		}
	}
	ts, err = t.create(ctx, p)
	return t.result(ts, t.doubt(p.Key, err))
}

// result returns the result of Post. The id is recorded, so that a search doesn't take the message for an unknown one.
func (t *chat) result(ts string, err error) (string, error) {
	if err != nil {
		return "", explain(err)
	}
	t.know(ts)
	return reference(t.at.channel, ts, ""), nil
}

// create posts a message. Previews are switched off for both kinds of links, because an answer of an agent can contain many.
func (t *chat) create(ctx context.Context, p live.Post) (string, error) {
	var answer struct {
		TS string `json:"ts"`
	}
	form := content(p).with("metadata", keyed(p.Key))
	form["channel"], form["unfurl_links"], form["unfurl_media"] = t.at.channel, "false", "false"
	if t.at.thread != "" {
		form["thread_ts"] = t.at.thread
	}
	err := t.c.client.call(ctx, methodPost, form, &answer)
	return answer.TS, err
}

// Edit implements [live.Chat]. A message is a stream only as long as this delivery knows it as one.
func (t *chat) Edit(ctx context.Context, id string, p live.Post) error {
	ts, _ := parseReference(id)
	s := t.streams[ts]
	if s == nil && p.Kind == live.Card && !t.noStreams && !t.isEdited(ts) {
		s = &stream{} // of a delivery that was interrupted: tasks can be sent again
		t.streams[ts] = s
	}
	switch {
	case s == nil:
		return t.update(ctx, ts, p)
	case p.Kind == live.Card:
		return t.extendCard(ctx, ts, s, p)
	case p.IsLive:
		return t.extend(ctx, ts, s, p.Text.Text)
	}
	return t.complete(ctx, ts, s, p)
}

// update edits a message that is not a stream, or not any more. The conflict shows that the message is still a stream, which has to
// be ended before it can be edited.
func (t *chat) update(ctx context.Context, ts string, p live.Post) error {
	form := content(p)
	form["channel"], form["ts"] = t.at.channel, ts
	if p.Key != "" {
		form.with("metadata", keyed(p.Key))
	}
	var err error
	if p.IsLive {
		err = t.c.client.callLive(ctx, methodUpdate, form)
	} else {
		err = t.c.client.call(ctx, methodUpdate, form, nil)
	}
	if is(err, reasonConflict) { // a stream of a delivery that was interrupted
		return t.leave(ctx, ts)
	}
	return explain(err)
}

// Delete implements [live.Chat].
func (t *chat) Delete(ctx context.Context, id string) error {
	ts, _ := parseReference(id)
	err := t.c.client.call(ctx, methodDelete, params{"channel": t.at.channel, "ts": ts}, nil)
	if is(err, reasonConflict) {
		return t.leave(ctx, ts)
	}
	if err == nil {
		delete(t.streams, ts)
	}
	return explain(err)
}

// ShowTyping implements [live.Chat]. The status is shown in threads only, until a message appears there. A refusal isn't an error of
// the delivery: the feature needs a setting of the app that many don't have.
func (t *chat) ShowTyping(ctx context.Context) error {
	if t.at.thread == "" || t.noStatus {
		return nil
	}
	err := t.c.client.call(ctx, methodStatus, params{"channel_id": t.at.channel, "thread_ts": t.at.thread, "status": "is thinking…"}, nil)
	if isRefusal(err) && retryAfter(err) == 0 {
		t.noStatus = true // for example because the app lacks the feature
		return nil
	}
	return explain(err)
}

// content returns what a message shows, as parameters. Texts are sent as Markdown, which Slack renders itself. A question needs
// blocks for its buttons, and its text is then what notifications show.
func content(p live.Post) params {
	text := p.Text.Text
	switch {
	case p.Kind == live.Card:
		text = cardText(p.Status)
	case p.Kind == live.Text && p.IsLive:
		text += cursor
	case p.Kind == live.Question:
		return params{"text": text}.with("blocks", questionBlocks(text, p.Buttons))
	}
	return params{"markdown_text": text}
}

// stopRun stops the turn whose stream a person has stopped. Slack doesn't name the person, so it is taken to be the reader. The id is
// that of the message, so that two requests which find the stream stopped cause one stop.
func (t *chat) stopRun(ctx context.Context, ts string) {
	inbox := t.c.inbox.Load()
	if inbox == nil || t.reader == "" {
		return
	}
	reader, _ := t.c.people.get(t.reader)
	err := (*inbox).Receive(ctx, channel.InboundMessage{
		ID: "stopped/" + t.at.channel + "/" + ts, ChatID: t.at.id(), SenderID: t.reader, SenderName: reader.name,
		Timestamp: time.Now().Truncate(time.Second), Content: "/stop",
		Hints: channel.RoutingHints{ForceSync: true, Command: "stop", Group: !t.at.isDirect(), Addressed: true},
	})
	if err != nil && ctx.Err() == nil {
		t.c.log.Error("the stop of a turn can't be stored", "error", err)
	}
}
