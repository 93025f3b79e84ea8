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
	// ErrTooLong reports a line above MaxLine. What follows it can't be read.
	ErrTooLong = errors.New("jsonrpc: line too long")
)

// Codes of errors that the specification of JSON-RPC 2.0 defines. Canceled is from the range of the Language Server Protocol.
const (
	ParseError     = -32700
	InvalidRequest = -32600
	MethodNotFound = -32601
	InvalidParams  = -32602
	InternalError  = -32603
	Canceled       = -32800
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
