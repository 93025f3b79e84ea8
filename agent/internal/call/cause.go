package call

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
)

// cause describes a transport error for viewers in a few words, or returns "" if the error is of another kind.
// The text contains neither an address nor anything that the upstream sent, since viewers may not be allowed to
// see those. The cases are ordered from the most specific error to the most general one: a failed lookup of a
// name, for example, can also be a timeout.
func cause(err error) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &name):
		return "its host name can't be resolved"
	case errors.As(err, &certificate):
		return "its certificate is not valid"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to it"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timed out"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "the connection was closed"
	}
	return ""
}

// WithCause appends the cause of a transport error to a message for viewers, if it is known.
func WithCause(message string, err error) string {
	if reason := cause(err); reason != "" {
		return message + ": " + reason
	}
	return message
}
