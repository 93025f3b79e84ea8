package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

//go:embed widget/widget.js
var widget []byte

//go:embed widget/page.html
var page []byte

// asset is a file that the channel serves: its media type and ETag, and its content with and without gzip. It never
// changes.
type asset struct {
	kind, tag           string
	content, compressed []byte
}

// newAsset compresses a file once, for all requests.
func newAsset(kind string, content []byte) *asset {
	sum := sha256.Sum256(content)
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(content)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic("web: " + err.Error()) // writes to memory can't fail
	}
	return &asset{kind: kind, tag: `"` + hex.EncodeToString(sum[:8]) + `"`, content: content, compressed: b.Bytes()}
}

// ServeHTTP serves the file. Pages of all origins may load it, because it has no data of a visitor. Browsers may use
// it for five minutes without asking, so an update of the gateway reaches pages within that time.
func (a *asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("ETag", a.tag)
	h.Add("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	content := a.content
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		content = a.compressed
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // an error means that the client has disconnected
	}
}

// pagePolicy allows the page its own script and connections.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src blob: data:; frame-ancestors 'self'"

// newRoutes returns the handler of all routes. Their paths are below the one at which the channel is mounted.
func (c *Channel) newRoutes() http.Handler {
	mux, start := http.NewServeMux(), newAsset("text/html; charset=utf-8", page)
	mux.HandleFunc("GET /ws", c.serveSocket)
	mux.HandleFunc("GET /voice", c.serveVoice)
	mux.HandleFunc("POST /files", c.withSession(c.serveUpload))
	mux.HandleFunc("GET /media/{ref}", c.withSession(c.serveMedia))
	mux.Handle("GET /widget.js", newAsset("text/javascript; charset=utf-8", widget))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", pagePolicy)
		start.ServeHTTP(w, r)
	})
	return mux
}

// ServeHTTP serves the routes /ws, /widget.js, /files, /media/{ref}, and / with a page that has only the widget. Another server mounts
// them below a path, which it removes. Requests are refused while Run doesn't run. The script of the widget is exempt
// from the check of the origin, because it has no data of a visitor.
func (c *Channel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if !c.isOriginAllowed(r) && r.URL.Path != "/widget.js" {
		refuse(w, http.StatusForbidden, "this origin may not connect; add it to the option origins")
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && r.Header.Get("Upgrade") == "" {
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Allow-Origin", origin)
		if r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Methods", "GET, POST")
			h.Set("Access-Control-Allow-Headers", "Content-Type, "+sessionHeader)
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	c.routes.ServeHTTP(w, r)
}

// sessionHeader is the header with the session token. It is not Authorization, because a server that mounts the channel takes that for
// its own credentials, and it is not in the URL, because proxies log that. Sockets name the session in another header; see [sessionOf].
const sessionHeader = "Leat-Session"

// withSession calls serve with the chat of the session token that a request has in its header. It counts a POST
// against the rate of the chat. The request belongs to the current call of Run: when that ends, the request has
// closeLimit left before its connection fails.
func (c *Channel) withSession(serve func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		chat := chatOf(r.Header.Get(sessionHeader))
		if chat == "" {
			refuse(w, http.StatusUnauthorized, "a session token is required")
			return
		}
		service, leave := c.join()
		if service == nil {
			refuseStopped(w)
			return
		}
		defer leave()
		defer context.AfterFunc(service.ctx, func() {
			limit := time.Now().Add(closeLimit)
			control := http.NewResponseController(w) // its methods fail only if the writer has no deadlines, as in tests
			_, _ = control.SetReadDeadline(limit), control.SetWriteDeadline(limit)
		})()
		if r.Method == http.MethodPost {
			room := c.rooms.enter(chat)
			wait, ok := c.rooms.mayWrite(room)
			c.rooms.leave(room)
			if !ok {
				refuseRate(w, wait)
				return
			}
		}
		serve(w, r, chat)
	}
}

// refuse answers a request with an error as plain text, which no cache may store.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, message, status)
}

// writeJSON answers a request with a value.
func writeJSON(w http.ResponseWriter, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // fails only if the client has disconnected
}
