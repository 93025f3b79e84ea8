// Command badproxy runs the bad network for tests that are not written in Go. It prints where it listens, then, for each line
// that it reads, how many connections it has cut; the line "mend" ends the faults. It ends with its input.
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
	flag.IntVar(&f.Total, "cuts", -1, "how many connections are cut")
	flag.IntVar(&f.Mean, "mean", 4096, "about how many bytes a connection carries")
	flag.DurationVar(&f.Stall, "stall", 50*time.Millisecond, "how long a stalled connection is silent before it is cut")
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
