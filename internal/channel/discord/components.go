package discord

import (
	"fmt"
	"strings"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxCard is the limit of a card in bytes, which is never less than characters. The platform accepts 4,000 in all text displays.
	// The difference leaves room for the line with the elapsed time.
	maxCard = 3900
	// maxButtons and rowButtons limit the buttons of a message and of a row.
	maxButtons = 25
	rowButtons = 5
	// maxLabel limits the text of a button, in characters.
	maxLabel = 80
)

// Flags of messages.
const (
	// An edit can change only flagNoPreviews, and it can add flagComponents.
	flagNoPreviews = 1 << 2 // of links
	flagSilent     = 1 << 12
	flagComponents = 1 << 15 // Components V2: the message consists of components only
)

// Kinds of components, and styles of buttons.
const (
	typeRow       = 1
	typeButton    = 2
	typeText      = 10
	typeContainer = 17

	styleSecondary = 2
)

// component is a part of a message. Which fields are set depends on its type. A button carries its command as the custom id, which
// comes back when it is pressed.
type component struct {
	Type       int         `json:"type"`
	Style      int         `json:"style,omitempty"`
	Label      string      `json:"label,omitempty"`
	CustomID   string      `json:"custom_id,omitempty"`
	Content    string      `json:"content,omitempty"`
	Components []component `json:"components,omitempty"`
}

// rowsOf returns buttons as components. A person can name the choices beyond the limit in a message. The result is not nil, because
// an edit needs an empty list to remove the buttons of a question.
func rowsOf(buttons []live.Button) []component {
	rows := []component{}
	for i, b := range buttons[:min(len(buttons), maxButtons)] {
		if i%rowButtons == 0 {
			rows = append(rows, component{Type: typeRow})
		}
		row := &rows[len(rows)-1]
		row.Components = append(row.Components, component{Type: typeButton, Style: styleSecondary, Label: label(b.Text), CustomID: b.Command})
	}
	return rows
}

// label returns a text as the label of a button, which is not empty.
func label(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "…"
	}
	if r := []rune(text); len(r) > maxLabel/2 { // so it fits whatever the platform counts
		return string(r[:maxLabel/2-1]) + "…"
	}
	return text
}

// card returns a status card. Each text display counts towards the limit of the message, the one with the time as well.
func card(s *live.Status) []component {
	text := s.Fit(maxCard, func(s *live.Status) string {
		doc := markup.Parse(s.Markdown())
		return doc.Render(0, doc.Len(), markup.Discord).Text
	})
	// A card with many long names is cut: what is at its end is newer.
	if len(text) > maxCard {
		text = "… " + strings.ToValidUTF8(text[len(text)-maxCard+len("… "):], "")
	}
	return []component{{Type: typeContainer, Components: []component{
		{Type: typeText, Content: text},
		{Type: typeText, Content: fmt.Sprintf("-# %s", s.Time())},
	}}}
}
