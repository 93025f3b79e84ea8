package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leat-dev/leat/dialect/all"
)

func TestMain(m *testing.M) {
	if ran, err := childMain(); ran {
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench child:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestAll runs every benchmark once with tiny loads. It checks that they work and that no token is lost, but no speed.
func TestAll(t *testing.T) {
	e := &env{size: tiny, dir: t.TempDir(), log: testLog{t}}
	e.leat = &binary{dir: e.dir}
	figures := &table{}
	for _, b := range benchmarks {
		t.Run(b.name, func(t *testing.T) {
			if err := b.run(t.Context(), e, figures); err != nil {
				t.Fatal(err)
			}
		})
	}
	var out strings.Builder
	figures.print(&out, allRows())
	t.Logf("\n%s", &out)
	for _, r := range allRows() {
		isTiny := r.number != "P4" || strings.Contains(r.key, " 10 ") // the streams of the size tiny
		if isTiny && len(figures.values[r.key]["Leat"]) == 0 {
			t.Errorf("row %s has no figure", r.key)
		}
	}
	for key := range figures.values {
		if !slices.ContainsFunc(allRows(), func(r row) bool { return r.key == key }) {
			t.Errorf("figure %s has no row", key)
		}
	}
}

type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Logf("%s", strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

func TestDescribe(t *testing.T) {
	var out strings.Builder
	if err := describe(&out, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cores", "fdatasync", "go1."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("description %q does not name %s", &out, want)
		}
	}
}

func TestQuantiles(t *testing.T) {
	samples := make([]int64, 100)
	for i := range samples {
		samples[len(samples)-1-i] = int64(i + 1) // 1 to 100 in descending order
	}
	got := quantiles(samples, 0, 0.5, 0.99, 0.999, 1)
	for i, want := range []int64{1, 50, 99, 100, 100} {
		if int64(got[i]) != want {
			t.Errorf("quantile %d is %d, want %d", i, got[i], want)
		}
	}
	if got := quantiles(nil, 0.5); got[0] != 0 {
		t.Errorf("quantile of nothing is %d", got[0])
	}
}

func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 4}, 4}, {[]float64{4, 1, 2, 100}, 3}} {
		if got := median(tc.of); got != tc.want {
			t.Errorf("median of %v is %v, want %v", tc.of, got, tc.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.001234: "0.0012", 0.5: "0.50", 1.7: "1.70", 12.34: "12.3", 123.4: "123", 1234: "1,234", 1234567.8: "1,234,568", -1500: "-1,500",
		math.Inf(1): "–",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) is %q, want %q", v, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	var figures table
	for _, v := range []float64{1, 9, 2} {
		for _, key := range []string{"most", "ratio", "least"} {
			figures.add(key, "Leat", v)
			figures.add(key, "raw, slow", 2*v)
			figures.add(key, "raw, fast", v)
		}
		figures.add("most", "Peer", 7)
		figures.add("merged", "Leat", 1)
		figures.add("frames", "Leat", 0.5)
	}
	var out strings.Builder
	figures.print(&out, []row{
		{key: "most", number: "P1", what: "m", most: 3},
		{key: "ratio", number: "P1", what: "r", mostRatio: 0.5},
		{key: "least", number: "P2", what: "l", leastRatio: 0.75},
		{key: "none", number: "P3", what: "n"},
		{key: "merged", number: "P4", what: "f", most: 2, frames: "frames"},
	})
	want := `| # | figure | raw | Leat | ratio | goal |  | Peer |
|---|---|---|---|---|---|---|---|
| P1 | m | 2.00 | 2.00 (1.00–9.00) | 1.00 | ≤ 3.00 | reached | 7.00 |
|  | r | 2.00 | 2.00 (1.00–9.00) | 1.00 | ≤ 0.5 × raw | **missed** |  |
| P2 | l | 4.00 | 2.00 (1.00–9.00) | 0.50 | ≥ 0.75 × raw | **missed** |  |
| P4 | f |  | 1.00 (1.00–1.00) |  | ≤ 2.00 | not valid: merged |  |
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", &out, want)
	}
}

// TestViewer splits a stream of tokens in each framing at every byte. It also checks that lost and duplicated tokens are detected.
func TestViewer(t *testing.T) {
	var stream, frames, pieces []byte
	for i := range 3 {
		event := append([]byte("id: e.1\ndata: {\"text\":\""), appendToken(nil, i, 5)...)
		event = append(event, strings.Repeat(".", 200)+"\"}\n\n"...)
		stream = append(stream, event...)
		pieces = append(fmt.Appendf(pieces, "%x\r\n", len(event)), append(event, "\r\n"...)...)
		frames = append(append(frames, 0x81, 126, byte(len(event)>>8), byte(len(event))), event...)
		frames = append(frames, 0x89, 1, 'p')
	}
	const ok, upgraded = "HTTP/1.1 200 OK\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n"
	for name, tc := range map[string]struct {
		bytes, answer string
		framing       func() framing
	}{
		"plain":     {string(stream), "", func() framing { return plain{} }},
		"response":  {ok + "\r\n" + string(stream), "", func() framing { return &response{} }},
		"chunked":   {ok + "Transfer-Encoding: chunked\r\n\r\n" + string(pieces) + "0\r\n\r\n", "", func() framing { return &response{} }},
		"websocket": {upgraded + string(frames), "go" + strings.Repeat("\x8a\x81\x00\x00\x00\x00p", 3), func() framing { return &response{after: []byte("go")} }},
	} {
		for cut := range tc.bytes {
			var samples []int64
			v := &viewer{access: access{framing: tc.framing(), count: "id: "}, to: 1 << 62, samples: &samples}
			var answer []byte
			for _, b := range []string{tc.bytes[:cut], tc.bytes[cut:]} {
				a, err := v.framing.decode([]byte(b), func(b []byte) error { return v.receive(b, 10) })
				if err != nil {
					t.Fatalf("%s, cut at %d: %v", name, cut, err)
				}
				answer = append(answer, a...)
			}
			if v.next != 3 || v.frames != 3 || len(samples) != 3 || samples[0] != 5 || string(answer) != tc.answer {
				t.Fatalf("%s, cut at %d: %d tokens, %d frames, samples %v, answer %q", name, cut, v.next, v.frames, samples, answer)
			}
		}
	}
	for name, numbers := range map[string][]int{"lost": {0, 2}, "doubled": {0, 0}, "late": {1}} {
		v := &viewer{}
		var b []byte
		for _, n := range numbers {
			b = appendToken(b, n, 0)
		}
		if _, err := v.scan(b, 0); err == nil {
			t.Errorf("%s: not detected", name)
		}
	}
}

func TestChunked(t *testing.T) {
	p := &producer{frame: chunked, prefix: elizaPrefix, suffix: elizaSuffix}
	b := string(p.frame(nil, p))
	size, data, _ := strings.Cut(b, "\r\n")
	if n, err := strconv.ParseUint(size, 16, 32); err != nil || int(n) != len(data)-2 || !strings.HasPrefix(data, elizaPrefix+"^000000.") {
		t.Errorf("chunk %q: %v", b, err)
	}
}

func TestParseBenchmarks(t *testing.T) {
	const text = "goos: linux\nBenchmarkDelta/a-b-2  \t 100\t  50.5 ns/op\t 700 goal-ns\t 2 allocs/op\nBenchmarkState/a-b-2 \t 10\t 7 ns/op\t 0 B/op\nPASS\n"
	got, err := parseBenchmarks(text)
	if err != nil || len(got) != 1 || got[0].format != "a-b" || got[0].delta["ns/op"] != 50.5 || got[0].delta["goal-ns"] != 700 || got[0].state["ns/op"] != 7 {
		t.Errorf("parsed %+v, %v", got, err)
	}
	if _, err := parseBenchmarks("PASS\n"); err == nil {
		t.Error("a run without benchmarks isn't an error")
	}
}

// TestFormats compares the rows of P9 with the registry.
func TestFormats(t *testing.T) {
	var names []string
	for _, d := range all.Registry().List() {
		names = append(names, d.Name)
	}
	if slices.Sort(names); !slices.Equal(names, decodeFormats) {
		t.Errorf("the table has the formats %v, the registry %v", decodeFormats, names)
	}
}

func TestChoose(t *testing.T) {
	if _, err := choose("fanout,nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("unknown benchmark: %v", err)
	}
	got, err := choose("storm,fanout")
	if err != nil || len(got) != 2 || got[0].name != "storm" {
		t.Errorf("chose %v, %v", got, err)
	}
}

func TestChildThatFailsToStart(t *testing.T) {
	if p, err := startChild("blob", "no", "number"); err == nil {
		t.Errorf("started: %v", p.stop())
	}
}

// TestFollower splits a stream of frames at every byte. The folded text must not change.
func TestFollower(t *testing.T) {
	var text []byte
	for i := range 2 {
		text = appendToken(text, i, 7)
	}
	stream := ": heartbeat\n\nid: e.3\ndata: {\"type\":\"hello\"}\n\n" +
		"id: e.3\ndata: {\"type\":\"snapshot\",\"conversation\":\"c\",\"cursor\":\"e.3\",\"epoch\":\"e\",\"reset\":true,\"first\":\"m\",\"transcript\":" +
		"{\"seq\":3,\"messages\":[{\"id\":\"m\",\"turn\":\"t\",\"role\":\"assistant\",\"parts\":[{\"id\":\"p\",\"kind\":\"text\",\"text\":\"" + string(text[:tokenLen]) + "\"}]}],\"turns\":[]}}\n\n" +
		"id: e.4\ndata: {\"type\":\"batch\",\"conversation\":\"c\",\"cursor\":\"e.4\",\"seq\":4,\"events\":[{\"seq\":4,\"at\":1,\"turn\":\"t\",\"type\":\"part.append\",\"message\":\"m\",\"part\":\"p\",\"offset\":25,\"text\":\"" +
		string(text[tokenLen:]) + "\"}]}\n\n"
	stream = strings.Replace(stream, `"offset":25`, fmt.Sprintf(`"offset":%d`, tokenLen), 1)
	for cut := range len(stream) {
		f := &follower{conn: &viewer{access: access{framing: plain{}}}}
		f.buf = append(f.buf, stream[:cut]...)
		f.conn.fd = pipeOf(t, stream[cut:])
		for range 3 {
			data, err := f.next()
			if err != nil {
				t.Fatal(err)
			}
			if err := f.fold(data); err != nil {
				t.Fatal(err)
			}
		}
		if err := checkTokens(f.text(), 2, ""); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if f.frames != 3 || f.bytes != len(stream) || f.cursor != "e.4" {
			t.Fatalf("cut at %d: %d frames, %d bytes of %d, cursor %s", cut, f.frames, f.bytes, len(stream), f.cursor)
		}
	}
	if err := checkTokens(string(text[:tokenLen]), 2, ""); err == nil {
		t.Error("a lost token isn't detected")
	}
	if err := checkTokens(string(text[:tokenLen])+string(text[:tokenLen]), 2, ""); err == nil {
		t.Error("a duplicated token isn't detected")
	}
}

// pipeOf returns a descriptor from which a text can be read.
func pipeOf(t *testing.T, text string) int {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fds[0]) })
	if err := errors.Join(writeAll(fds[1], []byte(text)), unix.Close(fds[1])); err != nil {
		t.Fatal(err)
	}
	return fds[0]
}
