package telegram

import (
	"fmt"
	"html"
	"strings"

	"github.com/leat-dev/leat/internal/channel/live"
)

// maxCard is the limit of the card's visible text, in UTF-16 units; a message may have 4096.
const maxCard = 4000

// card returns a status card as HTML.
func card(s *live.Status) string {
	return s.Fit(maxCard, cardHTML) + "\n\n" + s.Time()
}

// cardHTML returns a card without the elapsed time. HTML is safe here, because it is generated as a whole and every text in it is
// escaped.
func cardHTML(s *live.Status) string {
	var b strings.Builder
	b.WriteString("🤖 <b>Working…</b>\n")
	if s.Iteration > 0 {
		fmt.Fprintf(&b, "\n🔄 Iteration %d\n", s.Iteration)
	}
	if s.Earlier > 0 {
		fmt.Fprintf(&b, "\n… %d earlier calls\n", s.Earlier)
	}
	for _, t := range s.Tools {
		fmt.Fprintf(&b, "\n%s <code>%s</code>", t.Icon, html.EscapeString(t.Name))
		if t.Summary != "" {
			b.WriteString("(" + html.EscapeString(t.Summary) + ")")
		}
		if t.Output != "" {
			b.WriteString("\n<pre>" + html.EscapeString(t.Output) + "</pre>")
		}
	}
	return b.String()
}
