package speech

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/pcm"
)

// sniffSize is how much of an answer is read before its format is decided, in bytes. A WAV header is recognized by 12.
const sniffSize = 12

// formatError says that an answer isn't usable audio.
type formatError struct{ text string }

// Error implements error.
func (e *formatError) Error() string { return "speech: " + e.text }

// decoder returns the samples of an answer at the rate of voices. It decides about the format when the first bytes arrive: a raw answer at
// the rate of its content type, or a WAV file at the rate of its header.
type decoder struct {
	src         io.Reader
	contentType string
	// audio is nil before the first read.
	audio io.Reader
	// err is the error of the beginning. It is returned again by later reads.
	err error
}

// Read implements [io.Reader].
func (d *decoder) Read(p []byte) (int, error) {
	if d.audio == nil && d.err == nil {
		d.audio, d.err = open(bufio.NewReader(d.src), d.contentType)
	}
	if d.err != nil {
		return 0, d.err
	}
	return d.audio.Read(p)
}

// open returns the samples of an answer.
func open(src *bufio.Reader, contentType string) (io.Reader, error) {
	// Peek blocks until enough has arrived. 12 bytes are a quarter of a millisecond, so this adds no latency.
	start, err := src.Peek(sniffSize)
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case len(start) == 0:
		return nil, &formatError{"the answer has no audio"}
	case pcm.HasHeader(start):
		return openWAV(src)
	}
	rate, err := rawRate(start, contentType)
	if err != nil {
		return nil, err
	}
	return reader(src, rate)
}

// openWAV returns the samples of a WAV file.
func openWAV(src io.Reader) (io.Reader, error) {
	h, err := pcm.ReadHeader(src)
	if err != nil {
		if errors.Is(err, pcm.ErrFormat) || errors.Is(err, pcm.ErrRate) {
			return nil, &formatError{err.Error()}
		}
		return nil, err
	}
	if h.Size >= 0 {
		src = &exact{src: src, remaining: h.Size}
	}
	return reader(src, h.Rate)
}

// reader resamples PCM to the rate of voices.
func reader(src io.Reader, rate int) (io.Reader, error) {
	r, err := pcm.NewReader(src, rate, voice.SpeechRate)
	if err != nil {
		return nil, &formatError{err.Error()}
	}
	return r, nil
}

// exact reads an announced number of bytes. What follows, such as the titles at the end of a WAV file, isn't audio.
type exact struct {
	src       io.Reader
	remaining int64
}

// Read implements [io.Reader]. If the source ends early, the error is io.ErrUnexpectedEOF.
func (e *exact) Read(p []byte) (int, error) {
	if e.remaining == 0 {
		return 0, io.EOF
	}
	n, err := e.src.Read(p[:min(int64(len(p)), e.remaining)])
	e.remaining -= int64(n)
	if err == io.EOF && e.remaining > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// magic are the beginnings of files in other formats.
var magic = map[string]string{"ID3": "MP3", "OggS": "Ogg", "fLaC": "FLAC", "\x1aE\xdf\xa3": "WebM", `{"`: "JSON", "<!": "HTML"}

// rawRate returns the sample rate of an answer without header, from a content type such as "audio/pcm;rate=24000".
func rawRate(start []byte, contentType string) (int, error) {
	for prefix, name := range magic {
		if bytes.HasPrefix(start, []byte(prefix)) {
			return 0, &formatError{"the answer is " + name}
		}
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil { // missing or malformed
		return voice.SpeechRate, nil
	}
	isFrame := len(start) > 1 && start[0] == 0xff && start[1]&0xe0 == 0xe0 // of MP3
	switch {
	case strings.HasPrefix(kind, "text/"), kind == "application/json", strings.Contains(kind, "law"), kind == "audio/basic":
		return 0, &formatError{"the answer is " + kind}
	case isFrame && (kind == "audio/mpeg" || kind == "audio/mp3"): // some services call all audio by this name
		return 0, &formatError{"the answer is MP3"}
	case params["channels"] != "" && params["channels"] != "1":
		return 0, &formatError{fmt.Sprintf("the answer has %q channels", params["channels"])}
	case params["rate"] == "":
		return voice.SpeechRate, nil
	}
	rate, err := strconv.Atoi(params["rate"])
	if err != nil {
		return 0, &formatError{fmt.Sprintf("the answer has a sample rate of %q", params["rate"])}
	}
	return rate, nil
}
