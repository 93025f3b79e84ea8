package attacks

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/server"
)

// How long a check takes tells nothing of where a token is wrong. Medians of calls that alternate are compared, so that
// what else the machine does counts for all alike; many calls at a time, since a clock may be coarse. What a token gives away
// it gives away each time, so that once alike is enough.
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
