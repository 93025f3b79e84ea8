package agentsdk

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxArgs is the limit, in bytes, of the arguments that are checked. They are part of the decoder's state, which is stored with every
// commit, until their block stops.
const maxArgs = 16 << 10

// args collects a tool's arguments to find out whether they arrived undamaged. The runtime cuts them every ten bytes and encodes each piece
// as a separate string, so that a character at a cut becomes U+FFFD.
type args struct {
	Text    string `json:"text,omitempty"`
	TooLong bool   `json:"long,omitempty"` // longer than maxArgs; Text is then empty
	Torn    bool   `json:"torn,omitempty"` // a character was destroyed
}

// add adds a piece of the arguments.
func (a *args) add(s string) {
	a.Torn = a.Torn || strings.ContainsRune(s, utf8.RuneError)
	if a.TooLong = a.TooLong || len(a.Text)+len(s) > maxArgs; a.TooLong {
		a.Text = ""
		return
	}
	a.Text += s
}

// exact reports whether the arguments are undamaged: no character was destroyed, and they are valid JSON. The JSON of arguments that are
// too long isn't checked.
func (a *args) exact() bool {
	return !a.Torn && (a.TooLong || a.Text == "" || json.Valid([]byte(a.Text)))
}
