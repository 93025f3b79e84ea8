package sentence_test

import (
	"fmt"

	"github.com/leat-dev/leat/internal/voice/sentence"
)

// The deltas of an answer end anywhere. Each unit is printed as soon as it can be spoken.
func ExampleSegmenter() {
	s := sentence.New("en")
	for _, delta := range []string{
		"Pi is 3", ".", "14, says Dr", ". Smith. See [the", " docs](https://example.com).\n\n``", "`go\nfmt.Println()\n", "```\n\n- **One**", "\n- Two 🎉",
	} {
		for _, u := range s.Write(delta) {
			fmt.Printf("%d-%d %q\n", u.Start, u.End, u.Text)
		}
	}
	for _, u := range s.Close() {
		fmt.Printf("%d-%d %q\n", u.Start, u.End, u.Text)
	}
	// Output:
	// 0-28 "Pi is 3.14, says Dr. Smith."
	// 28-65 "See the docs."
	// 65-72 "code block"
	// 72-90 ""
	// 90-101 "One"
	// 101-111 "Two"
}

// The answer pauses, for instance while the agent uses a tool. What is certainly a sentence is
// spoken; the number may still become 3.5.
func ExampleSegmenter_Flush() {
	s := sentence.New("en")
	s.Write("Done. The version is 3.")
	for _, u := range s.Flush() {
		fmt.Println(u.Text)
	}
	for _, u := range s.Write("5.") {
		fmt.Println(u.Text)
	}
	for _, u := range s.Close() {
		fmt.Println(u.Text)
	}
	// Output:
	// Done.
	// The version is 3.5.
}

func ExampleTakeCompleteSentences() {
	sentences, remainder := sentence.TakeCompleteSentences("Am 3. Mai war Dr. Meier da. Pi ist 3.", "de", false)
	fmt.Printf("%q\n%q\n", sentences, remainder)
	// Output:
	// ["Am 3. Mai war Dr. Meier da. "]
	// "Pi ist 3."
}
