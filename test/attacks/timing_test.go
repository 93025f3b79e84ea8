package attacks

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/server"
)

// The time of a check doesn't depend on how much of a wrong token is right. The test compares medians of alternating calls, so that other
// load on the machine affects all tokens alike, and measures many calls at a time because the clock may be coarse. A real difference would
// show in every round, so one round without a difference is enough.
func TestTiming(t *testing.T) {
	s := server.New(server.Options{Token: token})
	r, err := http.NewRequest(http.MethodGet, "http://localhost/", nil)
	if err != nil {
		t.Fatal(err)
	}
	guesses := []string{
		"x" + token[1:],            // wrong at its first byte
		token[:len(token)-1] + "x", // wrong at its last one
	}
	const at = 50
	for try := 1; ; try++ {
		took := make([][]time.Duration, len(guesses))
		for range 20_000 / at {
			for i, g := range guesses {
				begin := time.Now()
				for range at {
					if _, err := s.Authenticate(r, g); err == nil {
						t.Fatal("a wrong token is good")
					}
				}
				took[i] = append(took[i], time.Since(begin))
			}
		}
		for _, d := range took {
			slices.Sort(d)
		}
		first, last := took[0][len(took[0])/2], took[1][len(took[1])/2]
		if ratio := float64(last) / float64(first); ratio < 1.2 && ratio > 1/1.2 {
			return
		} else if try == 5 {
			t.Fatalf("%d times wrong at the first byte take %v, at the last one %v", at, first, last)
		}
	}
}
