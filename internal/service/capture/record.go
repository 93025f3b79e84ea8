package capture

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
)

// A file is a sequence of records: length and checksum of the payload, kind, number of the turn, time, payload. Numbers are
// little-endian.
const headerSize = 4 + 4 + 1 + 8 + 8

// maxPayload bounds a record: what is longer is split.
const maxPayload = 1 << 20

// The kinds of records.
const (
	recordBlank    byte = iota // forgotten
	recordBegin                // a Meta as JSON: the first of a turn in each file
	recordStream               // the name of the dialect in which what follows is received, a body
	recordSent                 // bytes that went to the upstream
	recordReceived             // bytes that came from it
	recordLost                 // how many bytes could not be kept, as text
	recordMore                 // the payload goes on that of the record before it, of the same turn
	recordEnd                  // the agent has returned
	recordMessages             // the name of the dialect in which what follows is received, whole messages
	recordFailed               // why the turn fails, in one line
)

type header struct {
	length int
	crc    uint32
	kind   byte
	turn   uint64
	at     int64 // epoch milliseconds
}

var table = crc32.MakeTable(crc32.Castagnoli)

// appendRecord appends a record.
func appendRecord(b []byte, kind byte, turn uint64, at int64, payload []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, table))
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint64(b, turn)
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	return append(b, payload...)
}

// next returns the first record of b and how long it is; ok is false where none is whole.
func next(b []byte) (h header, payload []byte, size int, ok bool) {
	if len(b) < headerSize {
		return h, nil, 0, false
	}
	h = header{
		length: int(binary.LittleEndian.Uint32(b)), crc: binary.LittleEndian.Uint32(b[4:]),
		kind: b[8], turn: binary.LittleEndian.Uint64(b[9:]), at: int64(binary.LittleEndian.Uint64(b[17:])),
	}
	size = headerSize + h.length
	if h.length > maxPayload || h.kind > recordFailed || len(b) < size {
		return h, nil, 0, false
	}
	return h, b[headerSize:size], size, true
}

// intact reports whether a record's payload is what was written.
func (h *header) intact(payload []byte) bool { return crc32.Checksum(payload, table) == h.crc }

// meta reads the payload of a recordBegin.
func meta(payload []byte) (m Meta) {
	_ = json.Unmarshal(payload, &m) // it is ours, and intact
	return m
}
