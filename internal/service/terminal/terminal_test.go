//go:build unix

package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tape records the events of a run.
type tape struct {
	mu     sync.Mutex
	events []Event
	heard  chan Event // receives each event, if the test creates it
}

func (tp *tape) take(e Event) {
	tp.mu.Lock()
	tp.events = append(tp.events, e)
	tp.mu.Unlock()
	if tp.heard != nil {
		tp.heard <- e
	}
}

// text returns the whole text of one output.
func (tp *tape) text(k eventKind) string {
	var b strings.Builder
	for _, e := range tp.events {
		if e.Kind == k {
			b.WriteString(e.Data)
		}
	}
	return b.String()
}

func newTerminal(t *testing.T, c Config) *Terminal {
	t.Helper()
	term, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(term.Close)
	return term
}

func run(t *testing.T, term *Terminal, command string) (*tape, result) {
	t.Helper()
	tp := &tape{}
	r, err := term.Run(command, tp.take)
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	return tp, r.Result()
}

var id = regexp.MustCompile(`run-\d{13}-[a-z0-9]{12}`)

// The frames are identical to Eliza's, byte for byte.
func TestFrames(t *testing.T) {
	for name, tt := range map[string]struct {
		command string
		limit   time.Duration
		want    []string
	}{
		"exit": {"printf 'a\\n'", time.Minute, []string{
			`{"type":"terminal-output","runId":"ID","event":"start","command":"printf 'a\\n'","maxDurationMs":60000}`,
			`{"type":"terminal-output","runId":"ID","event":"stdout","data":"a\n"}`,
			`{"type":"terminal-output","runId":"ID","event":"exit","code":0}`,
		}},
		"standard error, status": {"echo no >&2; exit 3", time.Minute, []string{
			`{"type":"terminal-output","runId":"ID","event":"start","command":"echo no \u003e\u00262; exit 3","maxDurationMs":60000}`,
			`{"type":"terminal-output","runId":"ID","event":"stderr","data":"no\n"}`,
			`{"type":"terminal-output","runId":"ID","event":"exit","code":3}`,
		}},
		"killed by a signal": {"kill -9 $$", time.Minute, []string{
			`{"type":"terminal-output","runId":"ID","event":"start","command":"kill -9 $$","maxDurationMs":60000}`,
			`{"type":"terminal-output","runId":"ID","event":"exit","code":1}`,
		}},
		"timeout": {"sleep 100", 50 * time.Millisecond, []string{
			`{"type":"terminal-output","runId":"ID","event":"start","command":"sleep 100","maxDurationMs":50}`,
			`{"type":"terminal-output","runId":"ID","event":"timeout","maxDurationMs":50}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tp, _ := run(t, newTerminal(t, Config{MaxDuration: tt.limit}), tt.command)
			var got []string
			for _, e := range tp.events {
				b, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, id.ReplaceAllString(string(b), "ID"))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestNotStarted(t *testing.T) {
	term := newTerminal(t, Config{})
	term.shell = "/nowhere/sh"
	tp, res := run(t, term, "true")
	if len(tp.events) != 1 || tp.events[0].Kind != kindFailed || !strings.Contains(res.Error, "no such file") || res.Code != nil {
		t.Errorf("%+v %+v", tp.events, res)
	}
}

// A command gets only a few of the gateway's environment variables and no input.
func TestEnvironment(t *testing.T) {
	t.Setenv("LEAT_API_TOKEN", "t0ken")
	t.Setenv("MODEL_API_KEY", "k3y")
	_, res := run(t, newTerminal(t, Config{}), "env; cat")
	if strings.Contains(res.Stdout, "t0ken") || strings.Contains(res.Stdout, "k3y") || !strings.Contains(res.Stdout, "PATH=") {
		t.Errorf("the environment is %s", res.Stdout)
	}
}

// The decoded text is the same wherever the bytes are split.
func TestText(t *testing.T) {
	in := "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xff\x80z\xe2\x82"
	want := "aä€😀\uFFFDz\uFFFD"
	for cut := range len(in) + 1 {
		for second := cut; second <= len(in); second++ {
			var d decoder
			got := d.decode([]byte(in[:cut])) + d.decode([]byte(in[cut:second])) + d.decode([]byte(in[second:])) + d.flush()
			if got = strings.ReplaceAll(got, "\uFFFD\uFFFD", "\uFFFD"); got != want {
				t.Errorf("cut at %d and %d: %q", cut, second, got)
			}
		}
	}
}

func TestUTF8AcrossReads(t *testing.T) {
	tp, _ := run(t, newTerminal(t, Config{}), `printf '\342\202'; sleep 0.1; printf '\254 \360\237'; sleep 0.1; printf '\230\200'`)
	if got := tp.text(Stdout); got != "€ 😀" {
		t.Errorf("%q", got)
	}
	for _, e := range tp.events {
		if !utf8.ValidString(e.Data) || strings.Contains(e.Data, "\uFFFD") {
			t.Errorf("half a character: %q", e.Data)
		}
	}
}

func TestBusy(t *testing.T) {
	term := newTerminal(t, Config{MaxRuns: 2})
	tp := &tape{heard: make(chan Event, 100)}
	var runs []*Run
	for range 2 {
		r, err := term.Run("sleep 100", tp.take)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	if _, err := term.Run("true", tp.take); !errors.Is(err, ErrBusy) {
		t.Errorf("third command: %v", err)
	}
	term.Close()
	for _, r := range runs {
		select {
		case <-r.Done():
			if r.Result().Error != stopping {
				t.Errorf("%+v", r.Result())
			}
		default:
			t.Error("the command is still running")
		}
	}
	if _, err := term.Run("true", tp.take); !errors.Is(err, ErrClosed) {
		t.Errorf("Run after the end: %v", err)
	}
	again := newTerminal(t, Config{MaxRuns: 1})
	for range 3 { // places become free
		if _, res := run(t, again, "true"); res.Code == nil || *res.Code != 0 {
			t.Errorf("%+v", res)
		}
	}
}

// While the output isn't consumed, the command blocks. Finally all output arrives, in frames of bounded size.
func TestBackPressure(t *testing.T) {
	term := newTerminal(t, Config{})
	term.pause = 0
	const size = 4 << 20
	after := t.TempDir() + "/after"
	blocked, open := make(chan struct{}), make(chan struct{})
	var once sync.Once
	got, large := 0, 0
	r, err := term.Run(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; : > %s", size, after), func(e Event) {
		if e.Kind == Stdout {
			once.Do(func() { close(blocked); <-open })
			got += len(e.Data)
			large = max(large, len(e.Data))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	<-blocked
	time.Sleep(100 * time.Millisecond) // enough time to print more, if it weren't blocked
	if _, err := os.Stat(after); err == nil {
		t.Error("the command was not blocked")
	}
	close(open)
	<-r.Done()
	if _, err := os.Stat(after); err != nil || got != size || large > maxFrame {
		t.Errorf("%d bytes in frames of up to %d; %v", got, large, err)
	}
	if res := r.Result(); len(res.Stdout) != Capture || !res.Truncated {
		t.Errorf("%d bytes are captured, truncated: %v", len(res.Stdout), res.Truncated)
	}
}

func flood(t *testing.T, size int, pause time.Duration) {
	t.Helper()
	term := newTerminal(t, Config{})
	term.pause = pause
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var got int
	var most uint64
	frames := 0
	begin := time.Now()
	r, err := term.Run(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size), func(e Event) {
		got += len(e.Data)
		if frames++; frames%500 == 0 {
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	if got != size || r.Result().Code == nil {
		t.Errorf("%d of %d bytes arrived: %+v", got, size, r.Result().Code)
	}
	if most > before.HeapAlloc+32<<20 {
		t.Errorf("the run used %d MiB of memory", (most-before.HeapAlloc)>>20)
	}
	if took := time.Since(begin); took < time.Duration(size/maxFrame)*pause {
		t.Errorf("took %v, faster than the rate limit", took)
	}
}

// The output of a command that prints 100 MB arrives completely and needs almost no memory.
func TestHundredMegabytes(t *testing.T) { flood(t, 100_000_000, 0) }

func TestHundredMegabytesAtItsPaceFull(t *testing.T) {
	if os.Getenv("LEAT_FULL") == "" {
		t.Skip("SKIPPED: 100 MB at 32 KiB each 20 ms take a minute; set LEAT_FULL=1 to run it")
	}
	flood(t, 100_000_000, framePause)
}
