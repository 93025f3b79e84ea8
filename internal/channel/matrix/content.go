package matrix

import (
	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel/live"
)

// The kinds of messages.
const (
	kindText   = "m.text"
	kindNotice = "m.notice" // of a bot; other bots don't answer it
)

// content is the content of an event that the bot sends.
type content struct {
	// Kind is one of the kinds above, or that of a file.
	Kind string `json:"msgtype"`
	// Body is the plain text for clients and notifications without HTML. It must not be empty.
	Body string `json:"body"`
	// Format is set together with HTML. Clients ignore HTML without it.
	Format string `json:"format,omitempty"`
	HTML   string `json:"formatted_body,omitempty"`
	// Mentions is always empty. Without it, names in the text would notify people.
	Mentions struct{} `json:"m.mentions"`
	// Marker marks a message that will be edited again (MSC4357).
	Marker *struct{} `json:"org.matrix.msc4357.live,omitempty"`
	// New is the content that replaces the old one, in an edit only. The fields around it are for clients that don't know edits.
	New *content `json:"m.new_content,omitempty"`
	// Relation connects an edit, a reply or a message in a thread with another event.
	Relation *relation `json:"m.relates_to,omitempty"`

	// Of a file.
	Name string    `json:"filename,omitempty"`
	URL  string    `json:"url,omitempty"`
	Info *fileInfo `json:"info,omitempty"`
}

// fileInfo is what clients show of a file before they download it.
type fileInfo struct {
	Type string `json:"mimetype,omitempty"`
	Size int64  `json:"size"`
}

// relation is how an event is related to others.
type relation struct {
	Type  string `json:"rel_type,omitempty"`
	Event string `json:"event_id,omitempty"`
	// IsFallback means that InReplyTo is only for clients without threads.
	IsFallback bool       `json:"is_falling_back,omitempty"`
	InReplyTo  *reference `json:"m.in_reply_to,omitempty"`
}

// reference names the event that a message answers.
type reference struct {
	Event string `json:"event_id"`
}

// relation returns the relation of a new message, or nil. replyTo is the message that it answers, or empty. In a thread a relation to
// its beginning is always needed, because clients without threads show the message as a reply then.
func (p place) relation(replyTo string) *relation {
	switch {
	case p.thread != "" && replyTo == "":
		return &relation{Type: "m.thread", Event: p.thread, IsFallback: true, InReplyTo: &reference{p.thread}}
	case p.thread != "":
		return &relation{Type: "m.thread", Event: p.thread, InReplyTo: &reference{replyTo}}
	case replyTo != "":
		return &relation{InReplyTo: &reference{replyTo}}
	}
	return nil
}

// message returns the content of a message. HTML is left out after the homeserver has called a message too large: that halves its
// size.
func (t *chat) message(p live.Post) content {
	m, kind := p.Text, kindText
	if p.Kind == live.Card {
		m, kind = card(p.Status), kindNotice
	}
	c := content{Kind: kind, Body: m.Text}
	if m.HTML != "" && !t.isPlain {
		c.Format, c.HTML = "org.matrix.custom.html", m.HTML
	}
	if p.IsLive {
		c.Marker = &struct{}{}
	}
	return c
}

// card returns a status card. It is a notice, so that other bots in the room don't answer it.
func card(s *live.Status) markup.Message {
	text := s.Fit(maxCard, (*live.Status).Markdown) + "\n\n" + s.Time()
	m, _ := markup.Parse(text).Next(0, markup.Matrix, maxText)
	return m
}

// replacing returns the content of an edit. Clients that don't know edits show it as a message with an asterisk.
func (c content) replacing(original string) content {
	replacement := c
	c.New = &replacement
	c.Relation = &relation{Type: "m.replace", Event: original}
	c.Body = "* " + c.Body
	if c.HTML != "" {
		c.HTML = "* " + c.HTML
	}
	return c
}
