package cli

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/leat-dev/leat/test/binary"
	"github.com/leat-dev/leat/test/browser"
)

// gatewayProcess is the real program. A test starts and kills it several times on one data folder.
type gatewayProcess struct {
	t      *testing.T
	binary string
	args   []string
	url    string
	cmd    *exec.Cmd
	log    bytes.Buffer
}

func startGateway(t *testing.T, args ...string) *gatewayProcess {
	t.Helper()
	dir := t.TempDir()
	p := &gatewayProcess{t: t, binary: binary.Leat(t)}
	address := freeAddress(t)
	p.url = "http://" + address
	p.args = append([]string{"serve", "--listen", address, "--data", filepath.Join(dir, "data")}, args...)
	p.start()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the gateway says\n%s", p.log.String())
		}
	})
	return p
}

func (p *gatewayProcess) start() {
	p.t.Helper()
	p.cmd = exec.Command(p.binary, p.args...)
	p.cmd.Env = append(os.Environ(), "NO_COLOR=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	for begin := time.Now(); ; {
		res, err := http.Get(p.url + "/readyz")
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Since(begin) > time.Minute {
			p.t.Fatalf("the gateway is not ready: %v\n%s", err, p.log.String())
		}
		time.Sleep(20 * time.Millisecond) // a process gives no signal when it is ready
	}
}

func (p *gatewayProcess) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // an error is expected: the process was killed
	p.cmd = nil
}

// A user asks, watches the answer grow, reloads the page in the middle of it, and loses the gateway.
func TestThePageInABrowser(t *testing.T) {
	page := browser.Open(t)
	t.Setenv("LEAT_BASE_PATH", "/leat") // a prefix finds links that ignore it
	gw := startGateway(t)
	const log, idle = browser.Log, browser.Idle
	page.Go(gw.url + "/leat/")
	page.Wait("the page is online", browser.Connected)
	page.Screenshot("1-empty.png")
	page.Ask("tools: what is 17 * 23?")
	page.Wait("a tool is shown", `document.querySelector(".log .tool")`)
	page.Screenshot("2-growing.png")
	page.Wait("the answer is whole", `(`+idle+`) && (`+log+`).includes("sha256sum")`)
	whole := page.Eval(log)
	page.Screenshot("3-whole.png")

	// A reload in the middle of an answer resumes it.
	page.Ask("long 5000") // long enough also for a slow machine
	page.Wait("the answer grows", `(`+log+`).length > `+lengthOf(whole)+` + 200`)
	page.Reload()
	page.Wait("the page is back", `(`+log+`).includes("17 * 23")`)
	seen := page.Eval(log)
	page.Wait("it goes on", `(`+log+`).length > `+lengthOf(seen))
	if now := page.Eval(log); !strings.Contains(now, "17 * 23") {
		t.Errorf("the page lost text: %s", now)
	}

	// The gateway is killed. The page reports the lost connection, reconnects by itself and shows how the turn ended.
	gw.kill()
	page.Wait("the page says that it is cut off", `!(`+browser.Connected+`)`)
	page.Screenshot("4-cut.png")
	before := page.Eval(log)
	gw.start()
	page.Wait("the page is online again", idle)
	page.Wait("the turn has its end", `/interrupt|restart/i.test(document.querySelector(".log").innerText)`)
	after := page.Eval(log)
	if first, _, _ := strings.Cut(before, "\n"); !strings.Contains(after, first) {
		t.Errorf("displayed text is gone\nbefore %q\nafter %q", before, after)
	}
	page.Screenshot("5-back.png")
	if errs := page.Console(); len(errs) > 0 {
		for _, e := range errs {
			// The test itself caused refused connections and incomplete downloads, which the browser logs as errors.
			if !strings.Contains(e, `"level":"verbose"`) && !strings.Contains(e, "net::ERR_") && !strings.Contains(e, "WebSocket connection") {
				t.Errorf("the console: %s", e)
			}
		}
	}
}

// lengthOf returns a JavaScript expression for the length of a string.
func lengthOf(s string) string { return strconv.Itoa(len(utf16.Encode([]rune(s)))) }

// freeAddress returns a loopback address whose port is free.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
