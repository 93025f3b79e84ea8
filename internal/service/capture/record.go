package capture

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
)

// A segment is a sequence of records: length and checksum of the payload, kind, number of the turn, time, payload. Numbers are
// little-endian.
const headerSize = 4 + 4 + 1 + 8 + 8

// maxPayload limits the payload of a record, in bytes. A longer one is split into several records.
const maxPayload = 1 << 20

// The kinds of records. They are stored, so their values must not change.
const (
	recordBlank    byte = iota // overwritten by Forget
	recordBegin                // a Meta as JSON; the first record of a turn in each segment
	recordStream               // a dialect; the received bytes that follow are a body in it
	recordSent                 // bytes sent to the upstream
	recordReceived             // bytes received from the upstream
	recordLost                 // the number of lost bytes, in decimal
	recordMore                 // continues the payload of the turn's previous record
	recordEnd                  // the agent returned
	recordMessages             // a dialect; each received record that follows is a whole message in it
	recordFailed               // the reason why the turn failed, one line
)

// header precedes the payload of each record. The checksum doesn't cover the header: a changed header makes the record invalid
// or unknown.
type header struct {
	length int
	crc    uint32
	kind   byte
	turn   uint64
	at     int64 // epoch milliseconds
}

var table = crc32.MakeTable(crc32.Castagnoli)

// appendRecord appends an encoded record to b.
func appendRecord(b []byte, kind byte, turn uint64, at int64, payload []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, table))
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint64(b, turn)
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	return append(b, payload...)
}

// next decodes the first record of b and returns its total size. ok is false if b begins with an incomplete or invalid record.
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

// intact reports whether the payload matches the checksum of its record. It doesn't for bytes that changed on the disk, and while Forget
// overwrites the record.
func (h *header) intact(payload []byte) bool { return crc32.Checksum(payload, table) == h.crc }

// meta decodes the payload of a begin record.
func meta(payload []byte) (m Meta) {
	_ = json.Unmarshal(payload, &m) // Written by add, and its checksum matched.
	return m
}
