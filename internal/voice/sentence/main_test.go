package sentence

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain makes the short form of the property tests the same in every run. The long form (LEAT_FULL) draws new texts each time.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("LEAT_FULL") == "" && flag.Lookup("rapid.seed").Value.String() == "0" {
		if err := flag.Set("rapid.seed", "1"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
