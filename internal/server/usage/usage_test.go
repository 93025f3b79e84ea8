package usage_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	surface "github.com/leat-dev/leat/internal/server/usage"
	"github.com/leat-dev/leat/internal/service/usage"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

const token = "sesame"

type spender struct{}

func (spender) Run(_ context.Context, in agent.Input, out *agent.Emitter) error {
	return out.End(event.Completed, "", &event.Usage{Model: in.Message.Text, Input: 1000, Output: 100})
}

// newUsageServer returns a server over a gateway in which ann of t has had two turns and =bob of t one.
func newUsageServer(t *testing.T) *httptest.Server {
	t.Helper()
	gw, err := gateway.New(gateway.Config{
		Journal: memory.New(), Agents: gateway.Agents{"a": {Agent: spender{}}}, DefaultAgent: "a",
		Settings: gateway.Settings{Prices: usage.Prices{{Model: "big", Input: 2_000_000_000, Output: 10_000_000_000}, {Model: "euro", Input: 1_000_000_000, Currency: "EUR"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, say := range [][2]string{{"ann", "big"}, {"ann", "dark"}, {"=bob", "euro"}} {
		p := gateway.Principal{Tenant: "t", Subject: say[0]}
		c, _, err := gw.Create(t.Context(), p, gateway.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ack, err := gw.Do(t.Context(), p, c.ID, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: say[1]}})
		if err != nil {
			t.Fatal(err)
		}
		wait(t, gw, p, c.ID, ack.Turn)
	}
	srv := server.New(server.Options{Token: token})
	surface.Register(srv, gw)
	ts := httptest.NewServer(srv)
	t.Cleanup(func() {
		ts.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return ts
}

func wait(t *testing.T, gw *gateway.Gateway, p gateway.Principal, conversation, turn string) {
	t.Helper()
	f, err := gw.Feed(t.Context(), p, conversation)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	for over := false; !over; {
		changed := f.Notify()
		f.View(func(tr *transcript.Transcript) { over = tr.Turn(turn) != nil && !tr.Turn(turn).Unfinished() })
		if !over {
			<-changed
		}
	}
}

func get(t *testing.T, ts *httptest.Server, query string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ts.URL+"/api/usage"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func TestJSON(t *testing.T) {
	ts := newUsageServer(t)
	today := time.Now().UTC().Format(time.DateOnly)
	_, body := get(t, ts, "?by=subject,model")
	want := `{"from":"` + time.Now().UTC().AddDate(0, 0, -29).Format(time.DateOnly) + `","to":"` + today + `","timezone":"UTC","by":["subject","model"],"groups":[` +
		`{"model":"euro","subject":"=bob","turns":1,"outcomes":{"completed":1},"input":1000,"output":100,"cache_read":0,"cache_write":0,"reasoning":0,"cost":{"EUR":"0.001"},"unpriced":0,"unreported":0,"duration":0},` +
		`{"model":"big","subject":"ann","turns":1,"outcomes":{"completed":1},"input":1000,"output":100,"cache_read":0,"cache_write":0,"reasoning":0,"cost":{"USD":"0.003"},"unpriced":0,"unreported":0,"duration":0},` +
		`{"model":"dark","subject":"ann","turns":1,"outcomes":{"completed":1},"input":1000,"output":100,"cache_read":0,"cache_write":0,"reasoning":0,"cost":{},"unpriced":1,"unreported":0,"duration":0}],` +
		`"total":{"turns":3,"outcomes":{"completed":3},"input":3000,"output":300,"cache_read":0,"cache_write":0,"reasoning":0,"cost":{"EUR":"0.001","USD":"0.003"},"unpriced":1,"unreported":0,"duration":0}}`
	// The durations of turns vary from run to run.
	var got, wanted any
	if err := json.Unmarshal([]byte(durations.ReplaceAllString(body, `"duration":0`)), &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if g, w := marshal(t, got), marshal(t, wanted); g != w {
		t.Errorf("\n got %s\nwant %s", g, w)
	}
	for query, turns := range map[string]string{
		"":                      `"by":["day"]`,
		"?by=":                  `"by":[],"groups":[],"total":{"turns":3`,
		"?from=" + today:        `"total":{"turns":3`,
		"?to=2026-01-01":        `"total":{"turns":0`,
		"?by=&subject=ann":      `"total":{"turns":0`, // of no tenant
		"?tenant=t&subject=ann": `"total":{"turns":2`,
		"?by=agent&by=tenant":   `"agent":"a","tenant":"t","turns":3`,
		"?format=json":          `"timezone":"UTC"`,
	} {
		if res, body := get(t, ts, query); res.StatusCode != 200 || !strings.Contains(body, turns) {
			t.Errorf("%q: %d %s, want %s", query, res.StatusCode, body, turns)
		}
	}
}

func TestAsked(t *testing.T) {
	ts := newUsageServer(t)
	for query, want := range map[string]string{
		"?from=yesterday": "invalid day", "?to=x": "invalid day", "?by=week": "dimension \\\"week\\\"", "?by=day,day": "repeated", "?format=xml": "it is json or csv",
		"?since=1": "unknown parameter", "?from=2020-01-01": "use 1 to 800", "?to=2026-01-01&to=2026-01-02": "2 times", "?from=2026-02-01&to=2026-01-01": "days",
	} {
		if res, body := get(t, ts, query); res.StatusCode != 400 || !strings.Contains(body, want) {
			t.Errorf("%q: %d %s, want 400 with %s", query, res.StatusCode, body, want)
		}
	}
	for _, c := range []struct {
		subject, tenant, query string
		status                 int
		want                   string
	}{
		{"ann", "t", "?by=subject", 200, `"total":{"turns":2`},
		{"ann", "t", "?subject=ann", 200, `"total":{"turns":2`},
		{"ann", "t", "?subject==bob", 403, "forbidden"},
		{"ann", "t", "?tenant=t2", 403, "forbidden"},
		{"ann", "t2", "", 200, `"total":{"turns":0`},
		{"carl", "t", "", 200, `"total":{"turns":0`},
	} {
		res, body := get(t, ts, c.query, server.HeaderSubject, c.subject, server.HeaderTenant, c.tenant)
		if res.StatusCode != c.status || !strings.Contains(body, c.want) || strings.Contains(body, "bob") {
			t.Errorf("%s of %s %q: %d %s", c.subject, c.tenant, c.query, res.StatusCode, body)
		}
	}
	if res, _ := get(t, ts, "", "Authorization", "Bearer wrong"); res.StatusCode != 401 {
		t.Errorf("with a wrong token: %d", res.StatusCode)
	}
}

func TestCSV(t *testing.T) {
	ts := newUsageServer(t)
	for _, how := range [][]string{{"&format=csv"}, {"", "Accept", "text/csv, application/json;q=0.5"}} {
		res, body := get(t, ts, "?by=subject,model"+how[0], how[1:]...)
		if ct := res.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/csv; charset=utf-8") {
			t.Errorf("content type %q", ct)
		}
		lines, err := csv.NewReader(strings.NewReader(body)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, l := range lines {
			if i > 0 {
				l[14] = "" // how long it took
			}
			got = append(got, strings.Join(l, " "))
		}
		want := []string{
			"subject model turns completed failed cancelled interrupted input output cache_read cache_write reasoning unpriced unreported duration_ms cost_EUR cost_USD",
			"'=bob euro 1 1 0 0 0 1000 100 0 0 0 0 0  0.001 ",
			"ann big 1 1 0 0 0 1000 100 0 0 0 0 0   0.003",
			"ann dark 1 1 0 0 0 1000 100 0 0 0 1 0   ",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if _, body := get(t, ts, "?by=&format=csv"); !strings.HasPrefix(body, "turns,completed") || !strings.Contains(body, "\r\n3,3,0,") {
		t.Errorf("the total alone: %q", body)
	}
	if res, _ := get(t, ts, "", "Accept", "application/json, text/csv"); !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		t.Error("a client that prefers JSON gets CSV")
	}
}

var durations = regexp.MustCompile(`"duration":\d+`)

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
