// Command badproxy runs a badnet proxy for tests that aren't written in Go. Its argument is the target's address. It prints its own
// address, and then, for each line of its input, the number of connections interrupted so far.
//
// The line "mend" stops the faults. The program exits at the end of its input, so it doesn't outlive the test that started it.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/leat-dev/leat/test/badnet"
)

func main() {
	var f badnet.Faults
	flag.Uint64Var(&f.Seed, "seed", 1, "seed of the faults")
	flag.IntVar(&f.Total, "cuts", -1, "number of connections to interrupt; negative for no limit")
	flag.IntVar(&f.MeanBytes, "mean", 4096, "mean number of bytes before a connection is interrupted")
	flag.DurationVar(&f.Stall, "stall", 50*time.Millisecond, "time without bytes before a stalled connection is closed")
	flag.Parse()
	p, err := badnet.Listen(flag.Arg(0), f)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(p.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "mend" {
			p.Mend()
		}
		fmt.Println(p.Cuts())
	}
	if err := p.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
