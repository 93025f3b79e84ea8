package jsonrpc

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed reports that the connection has ended.
	ErrClosed = errors.New("jsonrpc: connection closed")
	// ErrNoResponse is returned by work whose request must not be answered, because the peer has given it up.
	ErrNoResponse = errors.New("jsonrpc: no response")
	// errTooLong reports a line above maxLine. What follows it can't be read.
	errTooLong = errors.New("jsonrpc: line too long")
)

// Codes of errors that the specification of JSON-RPC 2.0 defines. canceled is from the range of the Language Server Protocol.
const (
	parseError     = -32700
	invalidRequest = -32600
	methodNotFound = -32601
	InvalidParams  = -32602
	InternalError  = -32603
	canceled       = -32800
)

// Error is the error object of a response.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Errorf returns an error with a code and a formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
