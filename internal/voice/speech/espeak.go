package speech

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/leat-dev/leat/internal/base/process"
	"github.com/leat-dev/leat/internal/voice"
)

const (
	// maxProcesses limits the processes of one engine. One speaks a sentence in about 15 ms, so more of them would only share the processors.
	maxProcesses = 8
	// maxBuffered limits the audio of one utterance that waits in memory, in bytes: 95 s at 22,050 Hz. Beyond it the process waits.
	maxBuffered = 4 << 20
	// normalWords is the normal rate of espeak-ng, in words per minute.
	normalWords = 175
)

// espeak runs espeak-ng for each utterance. The text goes to its standard input, and no shell is involved, so a text can't become
// an option or a command.
type espeak struct {
	path    string
	options Options
	// voices are those of the installed version, which differ between versions and packages.
	voices voices
	// slots has an entry for each running process.
	slots chan struct{}
}

var _ voice.Engine = (*espeak)(nil)

// newEspeak finds the program and asks it for its voices, which takes about 10 ms and shows that it runs.
func newEspeak(o Options) (voice.Engine, error) {
	path, err := process.Find([]string{cmp.Or(o.program, "espeak-ng")})
	if err != nil {
		return nil, &voice.Failure{Service: "speech", Engine: o.Engine, Reason: voice.NotInstalled, Detail: "install espeak-ng (Debian and Ubuntu: apt install espeak-ng)", Err: err}
	}
	e := &espeak{path: path, options: o, slots: make(chan struct{}, maxProcesses)}
	if e.voices, err = e.listVoices(); err != nil {
		return nil, err
	}
	// A wrong voice or language of the configuration is an error now, not in the first answer.
	if _, err := e.voiceFor(voice.Utterance{}); err != nil {
		return nil, err
	}
	return e, nil
}

// Speak implements [voice.Engine]. It waits while maxProcesses others run.
func (e *espeak) Speak(ctx context.Context, u voice.Utterance) (io.ReadCloser, error) {
	name, err := e.voiceFor(u)
	if err != nil {
		return nil, err
	}
	text := readable(u.Text)
	if text == "" {
		return io.NopCloser(strings.NewReader("")), nil
	}
	// The voice follows -v as a separate argument and was checked, so it can't become an option either. -b 1 is UTF-8.
	args := []string{"-v", name, "-b", "1", "--stdin", "--stdout"}
	if e.options.Speed != 0 {
		args = append(args, "-s", strconv.Itoa(int(normalWords*e.options.Speed)))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r, err := e.start(ctx, args, text)
	if err != nil {
		cancel(err)
		return nil, err
	}
	return newStream(e.options.Engine, &source{ctx: ctx, cancel: cancel, body: r, stall: e.options.stall}, ""), nil
}

// listVoices returns the voices of the installed program.
func (e *espeak) listVoices() (voices, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), e.options.stall, errStalled)
	defer cancel()
	r, err := e.start(ctx, []string{"--voices"}, "")
	if err != nil {
		return nil, err
	}
	list, err := io.ReadAll(r)
	_ = r.Close()
	if err == nil && len(list) == 0 {
		err = errors.New("it lists no voices")
	}
	if err != nil {
		if f, ok := errors.AsType[*voice.Failure](err); ok {
			return nil, f
		}
		return nil, &voice.Failure{Service: "speech", Engine: e.options.Engine, Reason: voice.Unavailable, Err: err}
	}
	return parseVoices(string(list)), nil
}

// readable removes from a text what espeak-ng would take for commands: control characters, which change the voice or end the text, and
// [[ ]], which encloses phonemes. It returns "" if nothing remains.
func readable(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return ' '
		}
		return r
	}, text)
	return strings.TrimSpace(strings.ReplaceAll(text, "[[", "[ ["))
}
