package eliza

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
)

// EmoteOptions configure RegisterEmotes.
type EmoteOptions struct {
	// Emotes is the catalogue. If it is nil, the list is empty.
	Emotes *Emotes
	// Send delivers a frame to the sockets. If it is nil, frames are dropped.
	Send func(hub.Frame)
}

// RegisterEmotes adds the catalogue, its files, and POST /api/emote. The files are public, because pages load them without a
// token.
func RegisterEmotes(srv *server.Server, opt EmoteOptions) {
	e := &emoteRoutes{opt}
	if e.Emotes == nil {
		e.Emotes = &Emotes{}
	}
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/emotes", Access: server.Authenticated, Handler: e.list})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/emote", Access: server.Authenticated, Handler: e.show})
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: emotePath + "{file}", Access: server.Public, Handler: e.file})
}

// emoteRoutes has the handlers of the emotes. It has no state besides its options, which do not change.
type emoteRoutes struct{ EmoteOptions }

// list answers GET /api/emotes. Without emotes the list is [] and not null, which the clients could not
// iterate over.
func (e *emoteRoutes) list(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	emotes := e.Emotes.list
	if emotes == nil {
		emotes = []emote{}
	}
	return server.Respond(w, map[string][]emote{"emotes": emotes}, nil)
}

// emoteFrame is the frame that makes the clients play an emote. It repeats the data of the catalogue, so a
// client that has not loaded the catalogue can play it too.
type emoteFrame struct {
	Type     string  `json:"type"`
	ID       string  `json:"emoteId"`
	Path     string  `json:"glbPath"`
	Duration float64 `json:"duration"`
	Loop     bool    `json:"loop"`
}

// show plays an emote: for the admin on every socket, for a user on the user's own sockets.
func (e *emoteRoutes) show(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var in struct {
		ID string `json:"emoteId"`
	}
	if err := server.Decode(r, &in); err != nil {
		return err
	}
	emote, ok := e.Emotes.find(in.ID)
	if !ok {
		return server.Invalid("Unknown emote: %.100s", in.ID)
	}
	b, err := json.Marshal(emoteFrame{"emote", emote.ID, emote.Path, emote.Duration, emote.Loop})
	if err != nil {
		return err
	}
	if e.Send != nil {
		e.Send(hub.Frame{Broadcast: p.Admin, Private: !p.Admin, Tenant: p.Tenant, Subject: p.Subject, JSON: b})
	}
	return server.Respond(w, map[string]bool{"ok": true}, nil)
}

// file serves only files that the catalogue names.
//
// The catalogue's names were checked when it was loaded, but a file can be replaced afterwards, so it is
// opened with os.OpenInRoot: a symbolic link out of the folder is an error. Ranges and If-Modified-Since
// are answered by http.ServeContent.
func (e *emoteRoutes) file(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	name := r.PathValue("file")
	if !e.Emotes.files[name] {
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "emote not found")
	}
	f, err := os.OpenInRoot(e.Emotes.dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "the file of this emote is missing")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "model/gltf-binary")
	h.Set("Cache-Control", "no-cache") // cached, but revalidated on each use
	http.ServeContent(w, r, "", info.ModTime(), io.NewSectionReader(f, 0, info.Size()))
	return nil
}
