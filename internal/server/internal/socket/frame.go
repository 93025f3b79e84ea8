package socket

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// opcode is the kind of a frame (RFC 6455, section 5.2).
type opcode byte

const (
	opContinuation opcode = 0x0
	opText         opcode = 0x1
	opBinary       opcode = 0x2
	opClose        opcode = 0x8
	opPing         opcode = 0x9
	opPong         opcode = 0xA
)

// isControl reports whether frames of this kind may be between the frames of a message.
func (op opcode) isControl() bool { return op&0x8 != 0 }

const (
	finBit      = 0x80 // of the first byte: the last frame of a message
	reservedBit = 0x70 // of the first byte: extensions, of which none was negotiated
	maskBit     = 0x80 // of the second byte: the payload is masked
	// maxControl is the length in bytes of the longest payload of a control frame.
	maxControl = 125
	// maxHead is the length in bytes of the longest head of a client's frame.
	maxHead = 14
)

// appendFrame appends a frame that is a whole message.
func appendFrame(b []byte, op opcode, payload []byte) []byte {
	b = slices.Grow(b, maxHead+len(payload))
	b = append(b, finBit|byte(op))
	switch n := len(payload); {
	case n <= maxControl:
		b = append(b, byte(n))
	case n <= 0xFFFF:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, payload...)
}

// appendClose appends a close frame. The code 0 means a frame without a code.
func appendClose(b []byte, code websocket.StatusCode, reason string) []byte {
	if code == 0 {
		return appendFrame(b, opClose, nil)
	}
	payload := binary.BigEndian.AppendUint16(make([]byte, 0, maxControl), uint16(code))
	return appendFrame(b, opClose, append(payload, reason[:min(len(reason), maxControl-2)]...))
}

// parseClose returns the code and the reason of a client's close frame. The code is 0 if the frame has none.
func parseClose(payload []byte) (code websocket.StatusCode, reason string, _ *violation) {
	if len(payload) == 0 {
		return 0, "", nil
	}
	if len(payload) == 1 {
		return 0, "", &violation{websocket.StatusProtocolError, "half a close code"}
	}
	code = websocket.StatusCode(binary.BigEndian.Uint16(payload))
	switch {
	case code >= 3000 && code < 5000:
	case code < websocket.StatusNormalClosure, code > websocket.StatusBadGateway,
		code == 1004, code == websocket.StatusNoStatusRcvd, code == websocket.StatusAbnormalClosure:
		return 0, "", &violation{websocket.StatusProtocolError, "invalid close code"}
	}
	if !utf8.Valid(payload[2:]) {
		return 0, "", &violation{websocket.StatusInvalidFramePayloadData, "close reason is not UTF-8"}
	}
	return code, string(payload[2:]), nil
}
