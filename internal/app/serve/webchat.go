package serve

import (
	"net"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/web"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/voice/wire"
)

// readFrom lets a web channel show conversations to visitors whose missed frames are gone, and lets visitors talk.
func readFrom(ch channel.Channel, p *channel.Pipeline, speech *wire.Service) {
	if chat, ok := ch.(*web.Channel); ok {
		chat.ReadFrom(p)
		chat.SpeakWith(speech, p)
	}
}

// webPath is the path of the channel that is named web. Another web channel has its name as a further segment. /ws itself belongs to
// Eliza's clients.
const webPath = "/web"

// chatAt returns the channel that a path below webPath belongs to, and the prefix that the channel doesn't know.
func chatAt(path string) (name, prefix string) {
	switch first, _, _ := strings.Cut(path, "/"); first {
	case "", "ws", "voice", "widget.js", "files", "media":
		return "web", webPath
	default:
		return first, webPath + "/" + first
	}
}

// mountChats adds the routes of web channels. A channel decides itself which origins may connect, because its pages belong to others
// than those of the gateway.
func mountChats(srv *server.Server, p *channel.Pipeline) {
	serve := func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		if addr := server.ClientAddr(r); addr.IsValid() { // behind a trusted proxy it isn't that of the connection
			client := *r
			client.RemoteAddr = net.JoinHostPort(addr.String(), "0")
			r = &client
		}
		name, prefix := chatAt(r.PathValue("path"))
		var err error
		http.StripPrefix(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { err = p.ServePage(w, r, name) })).ServeHTTP(w, r)
		if err != nil {
			return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no web chat is at this path")
		}
		return nil
	}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
		srv.Handle(server.Route{
			Method: method, Pattern: webPath + "/{path...}", Access: server.Public, AnyOrigin: true, MaxBody: web.MaxUpload, Stream: method == http.MethodGet,
			Handler: serve,
		})
	}
}
