// Tools that a client offers with a message, for the turn that answers it.

package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Limits of the tools of one message. The sizes are those of popular model APIs; the total keeps a queue of turns small.
const (
	maxClientTools     = 128
	maxClientToolName  = 128       // bytes
	maxClientToolBytes = 256 << 10 // of all names, descriptions and parameters of a message
)

// checkClientTools returns a *Rejection if a client may not offer the tools.
func checkClientTools(tools []agent.ClientTool) error {
	if len(tools) > maxClientTools {
		return reject(ReasonInvalid, "send: %d tools; at most %d are possible", len(tools), maxClientTools)
	}
	size, names := 0, make(map[string]bool, len(tools))
	for _, tool := range tools {
		switch {
		case !isToolName(tool.Name):
			return reject(ReasonInvalid, "send: invalid name of a tool %q: use 1 to %d bytes of text without spaces", tool.Name, maxClientToolName)
		case names[tool.Name]:
			return reject(ReasonInvalid, "send: two tools are named %q", tool.Name)
		case !utf8.ValidString(tool.Description):
			return reject(ReasonInvalid, "send: the description of tool %q is not valid UTF-8", tool.Name)
		case !isAbsent(tool.Parameters) && !isObject(tool.Parameters):
			return reject(ReasonInvalid, "send: the parameters of tool %q must be a JSON schema, which is an object", tool.Name)
		}
		names[tool.Name] = true
		size += len(tool.Name) + len(tool.Description) + len(tool.Parameters)
	}
	if size > maxClientToolBytes {
		return reject(ReasonTooLarge, "send: the tools have %d bytes; at most %d are possible", size, maxClientToolBytes)
	}
	return nil
}

// isToolName reports whether a text can name a tool.
func isToolName(name string) bool {
	return name != "" && len(name) <= maxClientToolName && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
}

// isAbsent reports whether raw is missing. Clients also write null for parameters that a tool doesn't have.
func isAbsent(raw json.RawMessage) bool {
	return len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null"
}

// isObject reports whether raw is a JSON object.
func isObject(raw json.RawMessage) bool {
	return json.Valid(raw) && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{"))
}

// setClientTools stores the tools of a turn that begins. They are not in the log: only the turn's agent needs them, until the turn ends.
func (t *tx) setClientTools(turn string, tools []agent.ClientTool) error {
	if len(tools) == 0 {
		return nil
	}
	tools = slices.Clone(tools)
	for i := range tools {
		if isAbsent(tools[i].Parameters) {
			tools[i].Parameters = nil
		}
	}
	value, err := json.Marshal(tools)
	if err != nil {
		return err
	}
	t.setKey(journalkey.TurnTools(turn), value, 0)
	return nil
}

// clientTools returns the tools of an unfinished turn. If they can't be read, the agent answers without them.
func (w *writer) clientTools(turn string) (tools []agent.ClientTool) {
	value, err := w.core.journal.Get(w.core.life, journalkey.TurnTools(turn))
	if errors.Is(err, journal.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(value, &tools)
	}
	if err != nil {
		w.log.Error("tools of the client not read; the agent answers without them", "turn", turn, "error", err)
		return nil
	}
	return tools
}
