package openclaw

import (
	"encoding/json"
	"slices"
	"strings"
)

// SawRequest decodes a request of the client whose connection is decoded. A gateway sends the runs of all sessions to every
// client. After the client has sent a message, only runs of the sessions of its messages are decoded; before that, those whose
// history it has read.
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

// owns reports whether the client uses the session. The gateway puts the agent before the name that the client sends.
func (d *decoder) owns(session string) bool {
	return slices.ContainsFunc(d.OwnSessions, func(ownSession string) bool {
		return session == ownSession || strings.HasSuffix(session, ":"+ownSession)
	})
}
