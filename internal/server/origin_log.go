package server

import (
	"log/slog"
	"net/url"
	"sync"
)

// maxLoggedOrigins is how many refused origins are remembered. A client that invents origins must fill neither the log nor the
// memory.
const maxLoggedOrigins = 64

// originLog logs each refused origin once, with the setting that would allow it. Browsers hide the reason from the page, which
// sees only a failed connection, so its author finds the reason in the log.
type originLog struct {
	mu     sync.Mutex
	logged map[string]bool
}

// logRefused logs an origin the first time that it is refused, with the setting that would allow it. A page retries for as long as
// it is open, and each site could use many origins, so the number of logged ones is limited.
func (l *originLog) logRefused(log *slog.Logger, origin string) {
	if len(origin) > maxOriginLength {
		return // no browser sends such an origin
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.logged[origin] || len(l.logged) >= maxLoggedOrigins {
		return
	}
	if l.logged == nil {
		l.logged = map[string]bool{}
	}
	l.logged[origin] = true
	log.Warn("page refused: its origin is not allowed", "origin", origin, "setting", originSetting(origin))
}

// forget clears the logged origins, after the settings have changed.
func (l *originLog) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logged = nil
}

// maxOriginLength is the longest origin in the log, in bytes: a scheme, the longest host name and a port.
const maxOriginLength = 300

// originSetting returns the name of the setting that allows an origin.
func originSetting(origin string) string {
	if u, err := url.Parse(origin); err == nil && appOrigin(u) {
		return "app_origins"
	}
	return "allowed_origins"
}
