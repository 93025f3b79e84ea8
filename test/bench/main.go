package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

// benchmark measures one thing. run gives the figures of one run.
type benchmark struct {
	name    string
	summary string
	run     func(ctx context.Context, e *env) ([]measure, error)
}

var benchmarks = []benchmark{
	{"decode", "decoding a delta, by dialect; in this process", benchDecode},
	{"journal", "durable appends from many streams, with settling on; journal/sqlite in this process", benchJournal},
	{"latency", "from a producer's byte to a viewer's, durable; the real program", benchLatency},
	{"fanout", "one conversation, many viewers; the real program", benchFanout},
	{"join", "joining a long turn that goes on; the real program", benchJoin},
	{"stalled", "viewers that stop reading; the real program", benchStalled},
}

// env is what a run needs to know.
type env struct {
	size size
	dir  string // for data; on the disk that is measured
	leat *binary
	log  io.Writer // progress, for people
}

func (e *env) logf(format string, args ...any) { fmt.Fprintf(e.log, "  ... "+format+"\n", args...) }

// options are the flags.
type options struct {
	short   bool
	only    string
	runs    int
	dir     string
	profile string
}

func main() {
	if ran, err := childMain(); ran {
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench child:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.BoolVar(&o.short, "short", false, "smaller loads and shorter runs: for a look, not for quoting")
	flag.StringVar(&o.only, "only", "", "run only these, separated by commas: "+names())
	flag.IntVar(&o.runs, "runs", 3, "runs of each; the median is told")
	flag.StringVar(&o.dir, "dir", "", "where data is written: the disk that is measured (default: the system's folder for temporary files)")
	flag.StringVar(&o.profile, "profile", "", "also write CPU profiles of the program measured into this folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func names() string {
	all := make([]string, len(benchmarks))
	for i, b := range benchmarks {
		all[i] = b.name
	}
	return strings.Join(all, ", ")
}

func choose(only string) ([]benchmark, error) {
	if only == "" {
		return benchmarks, nil
	}
	var out []benchmark
	for name := range strings.SplitSeq(only, ",") {
		found := false
		for _, b := range benchmarks {
			if b.name == name {
				out, found = append(out, b), true
			}
		}
		if !found {
			return nil, fmt.Errorf("no benchmark is named %q; there are %s", name, names())
		}
	}
	return out, nil
}

func run(ctx context.Context, o options, out, log io.Writer) error {
	chosen, err := choose(o.only)
	if err != nil {
		return err
	}
	e := &env{size: full, log: log}
	if o.short {
		e.size = short
	}
	if e.dir, err = os.MkdirTemp(o.dir, "leat-bench"); err != nil {
		return err
	}
	defer os.RemoveAll(e.dir)
	e.leat = &binary{dir: e.dir, profile: o.profile}
	if err := describe(out, e.dir); err != nil {
		return err
	}
	fmt.Fprintf(out, "runs      %d of each, medians (lowest to highest)", o.runs)
	if o.short {
		fmt.Fprint(out, "; SHORT: not for quoting")
	}
	fmt.Fprintln(out)
	return measureAll(ctx, e, chosen, o.runs, out)
}

func measureAll(ctx context.Context, e *env, chosen []benchmark, runs int, out io.Writer) error {
	var failed error
	var missed []string
	for _, b := range chosen {
		fmt.Fprintf(out, "\n%s: %s\n", b.name, b.summary)
		var r results
		for i := range runs {
			fmt.Fprintf(e.log, "%s, run %d of %d\n", b.name, i+1, runs)
			ms, err := b.run(ctx, e)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", b.name, err))
				fmt.Fprintf(out, "  FAILED: %v\n", err)
				break
			}
			r.add(ms)
		}
		r.print(out)
		for _, name := range r.missed() {
			missed = append(missed, b.name+": "+name)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if len(missed) > 0 {
		fmt.Fprintf(out, "\nnot reached: %s\n", strings.Join(missed, "; "))
	}
	return failed
}
