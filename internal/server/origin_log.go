package server

import (
	"log/slog"
	"net/url"
	"sync"
)

// maxLoggedOrigins bounds the refused origins that are remembered, so that a client that makes up origins fills neither the log nor
// memory.
const maxLoggedOrigins = 64

// originLog logs each refused origin once, with the setting that would allow it. Browsers hide the refusal from the page, which sees
// a failed connection only, so the log is where its author finds the reason.
type originLog struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (l *originLog) refused(log *slog.Logger, origin string) {
	if len(origin) > maxOriginLength {
		return // no browser sends it
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[origin] || len(l.seen) >= maxLoggedOrigins {
		return
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[origin] = true
	log.Warn("page refused: its origin is not allowed", "origin", origin, "setting", originSetting(origin))
}

// forget makes refused origins news again, after the settings have changed.
func (l *originLog) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = nil
}

// maxOriginLength bounds an origin that is logged, in bytes: a scheme, the longest host name and a port.
const maxOriginLength = 300

// originSetting names the setting that allows an origin.
func originSetting(origin string) string {
	if u, err := url.Parse(origin); err == nil && appOrigin(u) {
		return "app_origins"
	}
	return "allowed_origins"
}
