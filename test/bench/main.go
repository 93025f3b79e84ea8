package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

// benchmark is one benchmark. run executes one round and adds its figures to the table.
type benchmark struct {
	name    string
	summary string
	run     func(ctx context.Context, e *env, t *table) error
}

// Each benchmark starts its own processes and removes its data, so the order and number of benchmarks don't change the figures.
var benchmarks = []benchmark{
	{"fanout", "P1, P2: one conversation, many viewers", benchFanout},
	{"idle", "P3: viewers that wait", benchIdle},
	{"latency", "P4: from a provider's write to a viewer's read", benchLatency},
	{"appends", "P5: durable appends of many streams", benchAppends},
	{"resume", "P6: one viewer far behind", benchResume},
	{"storm", "P7: many viewers resume at once", benchStorm},
	{"stalled", "P8: viewers that stop reading", benchStalled},
	{"decode", "P9: decoding a delta", benchDecode},
	{"many", "P10: many conversations, and few events", benchMany},
	{"join", "joining a long turn", benchJoin},
}

// env is the environment of a run, shared by all benchmarks.
type env struct {
	size size
	dir  string // temporary folder for data, on the disk that is measured
	leat *binary
	log  io.Writer // progress messages

	frameSize int    // bytes of one delivery by the gateway; 0 before it is known
	peerPath  string // the program of the peers, or empty
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
	peers   bool
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
	flag.IntVar(&o.runs, "runs", 3, "number of rounds of each benchmark; the median is printed")
	flag.StringVar(&o.dir, "dir", "", "folder on the disk to measure (default: the system's folder for temporary files)")
	flag.StringVar(&o.profile, "profile", "", "also write CPU profiles of the program measured into this folder")
	flag.BoolVar(&o.peers, "peers", false, "also measure Centrifuge and NATS, which are downloaded and built as a module of their own")
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

// run prints the description of the machine, runs the chosen benchmarks in a temporary folder and prints the table. Figures are written to
// out, progress to log.
func run(ctx context.Context, o options, out, log io.Writer) error {
	chosen, err := choose(o.only)
	if err != nil {
		return err
	}
	// All data of a run is in one folder, which is removed at the end. The folder is on the disk that the options name, because the
	// figures of durable writes measure that disk.
	e := &env{size: full, log: log}
	if o.short {
		e.size = short
	}
	if e.dir, err = os.MkdirTemp(o.dir, "leat-bench"); err != nil {
		return err
	}
	defer os.RemoveAll(e.dir)
	e.leat = &binary{dir: e.dir, profile: o.profile}
	if o.peers {
		if e.peerPath, err = buildPeers(ctx, e.dir); err != nil {
			return err
		}
	}
	if err := describe(out, e.dir); err != nil {
		return err
	}
	fmt.Fprintf(out, "- Rounds: %d, medians (lowest–highest)", o.runs)
	if o.short {
		fmt.Fprint(out, "; short, so not comparable with others")
	}
	fmt.Fprintln(out)
	t := &table{}
	begin := time.Now()
	all0, own0, err1 := busyTime()
	err = measureAll(ctx, e, t, chosen, o.runs)
	all1, own1, err2 := busyTime()
	if err1 == nil && err2 == nil {
		others := float64(all1-all0-(own1-own0)) / float64(time.Since(begin)) / float64(runtime.NumCPU())
		fmt.Fprintf(out, "- Other programs took %.0f %% of the machine meanwhile. Above some 5 %% the figures aren't valid.\n\n", 100*max(0, others))
	}
	t.print(out, headline)
	fmt.Fprint(out, "\nMore figures of the same rounds:\n\n")
	t.print(out, details)
	return err
}

// measureAll runs the rounds of each benchmark. A failed benchmark doesn't stop the others.
func measureAll(ctx context.Context, e *env, t *table, chosen []benchmark, runs int) error {
	var failed error
	for _, b := range chosen {
		for i := range runs {
			fmt.Fprintf(e.log, "%s (%s), round %d of %d\n", b.name, b.summary, i+1, runs)
			if err := b.run(ctx, e, t); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", b.name, err))
				break
			}
			// An interrupt makes the running benchmark fail. The others are not begun.
			if ctx.Err() != nil {
				return failed
			}
		}
	}
	return failed
}
