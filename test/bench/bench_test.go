package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
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
	for _, b := range benchmarks {
		t.Run(b.name, func(t *testing.T) {
			ms, err := b.run(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			if len(ms) == 0 {
				t.Fatal("no figures")
			}
			var r results
			r.add(ms)
			var out strings.Builder
			r.print(&out)
			t.Logf("\n%s", &out)
		})
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
		math.Inf(1): "-",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) is %q, want %q", v, got, want)
		}
	}
}

func TestResults(t *testing.T) {
	var r results
	for _, v := range []float64{1, 9, 2} {
		r.add([]measure{{name: "most", value: v, most: 3}, {name: "least", value: v, least: 3}, {name: "plain", value: v}})
	}
	if got := fmt.Sprint(r.missed()); got != "[least]" {
		t.Errorf("missed %s, want [least]: the medians are 2", got)
	}
	var out strings.Builder
	r.print(&out)
	for _, want := range []string{"(1.00 to 9.00)", "at most 3.00: reached", "at least 3.00: MISSED"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed %q, without %q", &out, want)
		}
	}
}

// TestViewer splits a stream of tokens at every byte. It also checks that lost and duplicated tokens are detected.
func TestViewer(t *testing.T) {
	var whole []byte
	for i := range 3 {
		whole = append(whole, "id: e.1\ndata: {\"text\":\""...)
		whole = append(appendToken(whole, i, 5), "\"}\n\n"...)
	}
	for cut := range whole {
		v := &viewer{}
		v.to.Store(1 << 62)
		rest, err := v.scan(whole[:cut], 10)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.scan(append(append([]byte(nil), rest...), whole[cut:]...), 10); err != nil {
			t.Fatal(err)
		}
		if v.seen.Load() != 3 || v.frames.Load() != 3 || len(v.samples) != 3 || v.samples[0] != 5 {
			t.Fatalf("cut at %d: %d tokens, %d frames, samples %v", cut, v.seen.Load(), v.frames.Load(), v.samples)
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

func TestChoose(t *testing.T) {
	if _, err := choose("decode,nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("unknown benchmark: %v", err)
	}
	got, err := choose("join,decode")
	if err != nil || len(got) != 2 || got[0].name != "join" {
		t.Errorf("chose %v, %v", got, err)
	}
}

func TestChildThatFailsToStart(t *testing.T) {
	if p, err := startChild("blob", "no number"); err == nil {
		t.Errorf("started: %v", p.stop())
	}
}

// TestFollower splits a stream of frames at every byte. The folded text must not change.
func TestFollower(t *testing.T) {
	p := &producer{sent: 2}
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
		f := &follower{viewer: &viewer{r: io.MultiReader(strings.NewReader(stream[:cut]), strings.NewReader(stream[cut:]))}}
		for range 3 {
			data, err := f.next()
			if err != nil {
				t.Fatal(err)
			}
			if err := f.fold(data); err != nil {
				t.Fatal(err)
			}
		}
		if err := checkTokens(f.text(), p); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if f.frames != 3 || f.bytes != len(stream) || f.cursor != "e.4" {
			t.Fatalf("cut at %d: %d frames, %d bytes of %d, cursor %s", cut, f.frames, f.bytes, len(stream), f.cursor)
		}
	}
	if err := checkTokens(string(text[:tokenLen]), p); err == nil {
		t.Error("a lost token isn't detected")
	}
	if err := checkTokens(string(text[:tokenLen])+string(text[:tokenLen]), p); err == nil {
		t.Error("a duplicated token isn't detected")
	}
}
