//go:build unix

package plugin_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// The test binary also runs as the plugin.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		child(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

// command is a line from the gateway.
type command struct {
	Type     string          `json:"type"`
	Protocol int             `json:"protocol"`
	Turn     string          `json:"turn"`
	Message  json.RawMessage `json:"message"`
	Answer   *event.Answer   `json:"answer"`
}

var output sync.Mutex

func say(format string, args ...any) {
	output.Lock()
	defer output.Unlock()
	fmt.Printf(format+"\n", args...)
}

func text(turn, s string) {
	b, err := json.Marshal(map[string]string{"type": "text", "turn": turn, "text": s})
	if err != nil {
		os.Exit(9)
	}
	say("%s", b)
}

func end(turn string) { say(`{"type":"turn.end","turn":"%s","outcome":"completed"}`, turn) }

// child is a plugin that does what a turn's message says. Other lines of the gateway are printed as text of the running turn or at its end.
func child(mode string) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	in.Scan() // hello
	switch mode {
	case "mute":
		time.Sleep(time.Hour)
	case "newer":
		say(`{"type":"ready","protocol":2}`)
		time.Sleep(time.Hour)
	case "early":
		say(`{"type":"text","turn":"x","text":"y"}`)
		time.Sleep(time.Hour)
	case "gone":
		fmt.Fprintln(os.Stderr, "no model")
		os.Exit(3)
	}
	say(`{"type":"ready","protocol":1,"steer":true}`)
	if mode == "deaf" { // reads nothing more
		time.Sleep(time.Hour)
	}
	for in.Scan() {
		var t command
		if json.Unmarshal(in.Bytes(), &t) != nil {
			os.Exit(9)
		}
		var m agent.Message
		_ = json.Unmarshal(t.Message, &m) // an error's message is a string
		word, rest, _ := strings.Cut(m.Text, " ")
		switch t.Type {
		case "turn":
			switch word {
			case "pid":
				text(t.Turn, fmt.Sprint(os.Getpid(), " ", rest))
				end(t.Turn)
			case "env":
				text(t.Turn, fmt.Sprint(os.Environ(), in.Text()))
				end(t.Turn)
			case "begin":
				text(t.Turn, fmt.Sprint(os.Getpid()))
			case "file":
				b, err := os.ReadFile(rest)
				if err != nil {
					os.Exit(9)
				}
				say("%s", strings.ReplaceAll(strings.TrimSpace(string(b)), "TURN", t.Turn))
			case "beat": // blank lines and empty texts, which don't count as progress
				text(t.Turn, "begun")
				for {
					fmt.Println()
					text(t.Turn, "")
					say(`{"type":"x.beat","turn":"%s"}`, t.Turn)
					time.Sleep(10 * time.Millisecond)
				}
			case "ask":
				say(`{"type":"turn.wait","turn":"%s","request":{"id":"q","kind":"approval","prompt":"Really?"}}`, t.Turn)
			}
		case "steer":
			say(`{"type":"steered","turn":"%s","message":"%s","taken":%v}`, t.Turn, m.ID, word != "no")
			text(t.Turn, " steered "+m.Text)
		case "answer":
			say(`{"type":"turn.resume","turn":"%s","answer":{"id":"%s"}}`, t.Turn, t.Answer.ID)
			text(t.Turn, "it is "+string(t.Answer.Decision))
			end(t.Turn)
		case "cancel", "error":
			f, err := os.OpenFile(os.Getenv("TOLD"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				os.Exit(9)
			}
			fmt.Fprintln(f, in.Text())
			_ = f.Close()
			text(t.Turn, "after the end")
		}
	}
}
