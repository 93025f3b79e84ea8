package recognition

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/pcm"
)

// sphinxOrSkip makes a recognizer with the installed pocketsphinx.
func sphinxOrSkip(t testing.TB) voice.Recognizer {
	t.Helper()
	if _, err := osexec.LookPath("pocketsphinx_continuous"); err != nil {
		t.Skip("SKIPPED: pocketsphinx is not installed: apt-get install pocketsphinx pocketsphinx-en-us")
	}
	r, err := New(Options{Engine: "pocketsphinx", Language: "en-US"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// spoken returns a text as espeak-ng speaks it, for a microphone.
func spoken(t testing.TB, text string) []byte {
	t.Helper()
	if _, err := osexec.LookPath("espeak-ng"); err != nil {
		t.Skip("SKIPPED: espeak-ng is not installed: apt-get install espeak-ng")
	}
	cmd := osexec.Command("espeak-ng", "-v", "en-us", "--stdin", "--stdout")
	cmd.Stdin = strings.NewReader(text)
	wav, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	src := bytes.NewReader(wav)
	h, err := pcm.ReadHeader(src)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcm.NewReader(src, h.Rate, voice.MicrophoneRate)
	if err != nil {
		t.Fatal(err)
	}
	audio, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return audio
}

// write20 writes audio in frames of 20 ms, and ends the utterance.
func write20(t testing.TB, l voice.Listener, audio []byte) {
	t.Helper()
	for frame := range slices.Chunk(audio, 640) {
		if err := l.Write(frame); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.EndUtterance(); err != nil {
		t.Fatal(err)
	}
}

// children returns the ids of this process's children, or skips the test on systems without /proc.
func children(t testing.TB) []string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: needs Linux: processes are listed in /proc")
	}
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err == nil { // otherwise the thread has ended
			ids = append(ids, strings.Fields(string(b))...)
		}
	}
	return ids
}

// The words of a synthetic voice are recognized badly, so the test needs only some text. BenchmarkSphinx measures how badly.
func TestSphinx(t *testing.T) {
	r := sphinxOrSkip(t)
	l, err := r.Listen(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	write20(t, l, spoken(t, "stop the music"))
	write20(t, l, make([]byte, 32_000))
	if err := l.EndUtterance(); err != nil {
		t.Fatal(err)
	}
	got := finals(t, l, 3)
	if got[0] == "" || got[2] != "" {
		t.Errorf("%q", got)
	}
	t.Logf("%q", got)
	if ids := children(t); len(ids) != 0 {
		t.Errorf("processes %v are left after the texts", ids)
	}
}

// Close kills the process while it loads, listens or recognizes.
func TestSphinxClose(t *testing.T) {
	r := sphinxOrSkip(t)
	audio := bytes.Repeat(speech(16_000), 5)
	enough := errors.New("enough")
	for i := range 6 {
		ctx, cancel := context.WithCancelCause(t.Context())
		l, err := r.Listen(ctx, "en")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Write(audio); err != nil {
			t.Fatal(err)
		}
		if i%3 == 1 {
			_ = l.EndUtterance()
		}
		time.Sleep(time.Duration(i) * 50 * time.Millisecond) // to meet several states; nothing depends on which
		if i%3 == 2 {
			cancel(enough)
			if err := failureOf(t, l); !errors.Is(err, enough) {
				t.Errorf("%v", err)
			}
		}
		begin := time.Now()
		_ = l.Close()
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("Close took %v", d)
		}
		if ids := children(t); len(ids) != 0 {
			t.Errorf("processes %v are left", ids)
		}
		cancel(nil)
	}
}

func TestSphinxLanguages(t *testing.T) {
	r := sphinxOrSkip(t)
	for _, language := range []string{"de", "fr-CA", "eng"} {
		_, err := r.Listen(t.Context(), language)
		if f, ok := errors.AsType[*voice.Failure](err); !ok || f.Reason != voice.Rejected || !strings.Contains(err.Error(), "only for English") {
			t.Errorf("%s: %v", language, err)
		}
	}
	if _, err := New(Options{Engine: "pocketsphinx", Language: "de"}); err == nil {
		t.Error("a configured language without a model was accepted")
	}
}

func TestSphinxFaults(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: needs a Unix shell: the fake program is a script")
	}
	for name, c := range map[string]struct {
		body   string
		reason voice.Reason // empty for no failure
		text   string       // of the error or the result
	}{
		"texts":             {"cat >/dev/null; echo good; echo; echo ' morning '", "", "good morning"},
		"control character": {"cat >/dev/null; printf 'a\\033[31mb\\n'", "", "a [31mb"},
		"no model":          {"echo 'INFO: x' >&2; echo 'ERROR: acoustic model not found' >&2; exit 1", voice.Interrupted, "acoustic model not found"},
		"crashes":           {"head -c 1000 >/dev/null; kill -SEGV $$", voice.Interrupted, "segmentation fault"},
		"ends early":        {"head -c 1000 >/dev/null; exit 0", voice.Interrupted, ""},
		"hangs":             {"cat >/dev/null; sleep 1000", voice.Unavailable, "no text within"},
		"doesn't read":      {"sleep 1000", voice.Unavailable, "no text within"},
		"leaves a child":    {"cat >/dev/null; sleep 1000 & echo fine", "", "fine"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pocketsphinx_continuous")
			if err := os.WriteFile(file, []byte("#!/bin/sh\n"+c.body+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			var limits times // those that apply outside of tests, because a busy machine takes long to start a shell
			if c.reason == voice.Unavailable {
				limits.answer = 300 * time.Millisecond
			}
			l, err := listen(t, Options{Engine: "pocketsphinx", program: file, times: limits}, "")
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Write(speech(16_000))
			if c.text != "" || c.reason == "" { // the others end before the utterance
				_ = l.EndUtterance()
			}
			if c.reason == "" {
				if got := finals(t, l, 1); got[0] != c.text {
					t.Errorf("%q, want %q", got, c.text)
				}
			} else {
				err := failureOf(t, l)
				if f, ok := errors.AsType[*voice.Failure](err); !ok || f.Reason != c.reason || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%v, want %s", err, c.reason)
				}
			}
			if ids := children(t); len(ids) != 0 {
				t.Errorf("processes %v are left", ids)
			}
		})
	}
}

func TestNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := New(Options{Engine: "pocketsphinx"})
	f, ok := errors.AsType[*voice.Failure](err)
	if !ok || f.Reason != voice.NotInstalled || !strings.Contains(err.Error(), "apt install pocketsphinx") {
		t.Errorf("%v", err)
	}
}

// corpus are the sentences of the benchmark.
var corpus = []string{
	"the weather is nice today", "please open the window", "what time is the next train to london", "i would like a cup of coffee",
	"turn on the lights in the kitchen", "how many people live in this city", "the quick brown fox jumps over the lazy dog",
	"send a message to my brother", "stop the music", "tell me something about the history of rome", "we need more time to finish the project",
	"where did you put the keys", "this is the best book i have read this year", "can you explain the difference between the two",
	"the meeting starts at nine in the morning", "she bought three apples and a loaf of bread", "write a short story about a dragon",
	"my computer does not start any more", "add milk and eggs to the shopping list", "thank you very much for your help",
}

// distance returns how many words have to be replaced, added or removed to get from one text to the other.
func distance(from, to []string) int {
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i, a := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j, b := range to {
			cost := diagonal
			if a != b {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}

// BenchmarkSphinx reports the word error rate for sentences of espeak-ng, and how long an utterance takes if its audio is written at once.
func BenchmarkSphinx(b *testing.B) {
	r := sphinxOrSkip(b)
	l, err := r.Listen(b.Context(), "en")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	wrong, words := 0, 0
	var audio, took time.Duration
	for b.Loop() {
		for _, sentence := range corpus {
			pcm := spoken(b, sentence)
			begin := time.Now()
			write20(b, l, pcm)
			text := finals(b, l, 1)[0]
			took += time.Since(begin)
			audio += time.Duration(len(pcm)) * time.Second / bytesPerSecond
			want := strings.Fields(sentence)
			wrong, words = wrong+distance(want, strings.Fields(text)), words+len(want)
			b.Logf("%q became %q", sentence, text)
		}
	}
	b.ReportMetric(float64(wrong)/float64(words), "word-errors/word")
	b.ReportMetric(took.Seconds()/audio.Seconds(), "s/s-audio")
}
