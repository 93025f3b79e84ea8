package chats

import (
	"net/http"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server"
)

// RespondError responds with one sentence. Clients make the whole body the message of their error, and pages show that.
func RespondError(w http.ResponseWriter, _ *http.Request, e *server.Error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Leat-Reason", e.Reason)
	w.WriteHeader(e.Status)
	_, _ = w.Write([]byte(Sentence(e.Message))) // best effort: the client may have disconnected
}

// Sentence returns the message of an error as a sentence, without the name of the package that found the error.
func Sentence(s string) string {
	s = strings.TrimPrefix(s, event.ErrInvalid.Error()+": ")
	if s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}
