package pcm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// espeakHeader is what espeak-ng 1.51 writes to a pipe.
var espeakHeader = []byte("RIFF\x24\xf0\xff\x7fWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x22\x56\x00\x00\x44\xac\x00\x00\x02\x00\x10\x00data\x00\xf0\xff\x7f")

// chunk returns a chunk of a WAV file.
func chunk(id string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(id), uint32(len(data)))
	b = append(b, data...)
	if len(data)%2 != 0 {
		b = append(b, 0)
	}
	return b
}

// wave returns a WAV file of chunks.
func wave(chunks ...[]byte) []byte {
	body := append([]byte("WAVE"), bytes.Join(chunks, nil)...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

// formatOf returns the content of a format chunk.
func formatOf(kind, channels, rate, bits int) []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(kind))
	b = binary.LittleEndian.AppendUint16(b, uint16(channels))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate*channels*bits/8))
	b = binary.LittleEndian.AppendUint16(b, uint16(channels*bits/8))
	return binary.LittleEndian.AppendUint16(b, uint16(bits))
}

func TestReadHeader(t *testing.T) {
	samples := []byte{1, 2, 3, 4}
	plain := chunk("fmt ", formatOf(1, 1, 16_000, 16))
	for name, c := range map[string]struct {
		file []byte
		want Header
		rest []byte
		err  error
	}{
		"written here":    {append(AppendHeader(nil, 16_000, 4), samples...), Header{16_000, 4}, samples, nil},
		"espeak-ng":       {append(bytes.Clone(espeakHeader), samples...), Header{22_050, -1}, samples, nil},
		"size 0":          {append(AppendHeader(nil, 24_000, 0), samples...), Header{24_000, -1}, samples, nil},
		"largest size":    {append(AppendHeader(nil, 24_000, -1), samples...), Header{24_000, -1}, samples, nil},
		"title first":     {wave(chunk("LIST", []byte("title")), plain, chunk("data", samples)), Header{16_000, 4}, samples, nil},
		"title between":   {wave(plain, chunk("LIST", []byte("title!")), chunk("data", samples)), Header{16_000, 4}, samples, nil},
		"title after":     {wave(plain, chunk("data", samples), chunk("LIST", nil)), Header{16_000, 4}, append(bytes.Clone(samples), "LIST\x00\x00\x00\x00"...), nil},
		"long format":     {wave(chunk("fmt ", append(formatOf(1, 1, 16_000, 16), 0, 0)), chunk("data", samples)), Header{16_000, 4}, samples, nil},
		"extensible":      {wave(chunk("fmt ", append(formatOf(0xFFFE, 1, 16_000, 16), make([]byte, 24)...)), chunk("data", samples)), Header{16_000, 4}, samples, nil},
		"empty":           {nil, Header{}, nil, errHeader},
		"raw":             {bytes.Repeat(samples, 20), Header{}, nil, errHeader},
		"interrupted":     {espeakHeader[:30], Header{}, nil, errHeader},
		"in a chunk":      {wave(plain, []byte("LIST\x10\x00\x00\x00abc")), Header{}, nil, errHeader},
		"no format":       {wave(chunk("data", samples)), Header{}, nil, errHeader},
		"short format":    {wave(chunk("fmt ", []byte{1, 0, 1, 0})), Header{}, nil, errHeader},
		"enormous chunk":  {wave(plain, []byte("LIST\xff\xff\xff\xff")), Header{}, nil, errHeader},
		"stereo":          {wave(chunk("fmt ", formatOf(1, 2, 16_000, 16)), chunk("data", samples)), Header{}, nil, ErrFormat},
		"8 bits":          {wave(chunk("fmt ", formatOf(1, 1, 16_000, 8)), chunk("data", samples)), Header{}, nil, ErrFormat},
		"floating point":  {wave(chunk("fmt ", formatOf(3, 1, 16_000, 32)), chunk("data", samples)), Header{}, nil, ErrFormat},
		"µ-law":           {wave(chunk("fmt ", formatOf(7, 1, 16_000, 16)), chunk("data", samples)), Header{}, nil, ErrFormat},
		"impossible rate": {wave(chunk("fmt ", formatOf(1, 1, 1, 16)), chunk("data", samples)), Header{}, nil, ErrRate},
	} {
		for _, src := range []io.Reader{bytes.NewReader(c.file), iotest.OneByteReader(bytes.NewReader(c.file))} {
			got, err := ReadHeader(src)
			if !errors.Is(err, c.err) || err == nil && got != c.want {
				t.Errorf("%s: %+v, %v; want %+v, %v", name, got, err, c.want, c.err)
				continue
			}
			if rest, err := io.ReadAll(src); c.err == nil && (err != nil || !bytes.Equal(rest, c.rest)) {
				t.Errorf("%s: the samples are %v (%v), want %v", name, rest, err, c.rest)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := ReadHeader(iotest.ErrReader(broken)); !errors.Is(err, broken) || errors.Is(err, errHeader) {
		t.Errorf("a broken input: %v", err)
	}
}

func TestHasHeader(t *testing.T) {
	if !HasHeader(espeakHeader) || HasHeader(espeakHeader[:11]) || HasHeader([]byte("RIFF....AVI ")) || HasHeader(nil) {
		t.Error("wrong")
	}
}

func FuzzReadHeader(f *testing.F) {
	f.Add(espeakHeader)
	f.Add(AppendHeader(nil, 24_000, 10))
	f.Add(wave(chunk("LIST", []byte("x")), chunk("fmt ", formatOf(1, 1, 16_000, 16)), chunk("data", nil)))
	f.Fuzz(func(t *testing.T, file []byte) {
		src := bytes.NewReader(file)
		h, err := ReadHeader(src)
		if err != nil {
			if !errors.Is(err, errHeader) && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrRate) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		if h.Rate < minRate || h.Rate > maxRate || h.Size < -1 || h.Size == 0 {
			t.Fatalf("%+v", h)
		}
		// The header of the same samples is read back.
		if h.Size > 0 {
			if again, err := ReadHeader(bytes.NewReader(AppendHeader(nil, h.Rate, int(h.Size)))); err != nil || again != h {
				t.Fatalf("%+v, %v; want %+v", again, err, h)
			}
		}
	})
}
