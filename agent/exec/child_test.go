//go:build unix

package exec_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/exec"
	"github.com/leat-dev/leat/dialect/elizaactions"
)

// The test's binary is also the agent's program.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		child(os.Args[2], os.Args[3:])
		return
	}
	goleak.VerifyTestMain(m)
}

// child runs the program with the given behavior.
func child(how string, args []string) {
	say := func(line string) { fmt.Println(line) }
	begun := `{"type":"chunk","text":"begun"}`
	switch how {
	case "input": // prints its input and its environment
		var in agent.Input
		if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(9)
		}
		b, err := json.Marshal(map[string]any{"type": "chunk", "text": fmt.Sprint(in.Message.Text, in.Ingest, os.Environ())})
		if err != nil {
			os.Exit(9)
		}
		say(string(b))
		say(`{"type":"done"}`)
	case "cat": // plays a file
		b, err := os.ReadFile(args[0])
		if err != nil {
			os.Exit(9)
		}
		_, _ = os.Stdout.Write(b)
	case "stubborn": // ignores SIGTERM
		signal.Ignore(syscall.SIGTERM)
		say(begun)
		time.Sleep(time.Hour)
	case "lasting": // ignores SIGTERM, and prints its process id
		signal.Ignore(syscall.SIGTERM)
		fmt.Printf(`{"type":"chunk","text":"%d"}`+"\n", os.Getpid())
		time.Sleep(time.Hour)
	case "gateway": // runs a program as a gateway does, and dies during it
		self, err := os.Executable()
		if err != nil {
			os.Exit(9)
		}
		a, err := exec.New(exec.Config{Command: []string{self, "child", "lasting"}, Dialect: elizaactions.Dialect()})
		if err != nil {
			os.Exit(9)
		}
		s := agenttest.NewStage(context.Background())
		go func() { _ = s.Run(a, input) }()
		for s.Visible() == "" {
			time.Sleep(time.Millisecond)
		}
		fmt.Println(s.Visible())
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "polite": // prints a last text after SIGTERM
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		say(begun)
		<-c
		_ = os.WriteFile(args[0], []byte("stopped"), 0o600)
	case "flood": // prints text without end
		line := `{"type":"chunk","text":"` + strings.Repeat("x", 1000) + `"}`
		for {
			say(line)
		}
	case "hum": // prints bytes without content, without end
		say(begun)
		line := `{"type":"hum","text":"` + strings.Repeat("m", 1<<20) + `"}`
		for {
			say(line)
		}
	case "beat": // prints blank lines and lines of an unknown type, which don't count as progress
		say(begun)
		for {
			say("")
			say(`{"type":"beat"}`)
			time.Sleep(10 * time.Millisecond)
		}
	case "endless": // a line without an end
		text := strings.Repeat("x", 1<<20)
		fmt.Print(`{"type":"chunk","text":"`)
		for {
			if _, err := fmt.Print(text); err != nil {
				os.Exit(1)
			}
		}
	case "blunt": // prints an invalid line, and ignores SIGTERM
		signal.Ignore(syscall.SIGTERM)
		fmt.Printf(`{"type":"chunk","text":"%d"}`+"\n", os.Getpid())
		say("rubbish")
		time.Sleep(time.Hour)
	case "rubbish":
		say("Traceback (most recent call last):")
		time.Sleep(time.Hour)
	case "exit": // fails with a message on standard error
		say(begun)
		fmt.Fprintln(os.Stderr, "first line")
		fmt.Fprintln(os.Stderr, "no \x1b[31mmodel\x1b[0m")
		fmt.Fprintln(os.Stderr)
		os.Exit(3)
	case "crash":
		say(begun)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "after": // fails after a complete answer
		say(`{"type":"chunk","text":"all"}`)
		say(`{"type":"done"}`)
		os.Exit(3)
	case "silent":
	case "closed": // closes its output and continues to run
		say(begun)
		_ = os.Stdout.Close()
		time.Sleep(time.Hour)
	case "parent", "deserted": // leaves a child process, in its group or outside it
		attr := &syscall.SysProcAttr{Setsid: how == "deserted"}
		p, err := os.StartProcess("/bin/sleep", []string{"sleep", "3600"}, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attr})
		if err != nil {
			os.Exit(9)
		}
		_ = os.WriteFile(args[0], []byte(strconv.Itoa(p.Pid)), 0o600)
		say(begun)
		say(`{"type":"done"}`)
	case "noisy": // prints many lines to standard error
		line := strings.Repeat("noise ", 500)
		for range 2000 {
			fmt.Fprintln(os.Stderr, line)
		}
		fmt.Fprintln(os.Stderr, "the last word")
		os.Exit(1)
	}
}
