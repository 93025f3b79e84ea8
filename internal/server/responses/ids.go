// Ids of responses, items and requests.

package responses

import (
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/server"
)

// The prefixes of ids. What follows is Leat's own id, so ids need no table that would have to be stored.
const (
	prefixResponse     = "resp_"
	prefixConversation = "conv_"
	prefixMessage      = "msg_"
	prefixReasoning    = "rs_"
	prefixTool         = "mcp_"
	prefixFunction     = "fc_"
	prefixCall         = "call_"
	prefixApproval     = "mcpr_"
	prefixOutput       = "out_" // of an item that answers a request
)

// responseID returns the id of the response with a turn's answer from a number on. The first response of a turn begins at 0.
func responseID(turn string, from int64) string {
	if from == 0 {
		return prefixResponse + turn
	}
	return prefixResponse + turn + "." + strconv.FormatInt(from, 10)
}

// parseResponse returns the turn of a response, and the number from which it has the answer.
func parseResponse(id string) (turn string, from int64, err error) {
	turn, ok := strings.CutPrefix(id, prefixResponse)
	if !ok || turn == "" {
		return "", 0, errNoResponse
	}
	if turn, digits, isLater := strings.Cut(turn, "."); isLater {
		from, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || from <= 0 || from > maxNumber {
			return "", 0, errNoResponse
		}
		return turn, from, nil
	}
	return turn, 0, nil
}

// requestID returns the id by which a client answers a request of a turn. It names the turn too, since clients that keep their history
// themselves name no response.
func requestID(prefix, turn, request string) string { return prefix + turn + "." + request }

// parseRequest is the inverse of requestID.
func parseRequest(prefix, id string) (turn, request string, err error) {
	name, ok := strings.CutPrefix(id, prefix)
	turn, request, hasRequest := strings.Cut(name, ".")
	if !ok || !hasRequest || turn == "" {
		return "", "", server.Invalid("input: no tool call or approval request has the id %q", id)
	}
	return turn, request, nil
}

// itemID returns the id of the item for a part.
func itemID(prefix string, k partKey) string { return prefix + k.message + "." + k.part }

// conversationID returns Leat's id of a conversation. Both forms name it.
func conversationID(id string) string { return strings.TrimPrefix(id, prefixConversation) }
