package note

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/process"
	"github.com/leat-dev/leat/internal/voice"
)

const (
	// maxLength is the longest note in both directions. An answer that takes longer to say ends there.
	maxLength = 10 * time.Minute
	// convertLimit is how long a conversion may take. Ten minutes of audio take about 4 s.
	convertLimit = time.Minute
	// maxRunning is how many conversions run at once. Others wait.
	maxRunning = 2
)

// codec converts audio with opus-tools. It is safe for concurrent use.
type codec struct {
	log              *slog.Logger
	encoder, decoder string        // paths of the programs
	slots            chan struct{} // one for each running conversion
}

// newCodec returns a codec, or errNoCodec.
func newCodec(log *slog.Logger) (*codec, error) {
	c := &codec{log: log, slots: make(chan struct{}, maxRunning)}
	for name, path := range map[string]*string{"opusenc": &c.encoder, "opusdec": &c.decoder} {
		program, err := process.Find([]string{name})
		if err != nil {
			return nil, errNoCodec
		}
		*path = program
	}
	return c, nil
}

// encode returns PCM at [voice.SpeechRate] as a voice note. 32 kbit/s is what chat apps use for speech.
func (c *codec) encode(ctx context.Context, pcm []byte) ([]byte, error) {
	args := []string{
		"opusenc", "--quiet", "--raw", "--raw-bits", "16", "--raw-chan", "1", "--raw-rate", strconv.Itoa(voice.SpeechRate), "--raw-endianness", "0",
		"--speech", "--bitrate", "32", "--discard-comments", "--padding", "0", "-", "-",
	}
	return c.convert(ctx, c.encoder, args, pcm, len(pcm)+4096)
}

// decode returns a voice note as PCM at [voice.MicrophoneRate].
func (c *codec) decode(ctx context.Context, note []byte) ([]byte, error) {
	channels := channelsOf(note)
	if channels != 1 && channels != 2 {
		return nil, errFormat
	}
	args := []string{"opusdec", "--quiet", "--rate", strconv.Itoa(voice.MicrophoneRate), "--no-dither", "-", "-"}
	pcm, err := c.convert(ctx, c.decoder, args, note, channels*2*voice.MicrophoneRate*int(maxLength/time.Second))
	if err != nil || channels == 1 {
		return pcm, err
	}
	return mono(pcm), nil
}

// channelsOf returns how many channels a note has, or 0 if it isn't Ogg Opus. The first page has only the header "OpusHead", in one segment
// (RFC 7845, section 3).
func channelsOf(note []byte) int {
	const segment = 28 // the offset of the first segment: 27 bytes and one length
	if len(note) < segment+10 || !bytes.HasPrefix(note, []byte("OggS")) || !bytes.HasPrefix(note[segment:], []byte("OpusHead")) {
		return 0
	}
	return int(note[segment+9])
}

// mono returns the mean of two channels.
func mono(pcm []byte) []byte {
	mixed := make([]byte, 0, len(pcm)/2)
	for ; len(pcm) >= 4; pcm = pcm[4:] {
		first, second := int16(binary.LittleEndian.Uint16(pcm)), int16(binary.LittleEndian.Uint16(pcm[2:]))
		mixed = binary.LittleEndian.AppendUint16(mixed, uint16((int(first)+int(second))/2))
	}
	return mixed
}

// convert runs a program and returns its output, which has at most maxOutput bytes.
func (c *codec) convert(ctx context.Context, path string, args []string, input []byte, maxOutput int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, convertLimit)
	defer cancel()
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-c.slots }()
	p, err := process.Start(process.Program{Path: path, Command: args, Env: process.Environment(nil)})
	if err != nil {
		return nil, fmt.Errorf("note: %s: %w", args[0], err)
	}
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	aside := &process.Aside{Log: c.log}
	var pipes sync.WaitGroup
	pipes.Go(func() { p.WriteInput(input) })
	pipes.Go(func() { aside.ReadAll(p.Stderr) })
	var output bytes.Buffer
	n, copyErr := io.Copy(&output, io.LimitReader(p.Stdout, int64(maxOutput)+1))
	if copyErr != nil || n > int64(maxOutput) {
		p.Kill()
	}
	<-p.ExitDone()
	p.Close(pipes.Wait)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("note: %s: %w", args[0], context.Cause(ctx))
	case n > int64(maxOutput):
		return nil, errTooLong
	case copyErr != nil:
		return nil, fmt.Errorf("note: %s: %w", args[0], copyErr)
	case p.Err() != nil:
		return nil, fmt.Errorf("note: %s: %w: %s", args[0], p.Err(), aside.Last())
	}
	return output.Bytes(), nil
}
