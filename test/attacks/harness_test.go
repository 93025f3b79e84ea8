package attacks

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/test/binary"
)

// token is that of the gateway under attack.
const token = "correct-horse-battery-staple-0123456789"

// allowedOrigin is the one foreign origin whose pages may call that gateway.
const allowedOrigin = "https://app.example"

// limit is how long one exchange may take; all of them are answered in milliseconds.
const limit = time.Minute

// harness is the gateway that all tests attack: the real program in a separate process.
type harness struct {
	addr string
	data string
	logs logs
	cmd  *exec.Cmd
}

var (
	gate    *harness // started by TestMain, with a token
	program string   // the path of the built program
)

func TestMain(m *testing.M) {
	code, err := play(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func play(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "leat-attacks")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if program, err = binary.Build(dir); err != nil {
		return 1, err
	}
	h, err := start(filepath.Join(dir, "data"), "LEAT_API_TOKEN="+token, "LEAT_ALLOWED_ORIGINS="+allowedOrigin)
	if err != nil {
		return 1, err
	}
	gate = h
	code := m.Run()
	return code, h.stop()
}

// start starts a gateway with the demo agent in a data folder and returns when it is ready. Without a token in env it needs
// none.
func start(data string, env ...string) (*harness, error) {
	return startWith(data, []string{"--agent", "demo?speed=0"}, env...)
}

// startWith is start with other agents.
func startWith(data string, agents []string, env ...string) (*harness, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &harness{addr: l.Addr().String(), data: data}
	if err := l.Close(); err != nil {
		return nil, err
	}
	h.cmd = exec.Command(program, "serve", "--listen", h.addr, "--data", data, "--drain", "1s")
	h.cmd.Args = append(h.cmd.Args, agents...)
	h.cmd.Env = append(os.Environ(), "LEAT_LOG_FORMAT=json", "LEAT_LOG_LEVEL=debug", "LEAT_PLUGINS_ENABLED=true")
	h.cmd.Env = append(h.cmd.Env, env...)
	h.cmd.Stdout, h.cmd.Stderr = &h.logs, &h.logs
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		res, err := http.Get("http://" + h.addr + "/readyz")
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return h, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("leat is not ready: %v\n%s", err, h.logs.String())
		case <-time.After(10 * time.Millisecond): // polls another process
		}
	}
}

func (h *harness) stop() error {
	if err := h.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	if err := h.cmd.Wait(); err != nil {
		return fmt.Errorf("leat: %w\n%s", err, h.logs.String())
	}
	return nil
}

// logs is what the program wrote.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// answer is what came back.
type answer struct {
	*http.Response
	body string
}

// dial opens a connection that the test closes.
func dial(t *testing.T) net.Conn { return gate.dial(t) }

func (h *harness) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	return c
}

// raw sends bytes as they are and reads one answer. ADDR in them is the gateway's address, TOKEN its token. A connection that
// is closed without an answer gives the status 0.
func raw(t *testing.T, request string) answer { return gate.raw(t, request) }

func (h *harness) raw(t *testing.T, request string) answer {
	t.Helper()
	c := h.dial(t)
	request = strings.NewReplacer("ADDR", h.addr, "TOKEN", token).Replace(request)
	go func() { _, _ = io.WriteString(c, request) }() // the gateway may have had enough before its end
	return read(t, c, request)
}

func read(t *testing.T, c net.Conn, request string) answer {
	t.Helper()
	method, _, _ := strings.Cut(request, " ")
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Fatalf("no answer in %v to %.200q", limit, request)
		}
		return answer{Response: &http.Response{Header: http.Header{}}}
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // cut where the gateway cuts
	return answer{res, string(b)}
}

// request is a whole request with a good token, unless header lines say otherwise.
func request(method, path, body string, headers ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", method, path)
	names := map[string]bool{}
	for _, h := range headers {
		name, _, _ := strings.Cut(h, ":")
		names[strings.ToLower(name)] = true
		b.WriteString(h + "\r\n")
	}
	if !names["host"] {
		b.WriteString("Host: ADDR\r\n")
	}
	if !names["authorization"] && !names["cookie"] && !names["x-none"] {
		b.WriteString("Authorization: Bearer TOKEN\r\n")
	}
	if body != "" && !names["content-length"] && !names["transfer-encoding"] {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	if body != "" && !names["content-type"] {
		b.WriteString("Content-Type: application/json\r\n")
	}
	b.WriteString("Connection: close\r\n\r\n" + body)
	return b.String()
}

// anonymous is a header line without a token.
const anonymous = "X-None: 1"

// as are the header lines of the API token's holder who acts for a subject.
func as(tenant, subject string) []string {
	return []string{"Leat-Tenant: " + tenant, "Leat-Subject: " + subject}
}

// create makes a conversation and returns its id.
func create(t *testing.T, headers ...string) string {
	t.Helper()
	return createAs(t, `{}`, headers...)
}

// createAs makes a conversation as a body describes it and returns its id.
func createAs(t *testing.T, body string, headers ...string) string {
	t.Helper()
	return conversationOf(t, raw(t, request("POST", "/api/conversations", body, headers...)))
}

// conversationOf returns the id of the conversation in an answer.
func conversationOf(t *testing.T, a answer) string {
	t.Helper()
	var out struct {
		Conversation struct {
			ID string `json:"id"`
		} `json:"conversation"`
	}
	if err := json.Unmarshal([]byte(a.body), &out); err != nil || out.Conversation.ID == "" {
		t.Fatalf("create: %s %s %v", a.Status, a.body, err)
	}
	return out.Conversation.ID
}

// cookie logs in and returns the cookie's line.
func cookie(t *testing.T) string {
	t.Helper()
	a := raw(t, request("POST", sessionPath, `{"token":"`+token+`"}`, anonymous))
	cs := a.Cookies()
	if a.StatusCode != http.StatusOK || len(cs) != 1 {
		t.Fatalf("login: %s %v %s", a.Status, cs, a.body)
	}
	return "Cookie: " + cs[0].Name + "=" + cs[0].Value
}

const sessionPath = "/api/auth/session"

// want checks a status; 0 is a connection that was closed without an answer.
func want(t *testing.T, a answer, statuses ...int) {
	t.Helper()
	for _, s := range statuses {
		if a.StatusCode == s {
			return
		}
	}
	t.Errorf("status %d, want %v: %.300s", a.StatusCode, statuses, a.body)
}
