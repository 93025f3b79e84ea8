package speech

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/voice"
)

// espeakOrSkip makes an engine with the installed espeak-ng.
func espeakOrSkip(t testing.TB, o Options) voice.Engine {
	t.Helper()
	if _, err := osexec.LookPath("espeak-ng"); err != nil {
		t.Skip("SKIPPED: espeak-ng is not installed: apt-get install espeak-ng")
	}
	o.Engine = "espeak-ng"
	return newEngine(t, o)
}

// loudness returns the root mean square of samples.
func loudness(pcm []byte) float64 {
	sum := 0.0
	for i := 0; i+1 < len(pcm); i += 2 {
		x := float64(int16(binary.LittleEndian.Uint16(pcm[i:])))
		sum += x * x
	}
	return math.Sqrt(sum / float64(max(1, len(pcm)/2)))
}

// The audio has the length of what the program itself writes, by a calculation that uses nothing of this package.
func TestEspeakLength(t *testing.T) {
	e := espeakOrSkip(t, Options{})
	for _, text := range []string{
		"Hello.", "The quick brown fox jumps over the lazy dog, twice.", strings.Repeat("This is a longer text, with many sentences. ", 8),
	} {
		cmd := osexec.Command("espeak-ng", "-v", "en-us", "--stdin", "--stdout")
		cmd.Stdin = strings.NewReader(text)
		wav, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		rate := binary.LittleEndian.Uint32(wav[24:])
		seconds := float64(len(wav)-44) / 2 / float64(rate)
		audio, err := speak(t, e, voice.Utterance{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		got := float64(len(audio)) / 2 / voice.SpeechRate
		if math.Abs(got-seconds) > 0.02*seconds || loudness(audio) < 500 {
			t.Errorf("%.20q: %.3f s, want %.3f; loudness %.0f", text, got, seconds, loudness(audio))
		}
		if want := (len(wav) - 44) / 2 * voice.SpeechRate / int(rate); len(audio)/2 < want || len(audio)/2 > want+1 {
			t.Errorf("%.20q: %d samples, want %d", text, len(audio)/2, want)
		}
	}
}

// Texts that look like options, phonemes or commands are spoken as texts.
func TestEspeakTexts(t *testing.T) {
	e := espeakOrSkip(t, Options{})
	plain, err := speak(t, e, voice.Utterance{Text: "version"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"--version", "-v de", "-x", `it's a "quoted" $HOME; rm -rf /`, "two\nlines\n\nand a paragraph", "<speak>tags</speak> & more", "[[h@l'oU]] phonemes",
		"\x01200S fast", "before\x00after the end", "100 %", "naïve café", "\xff\xfe broken", "!", "🙂 smile",
	} {
		if audio, err := speak(t, e, voice.Utterance{Text: text}); err != nil || len(audio) < 4_000 {
			t.Errorf("%q: %d bytes, %v", text, len(audio), err)
		}
	}
	same, err := speak(t, e, voice.Utterance{Text: "before\x00version"})
	if err != nil || len(same) < len(plain)*5/4 {
		t.Errorf("the text ends at a null character: %d bytes, %v; one word has %d", len(same), err, len(plain))
	}
	for _, text := range []string{"", " \n", "\x01\x02"} {
		if audio, err := speak(t, e, voice.Utterance{Text: text}); err != nil || len(audio) != 0 {
			t.Errorf("%q: %d bytes, %v", text, len(audio), err)
		}
	}
}

func TestEspeakVoices(t *testing.T) {
	e := espeakOrSkip(t, Options{}).(speaker).engine.(*espeak)
	for tag, want := range map[string]string{
		"": "en-us", "en": "en-us", "en-US": "en-us", "en-GB": "en-gb", "en-AU": "en-gb", "en-Latn-GB": "en-gb", "de": "de", "de-AT": "de", "de_CH": "de",
		"fr": "fr-fr", "fr-CA": "fr-fr", "fr-BE": "fr-be", "es-MX": "es-419", "es-AR": "es-419", "es": "es", "pt-BR": "pt-br", "pt-PT": "pt", "pt": "pt",
		"zh": "cmn", "zh-CN": "cmn", "zh-Hans-CN": "cmn", "zh-TW": "cmn", "zh-HK": "yue", "zh-Hant-HK": "yue", "yue": "yue", "cmn": "cmn",
		"ja": "ja", "ja-JP": "ja", "ko-KR": "ko", "hi": "hi", "ar-EG": "ar", "ru-RU": "ru", "no": "nb", "nn-NO": "nb", "nb": "nb", "iw": "he", "sr-Latn-RS": "sr",
		"uk": "uk", "vi": "vi", "tr": "tr", "pl": "pl", "th": "th", "el": "el",
	} {
		got, err := e.voiceFor(voice.Utterance{Language: tag})
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", tag, got, err, want)
		}
	}
	for _, u := range []voice.Utterance{{Language: "xx"}, {Language: "tlh-Latn"}, {Voice: "../../etc/passwd"}, {Voice: "-v"}, {Voice: "a b"}, {Voice: "+"}} {
		u.Text = "x"
		_, err := e.Speak(t.Context(), u)
		if f, ok := errors.AsType[*voice.Failure](err); !ok || f.Reason != voice.Rejected {
			t.Errorf("%+v: %v", u, err)
		}
	}
	_, err := speak(t, speaker{e}, voice.Utterance{Text: "x", Voice: "nobody"})
	if f, ok := errors.AsType[*voice.Failure](err); !ok || f.Reason != voice.Rejected || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("an unknown voice: %v", err)
	}
	configured := espeakOrSkip(t, Options{Voice: "en-gb+f3", Speed: 2}).(speaker).engine.(*espeak)
	for _, c := range []struct{ voice, language, want string }{{"", "", "en-gb+f3"}, {"", "de", "de+f3"}, {"fr-fr", "de", "fr-fr"}} {
		if got, err := configured.voiceFor(voice.Utterance{Voice: c.voice, Language: c.language}); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	slow, _ := speak(t, speaker{e}, voice.Utterance{Text: sentence, Voice: "en-gb+f3"})
	fast, err := speak(t, speaker{configured}, voice.Utterance{Text: sentence})
	if err != nil || len(fast) == 0 || len(fast) > len(slow)*2/3 {
		t.Errorf("at twice the speed %d bytes, otherwise %d; %v", len(fast), len(slow), err)
	}
	if _, err := New(Options{Engine: "espeak-ng", Language: "xx"}); err == nil {
		t.Error("a configured language without a voice was accepted")
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

// A process that is killed at any moment is gone when Close returns.
func TestEspeakClose(t *testing.T) {
	e := espeakOrSkip(t, Options{})
	enough := errors.New("enough")
	long := strings.Repeat("This is a long text. ", 4_000) // it doesn't fit into the buffer
	for i := range 20 {
		ctx, cancel := context.WithCancelCause(t.Context())
		r, err := e.Speak(ctx, voice.Utterance{Text: long})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, i*1_000)); err != nil {
			t.Fatal(err)
		}
		if len(children(t)) == 0 {
			t.Error("the process has ended before the audio was read")
		}
		want := errClosed
		if i%2 == 0 {
			want = enough
			cancel(enough)
		}
		_ = r.Close()
		if ids := children(t); len(ids) != 0 {
			t.Errorf("processes %v are left", ids)
		}
		if _, err := r.Read(make([]byte, 2)); !errors.Is(err, want) {
			t.Errorf("after the end: %v, want %v", err, want)
		}
		cancel(nil)
	}
}

// The end of the context alone ends the process, without a read or a Close.
func TestEspeakContext(t *testing.T) {
	e := espeakOrSkip(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := e.Speak(ctx, voice.Utterance{Text: strings.Repeat("This is a long text. ", 4_000)})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-r.(*stream).src.body.(*run).exitDone
	if ids := children(t); len(ids) != 0 {
		t.Errorf("processes %v are left", ids)
	}
	_ = r.Close()
}

// script returns an engine that runs a shell script instead of espeak-ng.
func script(t *testing.T, body string) (voice.Engine, error) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: needs a Unix shell: the fake program is a script")
	}
	file := filepath.Join(t.TempDir(), "espeak-ng")
	list := "echo 'Pty Language Age/Gender VoiceName File'; echo ' 5 en-us --/M English gmw/en-US'; exit 0"
	if err := os.WriteFile(file, []byte("#!/bin/sh\ncase \"$1\" in --voices) "+list+";; esac\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return New(Options{Engine: "espeak-ng", program: file, stall: 200 * time.Millisecond})
}

const header = `printf 'RIFF\044\360\377\177WAVEfmt \020\000\000\000\001\000\001\000\042\126\000\000\104\254\000\000\002\000\020\000data\000\360\377\177'`

func TestEspeakFaults(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		reason voice.Reason
		text   string
	}{
		"crashes":            {header + "; printf '12345678'; kill -SEGV $$", voice.Interrupted, "segmentation fault"},
		"fails":              {"echo 'out of voices' >&2; exit 3", voice.Rejected, "out of voices"},
		"fails in the end":   {header + "; printf '1234'; echo 'no more' >&2; exit 1", voice.Rejected, "no more"},
		"silent":             {"exit 0", voice.Format, "no audio"},
		"half a sample":      {header + "; printf '123'", voice.Interrupted, "unexpected EOF"},
		"half a header":      {"printf 'RIFF....WAVEfmt '", voice.Interrupted, "WAV header"},
		"hangs":              {"sleep 1000", voice.Unavailable, "no audio arrived in time"},
		"hangs with a child": {header + "; sleep 1000 & sleep 1000", voice.Unavailable, "no audio arrived in time"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := script(t, c.body)
			if err != nil {
				t.Fatal(err)
			}
			_, err = speak(t, e, voice.Utterance{Text: sentence})
			if f, ok := errors.AsType[*voice.Failure](err); !ok || f.Reason != c.reason || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %s", err, c.reason)
			}
			if ids := children(t); len(ids) != 0 {
				t.Errorf("processes %v are left", ids)
			}
		})
	}
}

func TestNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Default(nil)
	f, ok := errors.AsType[*voice.Failure](err)
	if !ok || f.Reason != voice.NotInstalled || !strings.Contains(err.Error(), "apt install espeak-ng") || !errors.Is(err, osexec.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// At most maxProcesses run, and the others wait for their turn.
func TestEspeakSlots(t *testing.T) {
	e := espeakOrSkip(t, Options{})
	var users sync.WaitGroup
	texts := make([]string, 2*maxProcesses)
	lengths := make([]int, len(texts))
	for i := range texts {
		texts[i] = fmt.Sprintf("Number %s.", strconv.Itoa(i))
		users.Go(func() {
			audio, err := speak(t, e, voice.Utterance{Text: texts[i]})
			if err != nil {
				t.Errorf("%s: %v", texts[i], err)
			}
			lengths[i] = len(audio)
		})
	}
	users.Wait()
	for i, text := range texts {
		if audio, err := speak(t, e, voice.Utterance{Text: text}); err != nil || len(audio) != lengths[i] {
			t.Errorf("%s: %d bytes, with others at the same time %d; %v", text, len(audio), lengths[i], err)
		}
	}
	inner := e.(speaker).engine.(*espeak)
	for range maxProcesses {
		inner.slots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := e.Speak(ctx, voice.Utterance{Text: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("without a free slot: %v", err)
	}
}

func TestBuffer(t *testing.T) {
	b := newBuffer(10)
	text := strings.Repeat("0123456789abcdef", 100)
	var writer sync.WaitGroup
	writer.Go(func() {
		if n, err := io.Copy(b, strings.NewReader(text)); int(n) != len(text) || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		b.finish(io.EOF)
	})
	got, err := io.ReadAll(b)
	writer.Wait()
	if string(got) != text || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	blocked := newBuffer(1)
	writer.Go(func() {
		if _, err := blocked.Write([]byte("abc")); !errors.Is(err, errClosed) {
			t.Errorf("%v", err)
		}
	})
	blocked.abort(errClosed)
	writer.Wait()
	if _, err := blocked.Read(make([]byte, 1)); !errors.Is(err, errClosed) {
		t.Errorf("%v", err)
	}
}

// The time from the sentence to its first audio, and to its last.
func BenchmarkEspeak(b *testing.B) {
	e := espeakOrSkip(b, Options{})
	for _, name := range []string{"first byte", "whole"} {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 960)
			for b.Loop() {
				r, err := e.Speak(b.Context(), voice.Utterance{Text: "This is a sentence of usual length, which takes about five seconds to say."})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(r, buf); err != nil {
					b.Fatal(err)
				}
				if name == "whole" {
					if _, err := io.Copy(io.Discard, r); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				_ = r.Close()
				b.StartTimer()
			}
		})
	}
}
