package agentsdk

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxArgs bounds the arguments that are looked at, in bytes: they are kept until their block stops.
const maxArgs = 16 << 10

// args are a tool's arguments as they came, to see whether they are whole.
type args struct {
	Text    string `json:"text,omitempty"`
	TooLong bool   `json:"long,omitempty"` // more than is looked at
	Torn    bool   `json:"torn,omitempty"` // a character was destroyed
}

func (a *args) add(s string) {
	a.Torn = a.Torn || strings.ContainsRune(s, utf8.RuneError)
	if a.TooLong = a.TooLong || len(a.Text)+len(s) > maxArgs; a.TooLong {
		a.Text = ""
		return
	}
	a.Text += s
}

func (a *args) exact() bool {
	return !a.Torn && (a.TooLong || a.Text == "" || json.Valid([]byte(a.Text)))
}
