package channels

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/host"
	"github.com/leat-dev/leat/internal/server"
)

// oneChannel is a pipeline that has the channel tg only.
type oneChannel struct {
	pipeline
	sent []channel.OutboundMessage
}

func (p *oneChannel) Send(_ context.Context, m channel.OutboundMessage) error {
	if m.Channel != "tg" {
		return channel.ErrUnknownChannel
	}
	p.sent = append(p.sent, m)
	return nil
}

// onePlugin is a host that has the plugin pigeon only.
type onePlugin struct{ pluginHost }

func (onePlugin) Channels(context.Context) ([]host.ChannelState, error) {
	return []host.ChannelState{{Name: "pigeon"}}, nil
}

// A message goes to a built-in channel. A plugin takes none, and the refusal says what to do instead.
func TestSend(t *testing.T) {
	p := &oneChannel{}
	s := &surface{pipeline: p, plugins: onePlugin{}}
	send := func(name string) error {
		r := httptest.NewRequest(http.MethodPost, "/api/channels/"+name+"/send", strings.NewReader(`{"chat":"7","text":"hello"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "k1")
		r.SetPathValue("name", name)
		return s.send(httptest.NewRecorder(), r, gateway.Principal{Admin: true})
	}
	if err := send("tg"); err != nil || len(p.sent) != 1 || p.sent[0].Content != "hello" || p.sent[0].Key != "k1" || p.sent[0].ChatID != "7" {
		t.Errorf("%+v, %v", p.sent, err)
	}
	for name, want := range map[string]struct {
		status int
		text   string
	}{
		"pigeon": {http.StatusBadRequest, "is a plugin"},
		"crow":   {http.StatusNotFound, "no such channel"},
	} {
		var refusal *server.Error
		if err := send(name); !errors.As(err, &refusal) || refusal.Status != want.status || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
