package discord

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

// maxContent limits the content of a message. The documentation speaks of characters; the fake counts UTF-16 code units, the count
// that is never smaller.
const maxContent = 2000

// Flags of messages.
const (
	flagNoPreviews = 1 << 2
	flagEphemeral  = 1 << 6
	flagLoading    = 1 << 7
	flagSilent     = 1 << 12
	flagV2         = 1 << 15 // Components V2
)

// Message is a message of the bot or of a person.
type Message struct {
	ID, Channel string
	Author      string // id
	Name        string // of the author
	Bot         bool   // written by the bot
	// Text is what people read: the content, or all text displays of Components V2, each in a line.
	Text       string
	Components []Component
	Files      []File
	// ReplyTo is the id of the message that this one answers, or empty.
	ReplyTo string
	// Nonce is the one of the request that created the message, or empty.
	Nonce string
	// Flags are the bits of the API. The fields below are some of them.
	Flags      int
	Silent     bool // without a notification
	Ephemeral  bool // shown to one person
	NoPreviews bool // of links
	Loading    bool // "is thinking"
	Mentions   bool // mentions in the text notify
	Deleted    bool
	// Versions are all texts that it had, the first included.
	Versions []string
	// At is when it was created; an edit doesn't change it.
	At time.Time

	edits int // since it was old
	// person is the author, or nil for the bot.
	person *Writer
	// kind is the type of the message: 0 for those of people, and 7 for a join.
	kind int
	// mention are the users that the text mentions.
	mention []Writer
}

// draft is what a request says about a message.
type draft struct {
	text       string
	components []Component
	flags      int
	files      []File
	mentions   bool
}

// draft reads and checks the content of a message. previous is the message that is edited, or nil.
func (c *call) draft(previous *Message) (draft, *refusal) {
	d := draft{flags: c.number("flags")}
	if previous != nil {
		// An edit without flags leaves those of the message as they are.
		d.flags = previous.Flags | d.flags&flagV2 // which can't be removed; others can't be changed
		if c.has("flags") {
			d.flags = d.flags&^flagNoPreviews | c.number("flags")&flagNoPreviews
		}
		d.text, d.components, d.files = previous.Text, previous.Components, previous.Files
	}
	files, failed := c.uploads()
	if failed != nil {
		return d, failed
	}
	d.files = append(slices.Clone(d.files), files...)
	isV2 := d.flags&flagV2 != 0
	if c.has("components") {
		if d.components, failed = c.components(isV2); failed != nil {
			return d, failed
		}
	}
	if isV2 {
		for _, field := range []string{"content", "embeds", "poll", "sticker_ids"} {
			if v := c.body[field]; v != nil && v != "" {
				return d, invalid(field, "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
					"The '"+field+"' field cannot be used when using MessageFlags.IS_COMPONENTS_V2")
			}
		}
		// An edit that turns a text into components has to send an empty content with them.
		if previous != nil && previous.Flags&flagV2 == 0 && previous.Text != "" && !c.has("content") {
			return d, invalid("content", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", "The content must be removed with the same edit")
		}
		d.text = strings.Join(texts(d.components), "\n")
	} else if c.has("content") {
		if v := c.body["content"]; v != nil {
			if _, ok := v.(string); !ok {
				return d, invalid("content", "BASE_TYPE_STRING", "Only str is supported.")
			}
		}
		d.text = c.text("content")
	}
	if !isV2 && len(utf16.Encode([]rune(d.text))) > maxContent {
		return d, invalid("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
	}
	if !isV2 {
		d.text = strings.TrimSpace(d.text)
	}
	if d.text == "" && len(d.components) == 0 && len(d.files) == 0 {
		return d, refuse(http.StatusBadRequest, 50006, "Cannot send an empty message")
	}
	d.mentions, failed = c.mentions(d.text)
	return d, failed
}

// mentions reports whether the text notifies those whom it mentions.
func (c *call) mentions(text string) (bool, *refusal) {
	hasMention := strings.Contains(text, "<@") || strings.Contains(text, "@everyone") || strings.Contains(text, "@here")
	allowed, isSet := c.body["allowed_mentions"].(map[string]any)
	if !isSet {
		return hasMention, nil
	}
	parse, isList := allowed["parse"].([]any)
	if allowed["parse"] != nil && !isList {
		return false, invalid("allowed_mentions.parse", "BASE_TYPE_LIST", "Only iterables may be used in a ListType")
	}
	for _, v := range parse {
		if !slices.Contains([]any{"roles", "users", "everyone"}, v) {
			return false, invalid("allowed_mentions.parse", "BASE_TYPE_CHOICES", "Value must be one of {'roles', 'users', 'everyone'}.")
		}
	}
	// A list of users permits mentions of them, also with an empty parse.
	users, _ := allowed["users"].([]any)
	return hasMention && len(parse)+len(users) > 0, nil
}

// apply changes a message to what a request says.
func (m *Message) apply(d draft) {
	m.Text, m.Components, m.Flags, m.Files, m.Mentions = d.text, d.components, d.flags, d.files, d.mentions
	m.NoPreviews = d.flags&flagNoPreviews != 0
	m.Silent, m.Ephemeral, m.Loading = d.flags&flagSilent != 0, d.flags&flagEphemeral != 0, d.flags&flagLoading != 0
	m.Versions = append(m.Versions, d.text)
}

// object returns a message as the API does, without its content if that is hidden. mu must be locked.
func (s *Server) object(m *Message, isReadable bool) map[string]any {
	object := map[string]any{
		"id": m.ID, "channel_id": m.Channel, "type": m.kind, "content": "", "timestamp": m.At.UTC().Format("2006-01-02T15:04:05.000000-07:00"),
		"author": s.author(m), "attachments": []any{}, "components": []any{}, "embeds": []any{}, "mentions": []any{}, "mention_roles": []any{},
		"flags": m.Flags, "tts": false, "pinned": false, "mention_everyone": false,
	}
	for _, w := range m.mention {
		object["mentions"] = append(object["mentions"].([]any), w.object(s))
	}
	if m.Nonce != "" {
		object["nonce"] = m.Nonce
	}
	if m.ReplyTo != "" {
		object["type"], object["message_reference"] = 19, map[string]any{"message_id": m.ReplyTo, "channel_id": m.Channel}
		if o := s.channels[m.Channel].message(m.ReplyTo); o != nil && !o.Deleted {
			original := s.object(o, isReadable)
			delete(original, "referenced_message")
			object["referenced_message"] = original
		} else {
			object["referenced_message"] = nil
		}
	}
	if len(m.Versions) > 1 {
		object["edited_timestamp"] = time.Now().UTC().Format(time.RFC3339)
	}
	if isReadable || m.Bot {
		if m.Flags&flagV2 == 0 {
			object["content"] = m.Text
		}
		object["attachments"], object["components"] = s.attachments(m), componentObjects(m.Components)
	}
	return object
}

// author returns the author of a message as a user.
func (s *Server) author(m *Message) map[string]any {
	if m.Bot || m.person == nil {
		return s.user()
	}
	return m.person.object(s)
}
