package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
)

// figure is what the command measures, and how much of it is allowed. Each limit is a constant next to its figure,
// and should be changed to the current value whenever that has improved, so that the tree never gets worse again.
type figure struct {
	name      string
	value     float64
	limit     float64
	isMinimum bool     // the limit is a lower bound
	of        string   // what the value is a share or number of
	list      []string // the places that count
}

// exceeded reports whether the figure violates its limit.
func (f figure) exceeded() bool {
	if f.isMinimum {
		return f.value < f.limit
	}
	return f.value > f.limit
}

// measure computes all figures of the tree in the current folder, which must be the root of the module.
func measure() ([]figure, error) {
	t, err := load("./...")
	if err != nil {
		return nil, err
	}
	comments, err := t.comments()
	return []figure{t.names(), t.arrows(module + "internal/gateway"), t.chains(), comments, t.exports()}, err
}

// main prints each figure with its limit. The exit status is 1 if a figure exceeds its limit, and 2 if the tree can't
// be loaded, for example because it doesn't compile.
func main() {
	list := flag.String("list", "", "print every place that counts for `FIGURE`")
	flag.Parse()
	figures, err := measure()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(2)
	}
	failed := false
	for _, f := range figures {
		relation := "at most"
		if f.isMinimum {
			relation = "at least"
		}
		mark := "ok    "
		if f.exceeded() {
			failed, mark = true, "FAILED"
		}
		fmt.Printf("%s %-8s %6.1f %s, %s %.1f\n", mark, f.name, f.value, f.of, relation, f.limit)
		if *list == f.name {
			slices.Sort(f.list)
			for _, l := range f.list {
				fmt.Println("  " + l)
			}
		}
	}
	if failed {
		os.Exit(1)
	}
}
