package openclaw

import (
	"encoding/json"
	"slices"
	"strings"
)

// Sent takes a request of the client whose connection is decoded. A gateway sends the runs of all sessions to each of its clients: once
// the client has sent a message, or else has read a history, only the runs of those sessions are decoded.
func (d *decoder) SawRequest(frame []byte) {
	var q struct {
		Method string `json:"method"`
		Params struct {
			Session string `json:"sessionKey"`
		} `json:"params"`
	}
	if json.Unmarshal(frame, &q) != nil || q.Params.Session == "" || len(q.Params.Session) > maxSession {
		return
	}
	switch {
	case q.Method == "chat.send" && !d.Sends:
		d.OwnSessions, d.Sends = nil, true
	case q.Method == "chat.send", q.Method == "chat.history" && !d.Sends:
	default:
		return
	}
	if key := strings.ToLower(q.Params.Session); !slices.Contains(d.OwnSessions, key) && len(d.OwnSessions) < maxSessions {
		d.OwnSessions = append(d.OwnSessions, key)
	}
}

// owns reports whether a session is one that the client sends to. The gateway puts its agent before the name that a client gives.
func (d *decoder) owns(session string) bool {
	return slices.ContainsFunc(d.OwnSessions, func(ownSession string) bool {
		return session == ownSession || strings.HasSuffix(session, ":"+ownSession)
	})
}
