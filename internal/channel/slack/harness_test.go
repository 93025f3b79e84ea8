package slack

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	fake "github.com/leat-dev/leat/chattest/slack"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// ann and member are a person in direct messages and in a channel.
var (
	ann    = fake.Direct("D7", "U7", "Ann")
	member = fake.Member("C1", "U7", "Ann")
)

// newServer returns a fake.
func newServer(o fake.Options) *fake.Server {
	o.Token, o.AppToken, o.SigningSecret = "xoxb-test", "xapp-test", "secret"
	return fake.New(o)
}

// newBot returns a streaming bot whose requests a fake answers without sockets.
func newBot(server *fake.Server) *bot {
	c := New(Options{
		Name: "slack", Token: "xoxb-test", AppToken: "xapp-test", Streaming: true, URL: "http://slack.test/api", Log: slog.New(slog.DiscardHandler),
	}).(*bot)
	c.client.use(server)
	return c
}

// use makes a client call a fake.
func (c *client) use(server *fake.Server) {
	c.http = &http.Client{Transport: server}
	c.files, c.sockets = c.http, c.http
}

// inbox collects what a bot receives.
type inbox chan channel.InboundMessage

func (b inbox) Receive(_ context.Context, m channel.InboundMessage) error {
	b <- m
	return nil
}

// check reports what the fake has seen that a bot must not do.
func check(t *testing.T, server *fake.Server) {
	t.Helper()
	for _, v := range server.Violations() {
		t.Error(v)
	}
}

// bench is the fake as the suite for all platforms sees it. The function in chaos is called by one goroutine at a time.
type bench struct {
	*fake.Server
	chaos atomic.Pointer[func() channeltest.Fault]
}

func newBench(o fake.Options) *bench {
	b := &bench{}
	o.Chaos = func(_, in string) *fake.Fault {
		next := b.chaos.Load()
		if next == nil || in == "" {
			return nil
		}
		return faultOf((*next)())
	}
	b.Server = newServer(o)
	b.Server.Say(fake.Direct("D8", "U7", "Ann"), "a first message")
	b.Server.Say(fake.Member("C1", "U7", "Ann"), "a first message")
	b.Server.Say(fake.Member("C2", "U7", "Ann"), "a first message")
	return b
}

// began is the id of the first message in a channel of a bench: time is virtual and always begins then.
const began = "946684800.000000"

func faultOf(f channeltest.Fault) *fake.Fault {
	switch f.Kind {
	case channeltest.Penalized:
		return &fake.Fault{RetryAfter: f.Wait}
	case channeltest.Broken:
		return &fake.Fault{Status: 500}
	case channeltest.LostBefore:
		return &fake.Fault{Before: true}
	case channeltest.LostAfter:
		return &fake.Fault{After: true}
	}
	return nil
}

// Open implements [channeltest.Server].
func (b *bench) Open() channel.StreamChannel { return newBot(b.Server) }

// SetChaos implements [channeltest.Server].
func (b *bench) SetChaos(next func() channeltest.Fault) { b.chaos.Store(&next) }

// Say implements [channeltest.Server].
func (b *bench) Say(chat string) string {
	at, _ := parsePlace(chat)
	who := fake.Writer{Channel: at.channel, Thread: at.thread, User: "U7", Name: "Ann"}
	return reference(at.channel, b.Server.Say(who, "hello"), "U7")
}

// Visible implements [channeltest.Server].
func (b *bench) Visible(chat string) []string {
	var list []string
	for _, m := range b.messages(chat) {
		list = append(list, textOf(m))
	}
	return list
}

func (b *bench) messages(chat string) (list []fake.Message) {
	at, _ := parsePlace(chat)
	for _, m := range b.Server.Visible(at.channel) {
		if m.Thread == at.thread {
			list = append(list, m)
		}
	}
	return list
}

// textOf returns what a person reads.
func textOf(m fake.Message) string {
	lines := []string{cmp.Or(m.Plan, "")}
	for _, task := range m.Tasks {
		icon := map[string]string{"complete": "✅", "error": "❌"}[task.Status]
		lines = append(lines, icon+" "+task.Title, task.Output)
	}
	text := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "**", "", "`", "", "\\", "").Replace(m.Text)
	return strings.TrimSpace(strings.Join(append(lines, text), "\n"))
}

// Remove implements [channeltest.Server].
func (b *bench) Remove(chat string, n int) {
	if m := b.messages(chat)[n]; true {
		b.Server.Remove(m.Channel, m.TS)
	}
}

// Requests implements [channeltest.Server].
func (b *bench) Requests() int {
	n := 0
	for _, r := range b.Server.Requests() {
		if r.Channel != "" {
			n++
		}
	}
	return n
}
