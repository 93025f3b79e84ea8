package recognition

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/process"
	"github.com/leat-dev/leat/internal/voice"
)

// maxProcesses limits the processes of one recognizer. Each takes about 100 MB.
const maxProcesses = 4

// sphinx runs pocketsphinx_continuous for each utterance. The program reads audio as it comes and prints a text at each pause and at the
// end. Loading its model takes less than half a second, while the person speaks.
type sphinx struct {
	path    string
	options Options
	// slots has an entry for each running process.
	slots chan struct{}
}

var _ voice.Recognizer = (*sphinx)(nil)

// newSphinx finds the program. Whether its model is installed shows in the first utterance.
func newSphinx(o Options) (voice.Recognizer, error) {
	path, err := process.Find([]string{cmp.Or(o.program, "pocketsphinx_continuous")})
	if err != nil {
		return nil, &voice.Failure{Service: "recognition", Engine: o.Engine, Reason: voice.NotInstalled, Detail: "install pocketsphinx (Debian and Ubuntu: apt install pocketsphinx pocketsphinx-en-us)", Err: err}
	}
	s := &sphinx{path: path, options: o, slots: make(chan struct{}, maxProcesses)}
	return s, s.checkEnglish(o.Language)
}

// Close does nothing: a recognizer has processes only while listeners are open.
func (*sphinx) Close() error { return nil }

// checkEnglish refuses all languages but English, because Debian packages only its model.
func (s *sphinx) checkEnglish(language string) error {
	if language != "" && voice.PrimaryLanguage(language) != "en" {
		return &voice.Failure{Service: "recognition", Engine: s.options.Engine, Reason: voice.Rejected, Detail: fmt.Sprintf("it has no model for the language %q, only for English", language)}
	}
	return nil
}

// Listen implements [voice.Recognizer]. A process starts with the first audio of an utterance.
func (s *sphinx) Listen(ctx context.Context, language string) (voice.Listener, error) {
	language, err := s.options.languageOf(language)
	if err == nil {
		err = s.checkEnglish(language)
	}
	if err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return newListener(ctx, s.listen), nil
}

// listen recognizes one utterance after the other.
func (s *sphinx) listen(l *listener) error {
	for {
		next, _, err := l.queue.take(l.ctx, 0)
		if err != nil {
			return err
		}
		result := voice.Result{IsFinal: true, IsEnd: true}
		if !next.isEnd {
			if result.Text, result.IsEnd, err = s.utterance(l, next.audio); err != nil {
				return err
			}
		}
		l.emit(result)
	}
}

// utterance returns the text of an utterance that begins with audio. isEnd is false if the utterance reached its limit.
func (s *sphinx) utterance(l *listener, audio []byte) (text string, isEnd bool, err error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-l.ctx.Done():
		return "", false, context.Cause(l.ctx)
	}
	p, err := process.Start(process.Program{
		Path: s.path, Command: []string{"pocketsphinx_continuous", "-infile", "/dev/stdin"}, Env: process.Environment(nil),
	})
	if err != nil {
		return "", false, &voice.Failure{Service: "recognition", Engine: s.options.Engine, Reason: voice.Unavailable, Err: fmt.Errorf("start: %w", err)}
	}
	defer context.AfterFunc(l.ctx, p.Kill)()
	ctx, cancel := context.WithCancelCause(l.ctx) // ends with the process, so that feed doesn't wait for more audio
	defer cancel(nil)
	aside := &process.Aside{Log: slog.New(slog.DiscardHandler)} // it prints its whole configuration
	var output, pipes sync.WaitGroup
	output.Go(func() { text = readText(l, p.Stdout) })
	pipes.Go(func() { aside.ReadAll(p.Stderr) })
	pipes.Go(func() {
		<-p.ExitDone()
		cancel(process.ErrEnded)
	})
	isEnd, feedErr := feed(ctx, l.queue, p.Stdin, audio)
	if feedErr != nil {
		p.Kill()
	}
	// The audio is complete. The program recognizes about four times as fast as people speak, so it needs little time for the rest.
	timer := time.AfterFunc(s.options.times.answer, p.Kill)
	<-p.ExitDone()
	isLate := !timer.Stop()
	output.Wait()
	p.Close(pipes.Wait)
	f := &voice.Failure{Service: "recognition", Engine: s.options.Engine, Reason: voice.Interrupted, Detail: aside.Last(), Err: cmp.Or(p.Err(), feedErr)}
	switch cause := context.Cause(l.ctx); {
	case cause != nil:
		return "", false, cause
	case isLate:
		f.Reason, f.Detail = voice.Unavailable, fmt.Sprintf("no text within %v", s.options.times.answer)
		return "", false, f
	case f.Err != nil:
		return "", false, f
	}
	return text, isEnd, nil
}

// feed writes the audio of an utterance up to its end or its limit.
func feed(ctx context.Context, q *queue, stdin io.WriteCloser, audio []byte) (isEnd bool, err error) {
	for size := 0; ; {
		if _, err := stdin.Write(audio); err != nil {
			return false, err
		}
		if size += len(audio); size >= maxUtteranceBytes {
			break
		}
		next, _, err := q.take(ctx, 0)
		if err != nil {
			return false, err
		}
		if next.isEnd {
			isEnd = true
			break
		}
		audio = next.audio
	}
	return isEnd, stdin.Close()
}

// readText returns the text that the program prints, a line at each pause. Before the last line the text is still partial.
func readText(l *listener, stdout io.Reader) string {
	text := ""
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		line := strings.TrimSpace(process.Clean(lines.Text()))
		if line == "" || len(text)+len(line) > maxText {
			continue
		}
		text = strings.TrimSpace(text + " " + line)
		l.emit(voice.Result{Text: text})
	}
	return text
}
