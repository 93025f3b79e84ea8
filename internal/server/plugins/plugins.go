package plugins

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/service/plugins"
)

// Options are the functions that the routes call.
type Options struct {
	// Store contains the plugins. If it is nil, plugins can't be installed. Its owner closes it.
	Store *plugins.Store
	// State reports whether a plugin is ready, or the reason why not. It is called for each plugin of a list, and
	// must not block. If ready is false, reason may be nil.
	State func(name string) (ready bool, reason error)
	// Send delivers install-progress frames. If it is nil, frames are dropped. It is called in the goroutine of the
	// installation, which waits for it.
	Send func(hub.Frame)
}

// surface has the handlers. The store allows only one installation or removal at a time; others get
// ErrBusy. An installation may take minutes, so a second admin gets an error at once instead of waiting.
type surface struct {
	Options
	srv *server.Server
	gw  *gateway.Gateway
}

// Register adds the routes to a server.
func Register(srv *server.Server, gw *gateway.Gateway, opt Options) {
	s := &surface{opt, srv, gw}
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/plugins", Access: server.Admin, Handler: s.list})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/plugins/install", Access: server.Admin, Stream: true, Errors: failed, Handler: s.install})
	srv.Handle(server.Route{Method: http.MethodDelete, Pattern: "/api/plugins/{name}", Access: server.Admin, Errors: failed, Handler: s.remove})
}

// failed writes an error in the format of Eliza's clients. They look at ok, and find the message where Leat's own
// format has it.
func failed(w http.ResponseWriter, _ *http.Request, e *server.Error) {
	server.WriteJSON(w, e.Status, struct {
		OK bool `json:"ok"`
		*server.Error
	}{false, e})
}

var errOff = server.Errorf(http.StatusForbidden, server.ReasonForbidden, "Plugin installation is disabled")

// listEntry is a plugin in the list.
//
// Origin is the source of the plugin, such as npm:pkg@1.2.0 or folder:/path.
type listEntry struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Kind is the kind from the manifest: agent or channel.
	Kind        string `json:"kind"`
	Description string `json:"description,omitempty"`
	Origin      string `json:"origin"`
	// SHA256 is the checksum of the archive in hexadecimal. It is empty for a folder.
	SHA256    string    `json:"sha256,omitempty"`
	Installed time.Time `json:"installedAt"`
	Ready     bool      `json:"ready"`
	// Error is why the plugin isn't ready, if that is known.
	Error string `json:"error,omitempty"`
}

// list answers GET /api/plugins. Without a store the list is empty, so pages need no separate case.
func (s *surface) list(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	entries := []listEntry{}
	if s.Store != nil {
		for _, p := range s.Store.List() {
			m := p.Manifest
			entry := listEntry{Name: m.Name, Version: m.Version, Kind: m.Kind, Description: m.Description, Origin: p.Origin, SHA256: p.SHA256, Installed: p.Installed}
			var reason error
			if entry.Ready, reason = s.State(m.Name); !entry.Ready && reason != nil {
				entry.Error = reason.Error()
			}
			entries = append(entries, entry)
		}
	}
	return server.Respond(w, map[string][]listEntry{"plugins": entries}, nil)
}

// installBody is the request to install a plugin. Eliza's clients send a name. autoRestart is ignored, because no restart is
// necessary. Exactly one of name, path and archive says where the plugin comes from: npm, a folder of this machine,
// or a URL. version is only for npm, and sha256 is the expected checksum of an archive.
type installBody struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Path    string `json:"path"`
	Archive string `json:"archive"`
	SHA256  string `json:"sha256"`
}

// installed describes the installed plugin. Path is the folder that the gateway has made for it.
type installed struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Path    string `json:"installPath"`
}

// installReply has the fields of Eliza's server. RequiresRestart is always false.
type installReply struct {
	OK              bool      `json:"ok"`
	Plugin          installed `json:"plugin"`
	RequiresRestart bool      `json:"requiresRestart"`
	Message         string    `json:"message"`
}

// install answers POST /api/plugins/install. It waits until the plugin runs; the phases in between are
// sent as frames. A plugin that fails in any phase is removed again. The audit log records both results,
// and the reason of a failure goes to the client, because the admin must correct the plugin.
//
// If the client disconnects, the installation stops at its next phase and is undone. The status is 422 if it failed,
// 400 if the request is malformed, and 409 while another one runs.
func (s *surface) install(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	if s.Store == nil {
		return errOff
	}
	var in installBody
	if err := server.Decode(r, &in); err != nil {
		return err
	}
	req := plugins.Request{Name: in.Name, Version: in.Version, Folder: in.Path, Archive: in.Archive, SHA256: in.SHA256}
	plugin, err := s.Store.Install(r.Context(), req, s.tell)
	var failure *plugins.Failure
	switch {
	case errors.Is(err, plugins.ErrInvalid):
		return server.Invalid("%s", err)
	case errors.Is(err, plugins.ErrBusy):
		return server.Errorf(http.StatusConflict, server.ReasonBusy, "Another plugin is being installed or removed")
	case errors.As(err, &failure):
		s.record(r, p, "plugin.install", in.Name, string(failure.Phase))
		s.srv.Log().Warn("plugin not installed", "request", server.RequestID(r.Context()), "phase", failure.Phase, "error", failure.Err)
		return server.Errorf(http.StatusUnprocessableEntity, reasonFailed, "%s", failure)
	case err != nil:
		return err
	}
	m := plugin.Manifest
	s.record(r, p, "plugin.install", m.Name, audit.Done)
	s.srv.Log().Info("plugin installed", "request", server.RequestID(r.Context()), "plugin", m.Name, "version", m.Version, "origin", plugin.Origin)
	server.WriteJSON(w, http.StatusOK, installReply{
		OK: true, Plugin: installed{Name: m.Name, Version: m.Version, Path: plugin.Dir}, Message: fmt.Sprintf("%s %s is installed and runs", m.Name, m.Version),
	})
	return nil
}

// reasonFailed is the reason of an installation that failed and was undone.
const reasonFailed = "install_failed"

// remove answers DELETE /api/plugins/{name}: it stops the plugin and deletes it. The status is 404 for an unknown
// name, and 409 while another installation or removal runs.
func (s *surface) remove(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	if s.Store == nil {
		return errOff
	}
	name := r.PathValue("name")
	switch err := s.Store.Remove(name); {
	case errors.Is(err, plugins.ErrNotFound):
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no plugin %.100q is installed", name)
	case errors.Is(err, plugins.ErrBusy):
		return server.Errorf(http.StatusConflict, server.ReasonBusy, "Another plugin is being installed or removed")
	case err != nil:
		return err
	}
	s.record(r, p, "plugin.remove", name, audit.Done)
	s.srv.Log().Info("plugin removed", "request", server.RequestID(r.Context()), "plugin", name)
	return server.Respond(w, map[string]bool{"ok": true}, nil)
}

// record adds an installation to the audit log. If that fails, the installation stays.
//
// It is called after the change, so a failure is only a warning in the gateway's log.
func (s *surface) record(r *http.Request, p gateway.Principal, action, plugin, result string) {
	e := audit.Entry{Action: action, Actor: gateway.Actor(r.Context(), p), Plugin: plugin, Result: result}
	if err := s.gw.Audit().Record(r.Context(), e); err != nil {
		s.srv.Log().Warn("not in the audit log", "action", action, "plugin", plugin, "error", err)
	}
}

// progressFrame is the frame install-progress.
type progressFrame struct {
	Type    string        `json:"type"`
	Plugin  string        `json:"pluginName,omitempty"`
	Phase   plugins.Phase `json:"phase"`
	Message string        `json:"message"`
}

// tell sends the progress of an installation to the admin's sockets.
func (s *surface) tell(p plugins.Progress) {
	if s.Send == nil {
		return
	}
	b, err := server.Marshal(progressFrame{"install-progress", p.Plugin, p.Phase, p.Message})
	if err != nil {
		s.srv.Log().Error("install-progress frame", "error", err) // impossible: it contains only strings
		return
	}
	s.Send(hub.Frame{JSON: b})
}
