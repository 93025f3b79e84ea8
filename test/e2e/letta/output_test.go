//go:build e2e

package letta

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/test/e2e/internal/harness"
	"github.com/leat-dev/leat/transcript"
)

const outputToken = "a-token-for-letta-code"

// TestOutput has the unchanged Letta Code use Leat as its server.
func TestOutput(t *testing.T) {
	node, script := install(t)
	agentScript, err := filepath.Abs("testdata/agent.mjs")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(t)
	gateway := harness.Leat(t, []string{"LEAT_API_TOKEN=" + outputToken, "LEAT_LEASE=10m"}, "--agent", "t=plugin:"+node+" "+agentScript, "--agent", "worker="+w.url)
	gateway.Start(t)
	o := &output{node: node, script: script, home: t.TempDir(), leat: gateway, client: harness.NewClient(gateway.URL)}
	o.client.Token = outputToken
	live := *o // as after the command /stream: texts are visible while they grow
	live.home = t.TempDir()
	if err := os.Mkdir(filepath.Join(live.home, ".letta"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(live.home, ".letta", "settings.json"), []byte(`{"tokenStreaming":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("headless", o.headless)
	t.Run("terminal", o.terminal)
	t.Run("stop", live.stop)
	t.Run("reload", o.reload)
	t.Run("elsewhere", o.elsewhere)
	t.Run("two windows", live.twoWindows)
	t.Run("kill", func(t *testing.T) { live.kill(t, w) })
}

// output is Leat as the server of Letta Code, with a home for the program.
type output struct {
	node, script, home string
	leat               *harness.Program
	client             *harness.Client
}

// env is the environment of Letta Code.
func (o *output) env() []string {
	return []string{
		"PATH=" + filepath.Dir(o.node) + ":" + os.Getenv("PATH"), "HOME=" + o.home, "TERM=xterm-256color", "LETTA_CODE_TELEM=0", "DO_NOT_TRACK=1",
		"DISABLE_AUTOUPDATER=1", "LETTA_BASE_URL=" + o.leat.URL + "/letta", "LETTA_API_KEY=" + outputToken,
	}
}

// ask runs Letta Code for one message, and returns what it prints.
func (o *output) ask(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), screenLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.node, append([]string{o.script, "--backend", "api", "--agent", "agent-t", "-p"}, args...)...)
	var out, faults bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = o.home, o.env(), &out, &faults
	err = cmd.Run()
	return out.String(), faults.String(), err
}

// waitEnd waits until a turn of a conversation has ended.
func (o *output) waitEnd(t *testing.T, conversation string, n int) *transcript.Turn {
	t.Helper()
	tr := o.client.WaitUntil(t, conversation, "", func(tr *transcript.Transcript) bool { return len(tr.Turns) > n && !tr.Turns[n].Unfinished() })
	return tr.Turns[n]
}

// headless has Letta Code answer single messages. It refuses what needs a person.
func (o *output) headless(t *testing.T) {
	for message, want := range map[string]string{
		"hello":        "re: hello\n",
		"tools":        "It is sunny.\n",
		"approve file": "file: deny Tool requires approval (headless mode)\n",
		"choose car":   "car is Error: Tool requires approval (headless mode).\n",
	} {
		if out, faults, err := o.ask(t, message); err != nil || strings.TrimSpace(out) != strings.TrimSpace(want) {
			t.Errorf("%s: %q, %v\n%s", message, out, err, faults)
		}
	}
	if _, faults, err := o.ask(t, "fail"); err == nil || !strings.Contains(faults, "The model is busy.") {
		t.Errorf("a failure: %v, %s", err, faults)
	}
	if _, err := os.Stat(filepath.Join(o.home, "ran-file")); err == nil {
		t.Error("Letta Code has run the agent's tool")
	}
	o.shell(t)
	out, faults, err := o.ask(t, "tools", "--output-format", "stream-json")
	if err != nil {
		t.Fatalf("%v\n%s", err, faults)
	}
	call, result := "", ""
	for line := range strings.Lines(out) {
		var m struct {
			Type string `json:"message_type"`
			Call struct {
				Arguments string `json:"arguments"`
			} `json:"tool_call"`
			Return string `json:"tool_return"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if m.Type == "tool_call_message" {
			call += m.Call.Arguments
		}
		result += m.Return
	}
	if call != `{"city":"Graz"}` || result != "clear sky" {
		t.Errorf("the call is %q, its result %q", call, result)
	}
}

// shell has the agent call the tool Bash that Letta Code offers. Letta Code decides whether it runs; its default is to run everything.
func (o *output) shell(t *testing.T) {
	t.Helper()
	out, faults, err := o.ask(t, "shell no", "--permission-mode", "standard")
	if _, statErr := os.Stat(filepath.Join(o.home, "made-no")); err != nil || !strings.HasPrefix(out, "shell: deny ") || statErr == nil {
		t.Errorf("a command that is not allowed: %q, %v, created: %t\n%s", out, err, statErr == nil, faults)
	}
	out, faults, err = o.ask(t, "shell yes")
	if _, statErr := os.Stat(filepath.Join(o.home, "made-yes")); err != nil || strings.TrimSpace(out) != "shell:  42\n." || statErr != nil {
		t.Errorf("a command that is allowed: %q, %v, %v\n%s", out, err, statErr, faults)
	}
}

// terminal answers approvals and questions with keys.
func (o *output) terminal(t *testing.T) {
	id := o.client.CreateConversation(t, "t")
	s := o.open(t, id, "t")
	s.say(t, "hello one")
	s.wait(t, "re: hello one")
	s.say(t, "tools")
	s.wait(t, "clear sky", "It is sunny.")
	s.say(t, "approve first")
	s.form(t, "May I touch first?", "touch ran-first", "1. Yes")
	s.press(t, "1")
	s.wait(t, "first: approve")
	s.say(t, "approve second")
	s.form(t, "May I touch second?")
	s.answer(t, 2, "")
	s.wait(t, "second: deny")
	s.say(t, "approve third")
	s.form(t, "May I touch third?")
	s.answer(t, 3, "later")
	s.wait(t, "third: deny later")
	s.say(t, "choose car")
	s.form(t, "Which colour for car?", "2. blue")
	s.press(t, "2")
	s.wait(t, "car is blue.")
	s.say(t, "name dog")
	s.form(t, "What is the name of dog?")
	s.answer(t, 3, "Rex")
	s.wait(t, "dog is called Rex.")
	s.say(t, "fail")
	s.wait(t, "so far", "The model is busy.")
	// A form that its user closes is refused with the next message.
	s.say(t, "approve fourth")
	s.form(t, "May I touch fourth?")
	s.press(t, "Escape")
	s.wait(t, "Approval cancelled")
	s.say(t, "hello again")
	s.wait(t, "fourth: deny User cancelled the approval", "re: hello again")
	for _, name := range []string{"first", "second", "third", "fourth"} {
		if _, err := os.Stat(filepath.Join(o.home, "ran-"+name)); err == nil {
			t.Errorf("Letta Code has run the agent's tool for %s", name)
		}
	}
}

// stop stops an answer, and the next message gets its own.
func (o *output) stop(t *testing.T) {
	id := o.client.CreateConversation(t, "t")
	s := o.open(t, id, "t")
	s.say(t, "forever")
	s.wait(t, "word3")
	s.press(t, "Escape")
	s.wait(t, "Interrupted")
	if turn := o.waitEnd(t, id, 0); turn.Outcome != event.Cancelled {
		t.Errorf("the turn is %s", turn.Outcome)
	}
	s.say(t, "hello after it")
	s.wait(t, "re: hello after it")
	var sent []string
	for _, m := range o.client.FullTranscript(t, id).Messages {
		if m.Role == event.User {
			sent = append(sent, m.Parts[0].Text(event.Text))
		}
	}
	if got := strings.Join(sent, ", "); got != "forever, hello after it" {
		t.Errorf("the user's messages are %s", got)
	}
}

// reload closes the program while a form is open. The next one shows the history and the form.
func (o *output) reload(t *testing.T) {
	id := o.client.CreateConversation(t, "t")
	s := o.open(t, id, "t")
	s.say(t, "tools")
	s.wait(t, "It is sunny.")
	s.say(t, "choose car")
	s.form(t, "Which colour for car?")
	s.close()
	s = o.open(t, id, "t")
	s.form(t, "Which colour for car?")
	s.wait(t, "Let me look.", "clear sky", "It is sunny.")
	s.press(t, "1")
	s.wait(t, "car is red.")
}

// elsewhere answers a form with another client. The form's own answer comes too late, and shows what the agent did.
func (o *output) elsewhere(t *testing.T) {
	id := o.client.CreateConversation(t, "t")
	s := o.open(t, id, "t")
	s.say(t, "choose car")
	s.form(t, "Which colour for car?")
	tr := o.client.WaitUntil(t, id, "", func(tr *transcript.Transcript) bool { return len(tr.Turns) == 1 && len(tr.Turns[0].Requests) == 1 })
	turn := tr.Turns[0]
	if _, err := o.client.Answer(t.Context(), id, turn.ID, turn.Requests[0].ID, "blue", ""); err != nil {
		t.Fatal(err)
	}
	o.waitEnd(t, id, 0)
	s.press(t, "1")
	s.wait(t, "car is blue.")
	s.say(t, "hello then")
	s.wait(t, "re: hello then")
}

// twoWindows has two programs use one conversation.
func (o *output) twoWindows(t *testing.T) {
	id := o.client.CreateConversation(t, "t")
	first, second := o.open(t, id, "t"), o.open(t, id, "t")
	first.say(t, "hello from the first")
	first.wait(t, "re: hello from the first")
	second.say(t, "hello from the second")
	second.wait(t, "re: hello from the second")
	// The message of the second window waits for the answer to the first.
	first.say(t, "forever")
	first.wait(t, "word3")
	second.say(t, "hello meanwhile")
	o.client.WaitUntil(t, id, "", func(tr *transcript.Transcript) bool { return len(tr.Turns) == 4 })
	first.press(t, "Escape")
	first.wait(t, "Interrupted")
	// A stop is for the whole conversation.
	if turn := o.waitEnd(t, id, 3); turn.Outcome != event.Cancelled {
		t.Errorf("the turn of the second window is %s", turn.Outcome)
	}
	second.close()
	second = o.open(t, id, "t")
	second.wait(t, "re: hello from the first", "re: hello from the second", "hello meanwhile")
	second.say(t, "hello at last")
	second.wait(t, "re: hello at last")
}

// kill kills the gateway twice in the middle of an answer whose agent continues.
func (o *output) kill(t *testing.T, w *worker) {
	id := o.client.CreateConversation(t, "worker")
	s := o.open(t, id, "worker")
	s.say(t, "work")
	ingest := <-w.asked
	ingest.push(t, "The first part, ")
	s.wait(t, "The first part,")
	for _, text := range []string{"the second, ", "and the third."} {
		o.leat.Signal(syscall.SIGKILL)
		o.leat.Start(t)
		ingest.push(t, text)
	}
	ingest.end(t)
	turn := o.waitEnd(t, id, 0)
	if got := o.client.FullTranscript(t, id).Visible(turn.ID); got != "The first part, the second, and the third." {
		t.Errorf("the text is %q", got)
	}
	s.close()
	s = o.open(t, id, "worker")
	s.wait(t, "The first part, the second, and the third.")
	s.say(t, "work on")
	ingest = <-w.asked
	ingest.push(t, "Done.")
	ingest.end(t)
	s.wait(t, "Done.")
}

// worker is an agent that answers later, by pushing the stream.
type worker struct {
	url   string
	asked chan *stream
}

// newWorker starts a worker.
func newWorker(t *testing.T) *worker {
	w := &worker{asked: make(chan *stream, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var in agent.Input
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		rw.WriteHeader(http.StatusAccepted)
		w.asked <- &stream{Ingest: *in.Ingest}
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// stream is an answer that a worker pushes.
type stream struct{ agent.Ingest }

// push pushes a piece of the text, and end the end.
func (s *stream) push(t *testing.T, text string) {
	s.patch(t, map[string]string{"type": "chunk", "text": text})
}

func (s *stream) end(t *testing.T) { s.patch(t, map[string]string{"type": "done"}) }

func (s *stream) patch(t *testing.T, line any) {
	t.Helper()
	b, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	offset := s.do(t, http.MethodHead, "", nil).Header.Get("Upload-Offset")
	if res := s.do(t, http.MethodPatch, offset, append(b, '\n')); res.StatusCode != http.StatusOK {
		t.Fatalf("push: %s", res.Status)
	}
}

func (s *stream) do(t *testing.T, method, offset string, body []byte) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Token)
	if offset != "" {
		r.Header.Set("Upload-Offset", offset)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res
}
