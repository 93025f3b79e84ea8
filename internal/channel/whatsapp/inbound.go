package whatsapp

import (
	"cmp"
	"strconv"
	"time"

	"github.com/leat-dev/leat/internal/channel"
)

// envelope is the body of a request to the webhook, with the fields that are used.
type envelope struct {
	Entry []struct {
		Changes []struct {
			Field string `json:"field"`
			Value value  `json:"value"`
		} `json:"changes"`
	} `json:"entry"`
}

// value is what has happened to one number.
type value struct {
	Metadata struct {
		Number string `json:"phone_number_id"`
	} `json:"metadata"`
	Contacts []contact `json:"contacts"`
	Messages []message `json:"messages"`
	Statuses []status  `json:"statuses"`
}

// contact is a person whose messages or statuses are in a value.
type contact struct {
	ID      string `json:"wa_id"`
	UserID  string `json:"user_id"`
	Profile struct {
		Name string `json:"name"`
	} `json:"profile"`
}

// status is what became of a message of the number.
type status struct {
	Status string `json:"status"` // sent, delivered, read or failed
	// Recipient is the person's number, or empty for a person with a user name; then RecipientUser identifies them.
	Recipient     string     `json:"recipient_id"`
	RecipientUser string     `json:"recipient_user_id"`
	Errors        []apiError `json:"errors"`
}

// message is a message of a person.
type message struct {
	ID string `json:"id"`
	// From is the person's number. It is missing if the person has a user name; then UserID identifies them.
	From      string `json:"from"`
	UserID    string `json:"from_user_id"`
	Timestamp string `json:"timestamp"` // seconds of the epoch
	Type      string `json:"type"`
	Text      struct {
		Body string `json:"body"`
	} `json:"text"`
	Image    *file `json:"image"`
	Video    *file `json:"video"`
	Audio    *file `json:"audio"`
	Document *file `json:"document"`
	Sticker  *file `json:"sticker"`
	// Interactive is a pressed reply button or a picked row of a list, and Button a pressed button of a template.
	Interactive struct {
		Button choice `json:"button_reply"`
		Row    choice `json:"list_reply"`
	} `json:"interactive"`
	Button struct {
		Text string `json:"text"`
	} `json:"button"`
}

// choice is a button or a row of a list.
type choice struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// file is a file in a message. Its bytes stay at the platform.
type file struct {
	ID      string `json:"id"`
	Type    string `json:"mime_type"`
	Name    string `json:"filename"`
	Caption string `json:"caption"`
}

// values returns the events of a request that are about messages.
func (e *envelope) values() []*value {
	var list []*value
	for i := range e.Entry {
		for j := range e.Entry[i].Changes {
			if c := &e.Entry[i].Changes[j]; c.Field == "messages" {
				list = append(list, &c.Value)
			}
		}
	}
	return list
}

// inbound returns a message in the form of the pipeline, or false if it has nothing for an agent, such as a reaction.
func (m *message) inbound(contacts []contact) (channel.InboundMessage, bool) {
	sender := cmp.Or(m.From, m.UserID)
	seconds, _ := strconv.ParseInt(m.Timestamp, 10, 64) // 0 if it has another form
	in := channel.InboundMessage{ID: m.ID, ChatID: sender, SenderID: sender, Timestamp: time.Unix(seconds, 0), Content: m.content()}
	for _, c := range contacts {
		if c.ID != "" && c.ID == m.From || c.UserID != "" && c.UserID == m.UserID {
			in.SenderName = c.Profile.Name
		}
	}
	for _, f := range []*file{m.Image, m.Video, m.Audio, m.Document, m.Sticker} {
		if f != nil {
			in.Media = append(in.Media, f.media())
			in.Content += f.Caption
		}
	}
	in.Hints.Command, in.Hints.Args = channel.ParseCommand(in.Content)
	in.Hints.ForceSync = in.Hints.Command != ""
	return in, m.ID != "" && sender != "" && (in.Content != "" || len(in.Media) > 0)
}

// content returns the text of a message without a file. A button stands for the command in its id, if it has one, and otherwise for
// its title.
func (m *message) content() string {
	for _, c := range []choice{m.Interactive.Button, m.Interactive.Row} {
		if name, _ := channel.ParseCommand(c.ID); name != "" {
			return c.ID
		}
		if c.Title != "" {
			return c.Title
		}
	}
	return cmp.Or(m.Button.Text, m.Text.Body)
}
