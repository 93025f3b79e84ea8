// Package journalkey builds the keys under which the gateway stores values in the journal next to the logs. Each key belongs to
// a conversation and is deleted with it, except hold, which belongs to the audit log.
//
//	key                                   value
//	turn/TURN                             id of the turn's conversation
//	turn/TURN/principal                   JSON agent.Principal on whose behalf the turn runs; deleted with the turn's end
//	turn/TURN/tools                       JSON array of agent.ClientTool that the client offers; deleted with the turn's end
//	turn/TURN/state                       JSON state of the agent or of the pushed stream; deleted or set to expire with the end
//	turn/TURN/keys                        JSON state of the turn's dialect.Mapper; deleted with the end
//	turn/TURN/waited                      decimal milliseconds that the turn has waited for users; deleted with the end
//	turn/TURN/observed                    JSON {"key": key of the session entry}, if the upstream began the turn; deleted with the end
//	turn/TURN/handed                      0x01 if the agent left the turn's stream to a producer; deleted with the end
//	turn/TURN/token                       SHA-256 of the token with which a producer may push the turn
//	turn/TURN/answer/REQUEST              JSON event.Answer with "told": true once the agent has it; expires
//	session/CONVERSATION/AGENT            JSON session of an agent
//	cursor/CONVERSATION/AGENT             JSON cursor up to which the agent has followed its session
//	entry/CONVERSATION/AGENT/DIGEST       "message/ID", "turn/ID" or "nothing/": the result of a session entry
//	command/CONVERSATION/TYPE/DIGEST      JSON {"hash", "ack"} of a command with an idempotency key; expires, except for sends
//	create/SUBJECT/DIGEST                 JSON {"hash", "ack"} of a creation with an idempotency key; expires
//	deleting/CONVERSATION                 "1" from the commit of a delete until everything is removed
//	import/CONVERSATION                   digest of the import
//	file/CONVERSATION/ID                  JSON metadata of a file
//	fileorigin/CONVERSATION/DIGEST        id of the file that was stored from an origin
//	read/SUBJECT/CONVERSATION             decimal seq up to which a subject has read
//	heard/SUBJECT/CONVERSATION            JSON {"turn", "offset", "whole"}: how far a subject has heard a spoken answer
//	shared/SUBJECT/CONVERSATION           "1" if the conversation is shared with a subject
//	wrote/SUBJECT/CONVERSATION            "1" if a guest has written in the conversation; outlives the guest's access
//	hold/conversation/CONVERSATION        JSON legal hold on a conversation
//	hold/subject/SUBJECT                  JSON legal hold on a subject
//
// SUBJECT is a digest of a tenant and a subject, because keys must not contain names: SQLite can leave a copy of a deleted key in a free page.
// For the same reason DIGEST is that of a key that a client or an upstream has chosen, which may contain a name or a number. Ids and names of agents contain no slash.
// Stores depend on these keys, so they must never change.
package journalkey

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/leat-dev/leat/internal/service/audit"
)

// Prefixes of keys that are listed.
const (
	FilePrefix    = "file/"
	HeardPrefix   = "heard/"
	HoldPrefix    = "hold/"
	ReadPrefix    = "read/"
	SessionPrefix = "session/"
)

// Turn returns the key of a turn's conversation.
func Turn(turn string) string { return "turn/" + turn }

// TurnPrincipal returns the key of the principal on whose behalf a turn runs or waits.
func TurnPrincipal(turn string) string { return Turn(turn) + "/principal" }

// TurnTools returns the key of the tools that the client offers to a turn.
func TurnTools(turn string) string { return Turn(turn) + "/tools" }

// TurnState returns the key of the state with which a turn is resumed.
func TurnState(turn string) string { return Turn(turn) + "/state" }

// TurnMapper returns the key of the state of a turn's mapper.
func TurnMapper(turn string) string { return Turn(turn) + "/keys" }

// TurnWaited returns the key of the time that a turn has waited for users.
func TurnWaited(turn string) string { return Turn(turn) + "/waited" }

// TurnObserved returns the key that marks a turn as begun by its upstream.
func TurnObserved(turn string) string { return Turn(turn) + "/observed" }

// TurnPushed returns the key that marks a turn whose agent left its stream to a producer.
func TurnPushed(turn string) string { return Turn(turn) + "/handed" }

// TurnToken returns the key of the digest of a turn's push token.
func TurnToken(turn string) string { return Turn(turn) + "/token" }

// Answer returns the key of the answer to a request of a turn. With an empty request it is the prefix of all of them.
func Answer(turn, request string) string { return Turn(turn) + "/answer/" + request }

// Session returns the key of an agent's session. With an empty agent it is the prefix of all sessions of the conversation.
func Session(conversation, agent string) string { return SessionPrefix + conversation + "/" + agent }

// CutSession returns the parts of a key that Session returned.
func CutSession(key string) (conversation, agent string, ok bool) {
	names, ok := strings.CutPrefix(key, SessionPrefix)
	i := strings.LastIndexByte(names, '/')
	if !ok || i < 0 {
		return "", "", false
	}
	return names[:i], names[i+1:], true
}

// Cursor returns the key of the cursor up to which an agent has followed its session.
func Cursor(conversation, agent string) string { return "cursor/" + conversation + "/" + agent }

// Entry returns the key of the result of a session entry, which has a key of its own.
func Entry(conversation, agent, entry string) string {
	return "entry/" + conversation + "/" + agent + "/" + digest(entry)
}

// digest returns the digest of a key that was chosen elsewhere.
func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// Command returns the key of the outcome of a command with an idempotency key.
func Command(conversation, kind, key string) string {
	return "command/" + conversation + "/" + kind + "/" + digest(key)
}

// Create returns the key of the outcome of a creation.
func Create(tenant, subject, key string) string {
	return "create/" + audit.Digest(tenant, subject) + "/" + digest(key)
}

// Deleting returns the key that marks a conversation whose delete is committed but not finished. With an empty conversation it
// is the prefix of all of them.
func Deleting(conversation string) string { return "deleting/" + conversation }

// Import returns the key of the digest of the import that made a conversation.
func Import(conversation string) string { return "import/" + conversation }

// File returns the key of a file's metadata.
func File(conversation, id string) string { return FilePrefix + conversation + "/" + id }

// FileOrigin returns the key of the id of the file that was stored from an origin, such as a URL.
func FileOrigin(conversation, origin string) string {
	sum := sha256.Sum256([]byte(origin))
	return "fileorigin/" + conversation + "/" + hex.EncodeToString(sum[:])
}

// Read returns the key of how far a subject has read. With an empty conversation it is the prefix of all of the subject's.
func Read(tenant, subject, conversation string) string {
	return ReadPrefix + audit.Digest(tenant, subject) + "/" + conversation
}

// Heard returns the key of how far a subject has heard the answer that was spoken last. With an empty conversation it is the prefix of all
// of the subject's.
func Heard(tenant, subject, conversation string) string {
	return HeardPrefix + audit.Digest(tenant, subject) + "/" + conversation
}

// Share returns the key that lists a conversation for a subject with whom it is shared. With an empty conversation it is the
// prefix of all of the subject's.
func Share(tenant, subject, conversation string) string {
	return "shared/" + audit.Digest(tenant, subject) + "/" + conversation
}

// Wrote returns the key that marks a conversation in which a guest has written. With an empty conversation it is the prefix of
// all of the guest's.
func Wrote(tenant, subject, conversation string) string {
	return "wrote/" + audit.Digest(tenant, subject) + "/" + conversation
}

// HoldConversation returns the key of the legal hold on a conversation.
func HoldConversation(conversation string) string { return HoldPrefix + "conversation/" + conversation }

// HoldSubject returns the key of the legal hold on a subject.
func HoldSubject(tenant, subject string) string {
	return HoldPrefix + "subject/" + audit.Digest(tenant, subject)
}
