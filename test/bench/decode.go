package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// decoded is what the benchmarks of dialect/all print for one format, by unit.
type decoded struct {
	format string
	delta  map[string]float64 // ns/op, allocs/op, and the metrics frame-B, goal-ns and json-ns
	state  map[string]float64
}

// benchDecode measures row P9 with the benchmarks of dialect/all: one frame a write, for every format. Their table of frames is not
// repeated here.
func benchDecode(ctx context.Context, e *env, t *table) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark(Delta|State)$", "-benchtime", e.size.decodeTime.String(), "./dialect/all")
	var err error
	if cmd.Dir, err = output(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/leat-dev/leat")); err != nil {
		return err
	}
	text, err := output(cmd)
	if err != nil {
		return err
	}
	formats, err := parseBenchmarks(text)
	if err != nil {
		return err
	}
	reached := 0.0
	for _, f := range formats {
		t.add("P9 "+f.format, "Leat", f.delta["ns/op"]/1000)
		t.add("P9 "+f.format, "raw, encoding/json", f.delta["json-ns"]/1000)
		goal := f.delta["goal-ns"] / 1000
		t.setGoal("P9 "+f.format, goal)
		if f.delta["ns/op"] <= f.delta["goal-ns"] {
			reached++
		}
		e.logf("%s: %.2f µs of %.2f, %.0f allocations, State %.2f µs", f.format, f.delta["ns/op"]/1000, goal, f.delta["allocs/op"], f.state["ns/op"]/1000)
	}
	t.add("P9 formats", "Leat", reached)
	t.add("P9 allocs", "Leat", highest(formats, func(f decoded) float64 { return f.delta["allocs/op"] }))
	t.add("P9 state", "Leat", highest(formats, func(f decoded) float64 { return f.state["ns/op"] / 1000 }))
	return nil
}

// highest returns the highest value of all formats.
func highest(formats []decoded, of func(decoded) float64) (v float64) {
	for _, f := range formats {
		v = max(v, of(f))
	}
	return v
}

// parseBenchmarks reads the lines of go test -bench, which look like
//
//	BenchmarkDelta/gemini-2    12345    678 ns/op    400 frame-B    2 allocs/op
func parseBenchmarks(text string) (formats []decoded, err error) {
	index := map[string]int{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		kind, name, ok := strings.Cut(strings.TrimPrefix(line, "Benchmark"), "/")
		if !ok || len(fields) < 4 || !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		name = strings.Fields(name)[0]
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i] // the number of CPUs
			}
		}
		values := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			if values[fields[i+1]], err = strconv.ParseFloat(fields[i], 64); err != nil {
				return nil, fmt.Errorf("benchmark %q: %w", line, err)
			}
		}
		if _, ok := index[name]; !ok {
			index[name] = len(formats)
			formats = append(formats, decoded{format: name})
		}
		if kind == "Delta" {
			formats[index[name]].delta = values
		} else {
			formats[index[name]].state = values
		}
	}
	for _, f := range formats {
		if f.delta == nil || f.state == nil {
			return nil, fmt.Errorf("format %s was not measured", f.format)
		}
	}
	if len(formats) == 0 {
		return nil, fmt.Errorf("no benchmark in %q", text)
	}
	return formats, nil
}

// decodeFormats are the formats in the order of the table. A test compares them with the registry.
var decodeFormats = []string{
	"a2a", "acp", "ag-ui", "agentsdk", "aisdk", "anthropic", "eliza-actions", "eliza-chat", "gemini", "langgraph", "leat", "letta", "letta-code",
	"ollama", "openai-chat", "openai-responses", "openclaw",
}
