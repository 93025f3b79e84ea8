package socket

import (
	"crypto/sha1" //nolint:gosec // the handshake of RFC 6455 uses it, and not for security
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

const (
	// handshakeGUID is the constant that proves that a server knows the protocol (RFC 6455, section 1.3).
	handshakeGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
	// nonceSize is the length in bytes of a client's Sec-WebSocket-Key before its encoding.
	nonceSize = 16
)

// shakeHands answers the handshake of r. It returns the connection and the bytes that the client has sent after its request. If the
// handshake is invalid, it answers with the error and returns it.
func shakeHands(w http.ResponseWriter, r *http.Request) (net.Conn, []byte, error) {
	code, err := checkHandshake(w.Header(), r)
	hijacker := hijackerOf(w)
	if err == nil && hijacker == nil {
		code, err = http.StatusNotImplemented, errors.New(http.StatusText(http.StatusNotImplemented))
	}
	if err != nil {
		http.Error(w, err.Error(), code)
		return nil, nil, err
	}
	digest := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + handshakeGUID))
	w.Header().Set("Upgrade", "websocket")
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Sec-WebSocket-Accept", base64.StdEncoding.EncodeToString(digest[:]))
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, buffers, err := hijacker.Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("socket: hijack: %w", err)
	}
	prefix, err := buffers.Reader.Peek(buffers.Reader.Buffered())
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("socket: hijack: %w", err), conn.Close())
	}
	return conn, slices.Clone(prefix), nil
}

// checkHandshake returns the status and the error for a client whose request is an invalid handshake. It sets the headers of that
// response.
func checkHandshake(header http.Header, r *http.Request) (code int, _ error) {
	if !r.ProtoAtLeast(1, 1) {
		return http.StatusUpgradeRequired, fmt.Errorf("WebSocket protocol violation: handshake request must be at least HTTP/1.1: %q", r.Proto)
	}
	for _, required := range [...]struct{ name, word string }{{"Connection", "Upgrade"}, {"Upgrade", "websocket"}} {
		if name, word := required.name, required.word; !hasWord(r.Header.Values(name), word) {
			header.Set("Connection", "Upgrade")
			header.Set("Upgrade", "websocket")
			return http.StatusUpgradeRequired, fmt.Errorf("WebSocket protocol violation: %s header %q does not contain %s", name, r.Header.Get(name), word)
		}
	}
	if r.Method != http.MethodGet {
		return http.StatusMethodNotAllowed, fmt.Errorf("WebSocket protocol violation: handshake request method is not GET but %q", r.Method)
	}
	if version := r.Header.Get("Sec-WebSocket-Version"); version != "13" {
		header.Set("Sec-WebSocket-Version", "13")
		return http.StatusBadRequest, fmt.Errorf("unsupported WebSocket protocol version (only 13 is supported): %q", version)
	}
	keys := r.Header.Values("Sec-WebSocket-Key")
	switch len(keys) {
	case 0:
		return http.StatusBadRequest, errors.New("WebSocket protocol violation: missing Sec-WebSocket-Key")
	case 1:
	default:
		return http.StatusBadRequest, errors.New("WebSocket protocol violation: multiple Sec-WebSocket-Key headers")
	}
	if nonce, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[0])); err != nil || len(nonce) != nonceSize {
		return http.StatusBadRequest, fmt.Errorf("WebSocket protocol violation: invalid Sec-WebSocket-Key %q, must be a 16 byte base64 encoded string", keys[0])
	}
	return 0, nil
}

// hasWord reports whether a header's list contains a word.
func hasWord(values []string, word string) bool {
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(item), word) {
				return true
			}
		}
	}
	return false
}

// hijackerOf returns the first hijacker among a response writer and those that it wraps, or nil.
func hijackerOf(w http.ResponseWriter) http.Hijacker {
	for {
		switch v := w.(type) {
		case http.Hijacker:
			return v
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return nil
		}
	}
}
