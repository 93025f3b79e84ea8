package socket

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// clientFrame returns a frame as a client sends it, with any first byte.
func clientFrame(first byte, payload string) []byte {
	mask := [4]byte{0x12, 0x34, 0x56, 0x78}
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, maskBit|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, maskBit|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, maskBit|127), uint64(n))
	}
	b = append(b, mask[:]...)
	for i := range len(payload) {
		b = append(b, payload[i]^mask[i%4])
	}
	return b
}

// parseAll parses the bytes in pieces whose sizes size returns, and describes the messages and the violation.
func parseAll(b []byte, limit int64, size func(rest int) int) (found []string) {
	p := parser{limit: limit}
	for b = slices.Clone(b); len(b) > 0; {
		piece := b[:size(len(b))]
		b = b[len(piece):]
		for len(piece) > 0 {
			n, m, complete, v := p.parse(piece)
			if v != nil {
				return append(found, fmt.Sprintf("%d %s", v.code, v.reason))
			}
			piece = piece[n:]
			if complete {
				found = append(found, fmt.Sprintf("%x %q", byte(m.op), m.payload))
			}
		}
	}
	return found
}

func whole(rest int) int { return rest }

func single(int) int { return 1 }

func TestParse(t *testing.T) {
	const text, continuation, last = 0x81, 0x00, 0x80
	long := strings.Repeat("ä", 40_000)
	huge := append([]byte{text, maskBit | 127, 0x80}, make([]byte, 11)...)
	for name, test := range map[string]struct {
		in   [][]byte
		want []string
	}{
		"text":                   {[][]byte{clientFrame(text, "hello")}, []string{`1 "hello"`}},
		"empty":                  {[][]byte{clientFrame(text, "")}, []string{`1 ""`}},
		"binary":                 {[][]byte{clientFrame(0x82, "\xff")}, []string{`2 "\xff"`}},
		"126 bytes":              {[][]byte{clientFrame(text, strings.Repeat("x", 126))}, []string{fmt.Sprintf("1 %q", strings.Repeat("x", 126))}},
		"80,000 bytes":           {[][]byte{clientFrame(text, long)}, []string{fmt.Sprintf("1 %q", long)}},
		"fragments":              {[][]byte{clientFrame(0x01, "a\xc3"), clientFrame(continuation, ""), clientFrame(last, "\xa4b")}, []string{`1 "aäb"`}},
		"ping between":           {[][]byte{clientFrame(0x01, "a"), clientFrame(0x89, "p"), clientFrame(last, "b")}, []string{`9 "p"`, `1 "ab"`}},
		"longest ping":           {[][]byte{clientFrame(0x89, strings.Repeat("x", 125))}, []string{fmt.Sprintf("9 %q", strings.Repeat("x", 125))}},
		"pong, close":            {[][]byte{clientFrame(0x8A, ""), clientFrame(0x88, "\x03\xe8bye")}, []string{`a ""`, `8 "\x03\xe8bye"`}},
		"at the limit":           {[][]byte{clientFrame(0x01, long), clientFrame(last, strings.Repeat("x", 20_000))}, []string{fmt.Sprintf("1 %q", long+strings.Repeat("x", 20_000))}},
		"not masked":             {[][]byte{{text, 1, 'x'}}, []string{"1002 frame is not masked"}},
		"first reserved bit":     {[][]byte{clientFrame(text|0x40, "x")}, []string{"1002 reserved bits are set"}},
		"second reserved bit":    {[][]byte{clientFrame(text|0x20, "x")}, []string{"1002 reserved bits are set"}},
		"third, in a ping":       {[][]byte{clientFrame(0x89|0x10, "x")}, []string{"1002 reserved bits are set"}},
		"opcode 3":               {[][]byte{clientFrame(0x83, "x")}, []string{"1002 unknown opcode"}},
		"opcode 11":              {[][]byte{clientFrame(0x8B, "x")}, []string{"1002 unknown opcode"}},
		"fragmented ping":        {[][]byte{clientFrame(0x09, "x")}, []string{"1002 control frame is fragmented"}},
		"long ping":              {[][]byte{clientFrame(0x89, strings.Repeat("x", 126))}, []string{"1002 control frame is too long"}},
		"long close":             {[][]byte{clientFrame(0x88, long)}, []string{"1002 control frame is too long"}},
		"nothing to continue":    {[][]byte{clientFrame(last, "x")}, []string{"1002 continuation without a message"}},
		"continued twice":        {[][]byte{clientFrame(0x01, ""), clientFrame(last, ""), clientFrame(last, "")}, []string{`1 ""`, "1002 continuation without a message"}},
		"message in another":     {[][]byte{clientFrame(0x01, "x"), clientFrame(text, "y")}, []string{"1002 message inside another one"}},
		"length with a sign":     {[][]byte{huge}, []string{"1002 invalid length"}},
		"too large":              {[][]byte{clientFrame(text, strings.Repeat("x", 100_001))}, []string{"1009 message is too large"}},
		"too large in fragments": {[][]byte{clientFrame(0x01, long), clientFrame(last, strings.Repeat("x", 20_001))}, []string{"1009 message is too large"}},
		"not UTF-8":              {[][]byte{clientFrame(text, "\xff")}, []string{"1007 text is not UTF-8"}},
		"half a letter":          {[][]byte{clientFrame(0x01, "\xc3"), clientFrame(last, "")}, []string{"1007 text is not UTF-8"}},
		"a surrogate":            {[][]byte{clientFrame(text, "\xed\xa0\x80")}, []string{"1007 text is not UTF-8"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := bytes.Join(test.in, nil)
			for _, size := range []func(int) int{whole, single} {
				if got := parseAll(in, 100_000, size); !slices.Equal(got, test.want) {
					t.Errorf("got %.200q, want %.200q", got, test.want)
				}
			}
		})
	}
}

func TestParseClose(t *testing.T) {
	for payload, want := range map[string]websocket.StatusCode{
		"": 0, "\x03\xe8": 1000, "\x03\xe9reason": 1001, "\x03\xf6": 1014, "\x0b\xb8": 3000, "\x13\x87": 4999,
		"x": -1002, "\x00\x00": -1002, "\x03\xe7": -1002, "\x03\xec": -1002, "\x03\xed": -1002, "\x03\xee": -1002, "\x03\xf7": -1002,
		"\x0b\xb7": -1002, "\x13\x88": -1002, "\xff\xff": -1002, "\x03\xe8\xff": -1007,
	} {
		code, reason, v := parseClose([]byte(payload))
		if v != nil {
			code = -v.code
		}
		if code != want || v == nil && len(payload) > 2 && reason != payload[2:] {
			t.Errorf("%q: %d %q, want %d", payload, code, reason, want)
		}
		if v == nil {
			want := append([]byte{0x88, byte(len(payload))}, payload...)
			if got := appendClose(nil, code, reason); !bytes.Equal(got, want) {
				t.Errorf("%q is written as %q", payload, got)
			}
		}
	}
}

// FuzzParse checks that the messages don't depend on how the bytes are split, and that no message is above the limit.
func FuzzParse(f *testing.F) {
	f.Add(slices.Concat(clientFrame(0x01, "one"), clientFrame(0x89, "ping"), clientFrame(0x80, "two"), clientFrame(0x88, "\x03\xe8")), []byte{3, 1, 7})
	f.Add(clientFrame(0x81, strings.Repeat("x", 200)), []byte{1, 1, 1, 1, 1})
	f.Add([]byte{0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0, 9, 1, 2, 3, 4}, []byte{2})
	f.Fuzz(func(t *testing.T, in, sizes []byte) {
		const limit = 150
		want := parseAll(in, limit, whole)
		at := 0
		random := func(rest int) int {
			if len(sizes) == 0 {
				return rest
			}
			at++
			return min(rest, 1+int(sizes[at%len(sizes)]))
		}
		for _, size := range []func(int) int{single, random} {
			if got := parseAll(in, limit, size); !slices.Equal(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		for _, m := range want {
			if len(m) > 4*limit+10 {
				t.Fatalf("a message of %d characters", len(m))
			}
		}
	})
}
