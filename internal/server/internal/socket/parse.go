package socket

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// violation is how a client broke the protocol, as the close frame reports it.
type violation struct {
	code   websocket.StatusCode
	reason string
}

func (v *violation) Error() string { return "socket: client broke the protocol: " + v.reason }

// message is a text or binary message, or a control frame.
type message struct {
	op opcode
	// Valid until the next call of the parser.
	payload []byte
}

// parser finds messages in the bytes of a client, however they are split. It needs memory only for a message that has arrived in part.
// After a violation it must not be used any more.
type parser struct {
	// Of the payload of a message, in bytes.
	limit int64

	// Of the current frame.
	head [maxHead]byte
	// How many bytes of it have arrived.
	headSize uint8
	// The head is complete.
	inside bool

	op  opcode
	fin bool
	// The kind of the message whose first frame has arrived, or 0.
	kind opcode
	// For the next byte of the payload.
	mask [4]byte
	// Bytes of the frame's payload that have not arrived.
	unread int64
	// The payload of that message so far.
	data []byte
	// The payload of a control frame that has arrived in part.
	control []byte
}

// parse takes bytes from b, up to the end of a message at most. It returns how many it has taken and the message, if one is complete.
// It changes b.
func (p *parser) parse(b []byte) (n int, m message, complete bool, _ *violation) {
	if !p.inside {
		var v *violation
		n, v = p.parseHead(b)
		if v != nil || !p.inside {
			return n, m, false, v
		}
		b = b[n:]
	}
	size := int(min(int64(len(b)), p.unread))
	payload := b[:size]
	p.unmask(payload)
	n += size
	p.unread -= int64(size)
	if p.op.isControl() {
		m, complete = p.addControl(payload)
		return n, m, complete, nil
	}
	m, complete, v := p.addData(payload)
	return n, m, complete, v
}

// addControl adds a piece of a control frame's payload. It returns the frame when that is complete.
func (p *parser) addControl(payload []byte) (m message, complete bool) {
	if p.unread > 0 || len(p.control) > 0 {
		p.control = append(p.control, payload...)
		payload = p.control
	}
	if p.unread > 0 {
		return m, false
	}
	p.inside, p.control = false, nil
	return message{p.op, payload}, true
}

// addData adds a piece of a message's payload. It returns the message when that is complete.
func (p *parser) addData(payload []byte) (m message, complete bool, _ *violation) {
	end := p.unread == 0 && p.fin
	if !end || len(p.data) > 0 {
		p.data = append(p.data, payload...)
		payload = p.data
	}
	p.inside = p.unread > 0
	if !end {
		return m, false, nil
	}
	m = message{p.kind, payload}
	p.kind, p.data = 0, nil
	if m.op == opText && !utf8.Valid(payload) {
		return m, false, &violation{websocket.StatusInvalidFramePayloadData, "text is not UTF-8"}
	}
	return m, true, nil
}

// parseHead takes bytes from b, up to the end of the frame's head at most.
func (p *parser) parseHead(b []byte) (n int, _ *violation) {
	for n < len(b) {
		p.head[p.headSize] = b[n]
		p.headSize++
		n++
		if p.headSize == 2 {
			if v := p.check(); v != nil {
				return n, v
			}
		}
		if p.headSize < 2 || int(p.headSize) < p.headLength() {
			continue
		}
		v := p.begin()
		p.headSize, p.inside = 0, true
		return n, v
	}
	return n, nil
}

// headLength returns the length of the frame's head. The first two bytes must have arrived.
func (p *parser) headLength() int {
	switch p.head[1] &^ maskBit {
	case 126:
		return 2 + 2 + 4
	case 127:
		return 2 + 8 + 4
	}
	return 2 + 4
}

// check checks the first two bytes of a head.
func (p *parser) check() *violation {
	lead, size := p.head[0], p.head[1]
	p.op, p.fin = opcode(lead&0x0F), lead&finBit != 0
	reason := ""
	switch {
	case lead&reservedBit != 0:
		reason = "reserved bits are set"
	case size&maskBit == 0:
		reason = "frame is not masked"
	case p.op.isControl() && !p.fin:
		reason = "control frame is fragmented"
	case p.op.isControl() && size&^maskBit > maxControl:
		reason = "control frame is too long"
	case p.op == opContinuation && p.kind == 0:
		reason = "continuation without a message"
	case (p.op == opText || p.op == opBinary) && p.kind != 0:
		reason = "message inside another one"
	case p.op > opBinary && p.op < opClose, p.op > opPong:
		reason = "unknown opcode"
	default:
		return nil
	}
	return &violation{websocket.StatusProtocolError, reason}
}

// begin reads the length and the mask of a complete head.
func (p *parser) begin() *violation {
	end := p.headLength()
	switch length := p.head[1] &^ maskBit; length {
	case 126:
		p.unread = int64(binary.BigEndian.Uint16(p.head[2:]))
	case 127:
		size := binary.BigEndian.Uint64(p.head[2:])
		if size>>63 != 0 {
			return &violation{websocket.StatusProtocolError, "invalid length"}
		}
		p.unread = int64(size)
	default:
		p.unread = int64(length)
	}
	p.mask = [4]byte(p.head[end-4 : end])
	if p.op.isControl() {
		return nil
	}
	if p.unread > p.limit-int64(len(p.data)) {
		return &violation{websocket.StatusMessageTooBig, "message is too large"}
	}
	if p.op != opContinuation {
		p.kind = p.op
	}
	return nil
}

// unmask removes the mask from a piece of a payload.
func (p *parser) unmask(b []byte) {
	mask := binary.LittleEndian.Uint32(p.mask[:])
	wide := uint64(mask)<<32 | uint64(mask)
	n := len(b)
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^wide)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= p.mask[i%4]
	}
	binary.LittleEndian.PutUint32(p.mask[:], bits.RotateLeft32(mask, -8*(n%4)))
}

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
