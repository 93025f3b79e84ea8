// JSON-RPC: requests, responses and errors.

package a2a

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/internal/server/internal/follow"
)

// Codes of errors: those of JSON-RPC, and those of the protocol (section 5.4 of the specification).
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeNoTask         = -32001 // TaskNotFoundError
	codeNotCancelable  = -32002 // TaskNotCancelableError
	codeNoPush         = -32003 // PushNotificationNotSupportedError
	codeUnsupported    = -32004 // UnsupportedOperationError
	codeContentType    = -32005 // ContentTypeNotSupportedError
	codeVersion        = -32009 // VersionNotSupportedError
)

// request is a request of a client. Its id is returned as it is: a number or a string.
type request struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// response is the response to a request, or one event of a stream: the protocol sends each event as a response with the same id.
type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// rpcError is an error object.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// check refuses what isn't a request of JSON-RPC 2.0. An id is a string, a number or null; anything else could be as large as the request, and
// would be repeated in each event of a stream.
func (r *request) check() error {
	if r.Version != "2.0" {
		return &rpcError{codeInvalidRequest, "The request is not JSON-RPC 2.0."}
	}
	if strings.IndexByte("{[tf", r.ID[0]) >= 0 {
		r.ID = []byte("null")
		return &rpcError{codeInvalidRequest, "The id of a request must be a string or a number."}
	}
	return nil
}

// respondError responds with an error of the server, such as a wrong token, before the request was read. The status stays, because clients
// decide by it whether to authenticate or to try again.
func respondError(w http.ResponseWriter, _ *http.Request, e *server.Error) {
	w.Header().Set("Leat-Reason", e.Reason)
	server.WriteJSON(w, e.Status, response{Version: "2.0", ID: json.RawMessage("null"), Error: &rpcError{codeOf(e), chats.Sentence(e.Message)}})
}

// codeOf returns the code for an error of the server.
func codeOf(e *server.Error) int {
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusConflict, http.StatusGone:
		return codeInvalidParams
	case http.StatusNotFound:
		return codeNoTask
	}
	return codeInternal
}

// errorOf returns the error object for an error of a method, and the HTTP status of its response. Errors of the protocol have the status 200:
// clients read the body of any other one only to show it.
func errorOf(err error) (*rpcError, int) {
	if failure, ok := errors.AsType[*rpcError](err); ok {
		return failure, http.StatusOK
	}
	if errors.Is(err, gateway.ErrNotFound) || errors.Is(err, follow.ErrNoTurn) {
		return &rpcError{codeNoTask, "Task not found."}, http.StatusOK
	}
	e := server.Describe(err)
	status := http.StatusOK
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		status = e.Status
	}
	return &rpcError{codeOf(e), chats.Sentence(e.Message)}, status
}
