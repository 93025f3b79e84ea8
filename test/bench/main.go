package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
)

// benchmark is one benchmark. run executes it once and returns the figures of that run, in the order in which they are printed.
type benchmark struct {
	name    string
	summary string
	run     func(ctx context.Context, e *env) ([]measure, error)
}

// The cheap ones come first, so that a broken tree shows early. Each starts its own processes and removes its data, so their order
// and number don't change the figures.
var benchmarks = []benchmark{
	{"decode", "decoding a delta, by dialect; in this process", benchDecode},
	{"journal", "durable appends from many streams, with compaction; journal/sqlite in this process", benchJournal},
	{"latency", "from a producer's write to a viewer's read, durable; the real program", benchLatency},
	{"fanout", "one conversation, many viewers; the real program", benchFanout},
	{"join", "joining a long turn that is still running; the real program", benchJoin},
	{"stalled", "viewers that stop reading; the real program", benchStalled},
}

// env is the environment of a run, shared by all benchmarks.
type env struct {
	size size
	dir  string // temporary folder for data, on the disk that is measured
	leat *binary
	log  io.Writer // progress messages
}

// logf writes a line of progress. The figures alone go to standard output, so that a pipe gets nothing else.
func (e *env) logf(format string, args ...any) { fmt.Fprintf(e.log, "  ... "+format+"\n", args...) }

// options are the values of the flags.
type options struct {
	short   bool
	only    string
	runs    int
	dir     string
	profile string
}

func main() {
	// The baselines are children of this program: it starts itself again with another environment, and parses no flags then.
	if ran, err := childMain(); ran {
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench child:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.BoolVar(&o.short, "short", false, "smaller loads and shorter runs; the figures aren't comparable with those of the documentation")
	flag.StringVar(&o.only, "only", "", "run only these, separated by commas: "+names())
	flag.IntVar(&o.runs, "runs", 3, "number of runs of each benchmark; the median is printed")
	flag.StringVar(&o.dir, "dir", "", "folder on the disk to measure (default: the system's folder for temporary files)")
	flag.StringVar(&o.profile, "profile", "", "also write CPU profiles of the program measured into this folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// names lists the names of all benchmarks for messages.
func names() string {
	list := make([]string, len(benchmarks))
	for i, b := range benchmarks {
		list[i] = b.name
	}
	return strings.Join(list, ", ")
}

// choose returns the benchmarks of a comma-separated list in its order, or all if the list is empty.
func choose(only string) ([]benchmark, error) {
	if only == "" {
		return benchmarks, nil
	}
	var chosen []benchmark
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(benchmarks, func(b benchmark) bool { return b.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown benchmark %q; the benchmarks are %s", name, names())
		}
		chosen = append(chosen, benchmarks[i])
	}
	return chosen, nil
}

// run prints the description of the machine and runs the chosen benchmarks in a temporary folder. Figures are written to out,
// progress to log.
func run(ctx context.Context, o options, out, log io.Writer) error {
	chosen, err := choose(o.only)
	if err != nil {
		return err
	}
	// All data of a run is in one folder, which is removed at the end. The folder is on the disk that the options name, because the
	// figures of the journal measure that disk.
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
		fmt.Fprint(out, "; SHORT: not comparable")
	}
	fmt.Fprintln(out)
	return measureAll(ctx, e, chosen, o.runs, out)
}

// measureAll runs each benchmark the given number of times and prints its figures. A failed benchmark doesn't stop the others.
// Missed targets are listed at the end, but they aren't errors, because they depend on the machine.
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
		// An interrupt makes the running benchmark fail. It is printed above as such, and the others are not begun.
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if len(missed) > 0 {
		fmt.Fprintf(out, "\ntargets missed: %s\n", strings.Join(missed, "; "))
	}
	return failed
}
