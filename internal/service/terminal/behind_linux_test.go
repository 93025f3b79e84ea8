package terminal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// left returns the processes whose command lines contain a word.
func left(t *testing.T, word string) []string {
	t.Helper()
	var all []string
	for _, pid := range pids() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if p, ok := readProcess(pid); ok && !p.isZombie && bytes.Contains(b, []byte(word)) {
			all = append(all, fmt.Sprint(pid, " ", strings.ReplaceAll(string(b), "\x00", " ")))
		}
	}
	return all
}

// Ways in which commands start children. %s is a unique sleep time by which they are found.
var families = map[string]string{
	"child":                   "sleep %s & sleep 100; true",
	"separate process group":  "setsid sleep %s & sleep 100; true",
	"daemon":                  "(setsid sh -c 'sleep %s & sleep 100' &) ; sleep 100; true",
	"ignores SIGTERM":         "trap '' TERM; (trap '' TERM; while :; do sleep %s; done) & while :; do sleep 100; done",
	"without the environment": "env -i setsid sleep %s & sleep 100; true",
	"prints forever":          "setsid yes %s & sleep 100; true",
}

// unique returns a number that no other sleep on this machine uses.
func unique(n int) string { return fmt.Sprintf("3%d%03d", os.Getpid(), n) }

// start starts a command and returns when its children are running.
func start(t *testing.T, term *Terminal, command, word string) *Run {
	t.Helper()
	r, err := term.Run(command, func(Event) {})
	if err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) { // another process: its state can only be polled
		found := left(t, word)
		for _, one := range found {
			if !strings.Contains(one, "sh -c") && !strings.Contains(one, "env -i") && !strings.Contains(one, "setsid") {
				return r
			}
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("the children did not start: %q", found)
		}
	}
}

func TestNoProcessLeft(t *testing.T) {
	n := 0
	for name, command := range families {
		for _, how := range []string{"timeout", "shutdown"} {
			n++
			word := unique(n)
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				term := newTerminal(t, Config{MaxDuration: time.Hour})
				term.grace = 50 * time.Millisecond
				expired, expire := context.WithCancel(t.Context())
				term.expires = func(ctx context.Context, _ time.Time) (context.Context, context.CancelFunc) {
					ctx, cancel := context.WithCancel(ctx)
					context.AfterFunc(expired, cancel)
					return ctx, cancel
				}
				r := start(t, term, fmt.Sprintf(command, word), word)
				if how == "shutdown" {
					term.Close()
				}
				expire()
				<-r.Done()
				if all := left(t, word); len(all) > 0 {
					t.Errorf("remaining processes: %q", all)
				}
				if res := r.Result(); res.TimedOut != (how == "timeout") || (res.Error == stopping) != (how == "shutdown") {
					t.Errorf("%+v", res)
				}
			})
		}
	}
}

// A command that exits by itself or is killed takes its background processes with it.
func TestEndedCommandLeavesNoProcess(t *testing.T) {
	for i, command := range []string{
		"sleep %s >/dev/null 2>&1 & exit 0", "setsid sleep %s & sleep 0.2; exit 0", "nohup sleep %s & exit 0", "setsid sleep %s & sleep 0.2; kill -9 $$",
	} {
		word := unique(100 + i)
		tp, res := run(t, newTerminal(t, Config{}), fmt.Sprintf(command, word))
		if all := left(t, word); len(all) > 0 || res.Code == nil {
			t.Errorf("%s: remaining processes: %q; %+v", command, all, tp.events)
		}
	}
}
