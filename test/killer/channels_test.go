//go:build unix

package killer

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/chattest/discord"
	"github.com/leat-dev/leat/chattest/matrix"
	"github.com/leat-dev/leat/chattest/telegram"
	leat "github.com/leat-dev/leat/clients/go"
)

// place is a chat on a platform's fake.
type place struct {
	name    string
	visible func() []string
	changed func() <-chan struct{}
	faults  func() []string
}

// shows waits until a chat's messages satisfy a condition.
func (p place) shows(t *testing.T, what string, is func(texts []string) bool) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		changed := p.changed()
		texts := p.visible()
		if is(texts) {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%s: not %s, but %q", p.name, what, texts)
		}
	}
}

// serveFake serves a fake. Connections that wait for an answer are cut at the end of the test.
func serveFake(t *testing.T, h http.Handler) string {
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return url.QueryEscape(server.URL)
}

// One answer grows in chats of three platforms at once. The program is killed while it does, each time at another moment: every chat
// gets the end of each turn once, and nothing that says it is still running.
func TestChannels(t *testing.T) {
	tg := telegram.New(telegram.Options{Token: "1:test"})
	dc := discord.New(discord.Options{Token: "a.b.c"})
	mx := matrix.New(matrix.Options{Token: "secret"})
	script := filepath.Join(t.TempDir(), "agent.sh")
	// The input has the earlier messages after the one to answer.
	const lines = `n=$(tr '{' '\n' | sed -n 's/.*question \([0-9]\).*/\1/p' | head -1)
for i in 1 2 3 4 5 6 7 8 9 10; do
	printf '{"type":"chunk","text":"Line %s of the answer to question %s.\\n\\n"}\n' "$i" "$n"
	sleep 0.4
done
echo '{"type":"chunk","text":"The end."}'
echo '{"type":"done"}'
`
	if err := os.WriteFile(script, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProgram(t, filepath.Join(t.TempDir(), "data"), "--agent", "exec:sh "+script,
		"--channel", "telegram?token=1:test&allow=7&url="+serveFake(t, tg),
		"--channel", "discord?token=a.b.c&allow=7&url="+serveFake(t, dc),
		"--channel", "matrix?token=secret&streaming=true&allow=@ann:matrix.test&server="+serveFake(t, mx))
	if err := p.start(t.Context()); err != nil {
		t.Fatalf("%v: %s", err, p.said())
	}
	ann := telegram.Private(7, "Ann")
	room, direct := mx.Direct("@ann:matrix.test", "Ann").Room, discord.Direct("7", "Ann")
	dc.Join(direct)
	places := []place{
		{"telegram", func() (texts []string) {
			for _, m := range tg.Visible(7) {
				texts = append(texts, m.Text)
			}
			if draft, _, ok := tg.Draft(7, 0); ok {
				texts = append(texts, draft)
			}
			return texts
		}, tg.Changed, tg.Violations},
		{"discord", func() (texts []string) {
			for _, m := range dc.Visible(direct.Channel) {
				texts = append(texts, m.Text)
			}
			return texts
		}, dc.Changed, dc.Violations},
		{"matrix", func() (texts []string) {
			for _, m := range mx.Visible(room) {
				texts = append(texts, m.Text)
			}
			return texts
		}, mx.Changed, mx.Violations},
	}
	client := &leat.Client{URL: p.url()}
	for n := range 4 {
		tg.Say(ann, fmt.Sprint("question ", n))
		if n == 0 {
			attachPlaces(t, client, map[string]string{"discord": direct.Channel, "matrix": room})
		}
		isKilled := n < 3
		mark := fmt.Sprintf("Line %d of the answer to question %d.", 2+2*n, n)
		for _, at := range places {
			at.shows(t, mark, func(texts []string) bool { return strings.Contains(strings.Join(texts, "\n"), mark) })
			if isKilled && n != 1 { // the second kill comes when all places show the text
				break
			}
		}
		if isKilled {
			if err := errors.Join(p.end(syscall.SIGKILL), p.start(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		// A program that was killed takes its agent with it, so those turns end with a notice.
		notices := min(n+1, 3)
		first := fmt.Sprintf("Line 1 of the answer to question %d.", n)
		for _, at := range places {
			at.shows(t, fmt.Sprint("the end of turn ", n), func(texts []string) bool {
				all := strings.Join(texts, "\n")
				isEnded := isKilled || strings.Contains(all, "The end.")
				return isEnded && strings.Count(all, first) == 1 && strings.Count(all, "⚠️") == notices && !strings.Contains(all, "▍")
			})
		}
	}
	for _, at := range places {
		all := strings.Join(at.visible(), "\n")
		for n := range 4 {
			if got := strings.Count(all, fmt.Sprintf("Line 1 of the answer to question %d.", n)); got != 1 {
				t.Errorf("%s: the answer to question %d appears %d times", at.name, n, got)
			}
		}
		if strings.Contains(all, "▍") || strings.Contains(all, "Working…") {
			t.Errorf("%s: something says that it is still running: %q", at.name, all)
		}
		for _, v := range at.faults() {
			// A program that has just started doesn't know what was left of its limits.
			if !strings.Contains(v, "no request was left in its bucket") {
				t.Errorf("%s: %s", at.name, v)
			}
		}
	}
}

// attachPlaces attaches chats to the conversation that the first message has begun.
func attachPlaces(t *testing.T, client *leat.Client, chats map[string]string) {
	t.Helper()
	for limit := time.After(time.Minute); ; {
		list, err := client.Conversations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			for channel, chat := range chats {
				if err := client.AttachChat(t.Context(), channel, chat, list[0].ID); err != nil {
					t.Fatal(err)
				}
			}
			return
		}
		select {
		case <-time.After(10 * time.Millisecond): // polls another process
		case <-limit:
			t.Fatal("no conversation")
		}
	}
}
