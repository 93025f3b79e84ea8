package channel

import (
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

func TestAuthorName(t *testing.T) {
	tests := []struct {
		m    transcript.Message
		want string
	}{
		{transcript.Message{Source: "telegram", Author: &event.Author{ID: "7", Name: "Ann"}}, "Ann"},
		{transcript.Message{Source: "vercel", Author: &event.Author{ID: "7"}}, "AI SDK"},
		{transcript.Message{Source: "client_chat"}, "Dashboard"},
		{transcript.Message{}, "API"},
		{transcript.Message{Source: "support"}, "support"},
	}
	for _, test := range tests {
		if got := AuthorName(&test.m); got != test.want {
			t.Errorf("AuthorName(%q, %v) = %q, want %q", test.m.Source, test.m.Author, got, test.want)
		}
	}
}
