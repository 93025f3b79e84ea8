package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/app/serve"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

// documented is a metric in the table of docs/metrics.md.
type documented struct {
	kind   string
	labels []string
}

func documentedMetrics(t *testing.T) map[string]documented {
	t.Helper()
	b, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]documented{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(leat_[a-z_]+)` \\| (counter|gauge|histogram) \\| ([^|]*)\\| ([^|]+) \\|.*\\|$").FindAllStringSubmatch(string(b), -1) {
		if _, twice := all[m[1]]; twice {
			t.Errorf("%s is documented twice", m[1])
		}
		d := documented{kind: m[2]}
		for _, l := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(m[3], -1) {
			d.labels = append(d.labels, l[1])
		}
		slices.Sort(d.labels)
		all[m[1]] = d
	}
	if n := strings.Count(string(b), "\n| `"); n != len(all) {
		t.Errorf("%d rows, of which %d were parsed", n, len(all))
	}
	return all
}

// registered lists the names of Leat's own metrics, whether or not they have a value yet.
func registered(t *testing.T) []string {
	t.Helper()
	gw, err := gateway.New(gateway.Config{Journal: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	ch := make(chan *prometheus.Desc, 1000)
	for _, c := range serve.Collectors(gw, t.TempDir(), version()) {
		c.Describe(ch)
	}
	close(ch)
	var names []string
	for d := range ch {
		m := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("no name in %s", d)
		}
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

func TestMetricsAreDocumented(t *testing.T) {
	docs := documentedMetrics(t)
	names := registered(t)
	for _, name := range names {
		if _, ok := docs[name]; !ok {
			t.Errorf("%s is not in docs/metrics.md", name)
		}
	}
	for name := range docs {
		if !slices.Contains(names, name) {
			t.Errorf("docs/metrics.md has %s, which does not exist", name)
		}
	}
}

// The Grafana dashboard queries only documented metrics and labels.
func TestBoard(t *testing.T) {
	docs := documentedMetrics(t)
	b, err := os.ReadFile("../../../docs/grafana/leat.json")
	if err != nil {
		t.Fatal(err)
	}
	type panel struct {
		Title, Type string
		GridPos     *struct{ H, W, X, Y int }
		Targets     []struct{ Expr, LegendFormat string }
	}
	var board struct {
		Title, UID    string
		SchemaVersion int
		Panels        []panel
		Templating    struct {
			List []struct {
				Name, Type string
				Query      any
			}
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	if board.Title == "" || board.UID == "" || board.SchemaVersion == 0 || len(board.Panels) < 10 {
		t.Fatalf("board %q, uid %q, version %d, %d panels", board.Title, board.UID, board.SchemaVersion, len(board.Panels))
	}
	asked := map[string]bool{}
	check := func(where, expr string) {
		names := regexp.MustCompile(`[a-z_]*leat_[a-z_]+`).FindAllString(expr, -1)
		if len(names) == 0 {
			t.Errorf("%s queries no metric of Leat: %s", where, expr)
		}
		var known []string
		for _, name := range names {
			base := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if short, ok := strings.CutSuffix(name, suffix); ok && docs[short].kind == "histogram" {
					base = short
				}
			}
			d, ok := docs[base]
			if !ok {
				t.Errorf("%s: %s is not documented", where, name)
			}
			if d.kind == "histogram" && base == name {
				t.Errorf("%s: %s is a histogram: query its buckets, sum or count", where, name)
			}
			asked[base] = true
			known = append(known, d.labels...)
		}
		known = append(known, "le", "instance", "job")
		for _, m := range regexp.MustCompile(`\bby \(([^)]*)\)|\{([^}]*)\}`).FindAllStringSubmatch(expr, -1) {
			for _, l := range regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=|,|$)`).FindAllStringSubmatch(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(m[1]+m[2], ""), -1) {
				if !slices.Contains(known, l[1]) {
					t.Errorf("%s: label %s of %s is not documented", where, l[1], expr)
				}
			}
		}
	}
	for _, p := range board.Panels {
		if p.Type == "row" {
			continue
		}
		if p.GridPos == nil || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 || len(p.Targets) == 0 {
			t.Errorf("panel %q has no position or no query", p.Title)
		}
		for _, target := range p.Targets {
			check(p.Title, target.Expr)
		}
	}
	for _, name := range []string{"leat_turns_total", "leat_turn_first_text_seconds", "leat_commit_seconds", "leat_show_seconds", "leat_viewer_lag_seconds", "leat_client_mismatches_total", "leat_commits_failed_total", "leat_tokens_total"} {
		if !asked[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// scraped is what /metrics shows: types by metric, values by series.
type scraped struct {
	kinds  map[string]string
	series map[string]float64
}

var sample = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? (\S+)$`)

func scrape(t *testing.T, url string) scraped {
	t.Helper()
	res, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %v %s", res.StatusCode, err, b)
	}
	out := scraped{map[string]string{}, map[string]float64{}}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			out.kinds[name] = kind
		}
		if strings.HasPrefix(line, "#") || !strings.HasPrefix(line, "leat_") {
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("unknown line: %s", line)
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		out.series[m[1]+"{"+m[2]+"}"] = v
	}
	return out
}

// sum adds up the series of a metric that have all of the labels, which are in the notation of the exposition format.
func (s scraped) sum(name string, labels ...string) (n float64) {
	for k, v := range s.series {
		if strings.HasPrefix(k, name+"{") && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(k, l) }) {
			n += v
		}
	}
	return n
}

// check compares the scraped metrics with the documented ones: names, types and labels.
func (s scraped) check(t *testing.T) {
	t.Helper()
	docs := documentedMetrics(t)
	label := regexp.MustCompile(`([a-z_]+)="`)
	for _, key := range slices.Sorted(maps.Keys(s.series)) {
		name, rest, _ := strings.Cut(key, "{")
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if short, ok := strings.CutSuffix(name, suffix); ok && s.kinds[short] == "histogram" {
				name = short
			}
		}
		d, ok := docs[name]
		if !ok {
			t.Errorf("%s is not in docs/metrics.md", name)
			continue
		}
		if s.kinds[name] != d.kind {
			t.Errorf("%s is a %s, documented as %s", name, s.kinds[name], d.kind)
		}
		var labels []string
		for _, m := range label.FindAllStringSubmatch(rest, -1) {
			if m[1] != "le" {
				labels = append(labels, m[1])
			}
		}
		slices.Sort(labels)
		if !slices.Equal(labels, d.labels) {
			t.Errorf("%s has the labels %v, documented are %v", key, labels, d.labels)
		}
	}
}

// The metrics of a gateway that has been used have the documented names and labels, and contain no text of users.
func TestMetricsOfAScenario(t *testing.T) {
	s := serveIn(t, t.TempDir(), "demo?speed=0")
	ctx := t.Context()
	conversation, turn := s.begin("6 * 7")
	var cursor string
	err := s.Follow(ctx, conversation, func(u leat.Update) error {
		if cursor = u.Cursor; cursor != "" && u.Transcript.Turn(turn).State == transcript.TurnEnded {
			return leat.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// A reader that resumes, one with an invalid cursor, a repeated command, an invalid push, and a wrong path.
	for _, c := range []string{cursor, "nonsense"} {
		first := errors.New("first")
		err = s.Stream(ctx, conversation, leat.StreamOptions{Cursor: c}, func(f *leat.Frame) error {
			if f.Type == "snapshot" || c == cursor {
				return first
			}
			return nil
		})
		if !errors.Is(err, first) {
			t.Fatal(err)
		}
	}
	post := func(path, body string, want int) {
		t.Helper()
		res, err := http.Post(s.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if b, _ := io.ReadAll(res.Body); res.StatusCode != want {
			t.Fatalf("%s: %d %s", path, res.StatusCode, b)
		}
	}
	command := `{"type":"inject","key":"twice","message":{"text":"a secret text"}}`
	post("/api/conversations/"+conversation+"/commands", command, http.StatusOK)
	post("/api/conversations/"+conversation+"/commands", command, http.StatusOK)
	post("/api/conversations/"+conversation+"/turns?dialect=anthropic", "event: nonsense\ndata: {\"type\":\"nonsense\"}\n\nevent: message_start\ndata: nonsense\n\n", http.StatusCreated)
	post("/api/nowhere", "", http.StatusNotFound)

	eventually(t, func() string {
		got := scrape(t, s.URL)
		for _, want := range []struct {
			least  float64
			name   string
			labels []string
		}{
			{1, "leat_turns_total", []string{`agent="demo"`, `outcome="completed"`}},
			{1, "leat_turns_total", []string{`agent="push"`, `outcome="failed"`}},
			{1, "leat_turn_errors_total", []string{`code="invalid_stream"`}},
			{1, "leat_turn_first_text_seconds_count", []string{`agent="demo"`}},
			{2, "leat_turn_seconds_count", nil},
			{5, "leat_events_total", nil},
			{3, "leat_commit_seconds_count", nil},
			{3, "leat_show_seconds_count", nil},
			{1, "leat_viewer_resumes_total", []string{`surface="sse"`}},
			{1, "leat_viewer_snapshots_total", []string{`why="new"`}},
			{1, "leat_viewer_snapshots_total", []string{`why="invalid"`}},
			{1, "leat_commands_repeated_total", nil},
			{1, "leat_decode_faults_total", []string{`dialect="anthropic"`}},
			{1, "leat_decode_unknown_frames_total", []string{`dialect="anthropic"`}},
			{1, "leat_http_requests_total", []string{`route="-"`, `status="404"`}},
			{1, "leat_http_request_seconds_count", []string{`route="/api/conversations/{id}/commands"`}},
			{1, "leat_connections_open", nil},
			{1, "leat_build_info", nil},
			{4096, "leat_journal_bytes", nil},
			{4096, "leat_disk_free_bytes", nil},
		} {
			if n := got.sum(want.name, want.labels...); n < want.least {
				return fmt.Sprintf("%s%v is %v, want %v at least", want.name, want.labels, n, want.least)
			}
		}
		// The count of readers falls when they disconnect.
		if n := got.sum("leat_viewers"); n != 0 {
			return fmt.Sprintf("%v readers", n)
		}
		got.check(t)
		for k := range got.series {
			if strings.Contains(k, conversation) || strings.Contains(k, turn) || strings.Contains(k, "secret") {
				t.Errorf("%s contains text of a user", k)
			}
		}
		return ""
	})
	s.signals <- os.Interrupt
	s.ends()
}

// eventually calls a check until it reports no problem.
func eventually(t *testing.T, ask func() string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(waitLimit); ; {
		wrong := ask()
		if wrong == "" {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(wrong)
		}
	}
}
