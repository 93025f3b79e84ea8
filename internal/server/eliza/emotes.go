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

// EmoteOptions say which emotes there are, and who shows them.
type EmoteOptions struct {
	// Emotes is the catalogue; nil is an empty one.
	Emotes *Emotes
	// Send takes the frames; nil shows them to nobody.
	Send func(hub.Frame)
}

// RegisterEmotes adds the catalogue, its files, and POST /api/emote. The files are public: pages load them without a token.
func RegisterEmotes(srv *server.Server, opt EmoteOptions) {
	e := &emoting{opt}
	if e.Emotes == nil {
		e.Emotes = &Emotes{}
	}
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/emotes", Access: server.Authenticated, Handler: e.list})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/emote", Access: server.Authenticated, Handler: e.show})
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: emotePath + "{file}", Access: server.Public, Handler: e.file})
}

type emoting struct{ EmoteOptions }

func (e *emoting) list(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	all := e.Emotes.all
	if all == nil {
		all = []Emote{}
	}
	server.WriteJSON(w, http.StatusOK, map[string][]Emote{"emotes": all})
	return nil
}

type emoteFrame struct {
	Type     string  `json:"type"`
	ID       string  `json:"emoteId"`
	Path     string  `json:"glbPath"`
	Duration float64 `json:"duration"`
	Loop     bool    `json:"loop"`
}

// show has an avatar move: the admin everybody's, a user their own.
func (e *emoting) show(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var in struct {
		ID string `json:"emoteId"`
	}
	if err := server.Decode(r, &in); err != nil {
		return err
	}
	one, ok := e.Emotes.find(in.ID)
	if !ok {
		return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "Unknown emote: %.100s", in.ID)
	}
	b, err := json.Marshal(emoteFrame{"emote", one.ID, one.Path, one.Duration, one.Loop})
	if err != nil {
		return err
	}
	if e.Send != nil {
		e.Send(hub.Frame{Everybody: p.Admin, Private: !p.Admin, Tenant: p.Tenant, Subject: p.Subject, JSON: b})
	}
	server.WriteJSON(w, http.StatusOK, map[string]bool{"ok": true})
	return nil
}

// file serves what the catalogue names, and nothing else of its folder.
func (e *emoting) file(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	name := r.PathValue("file")
	if !e.Emotes.files[name] {
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "there is no such emote")
	}
	f, err := os.OpenInRoot(e.Emotes.dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "the emote's file is gone")
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
	h.Set("Cache-Control", "no-cache") // kept, and asked for whether it has changed
	http.ServeContent(w, r, "", info.ModTime(), io.NewSectionReader(f, 0, info.Size()))
	return nil
}
