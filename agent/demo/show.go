package demo

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// statuses shows four statuses, each of which replaces the previous one. They are those of the example in
// docs/eliza.md. The last one remains as the text of the answer.
func statuses(s *stage, _ question) {
	for _, text := range []string{"🔍 Looking up track...", "🔍 Searching for track...", "✨ Setting up playback...", "Now playing: **Song**"} {
		s.status(text)
		s.pause(perStatus)
	}
}

// tools runs three tools at once on the text of the message; the last one fails. The outputs of the first two
// alternate line by line, so that a viewer sees parts of different tools grow at the same time. The third has
// only a line on standard error and an exit status.
func tools(s *stage, q question) {
	text := cmp.Or(q.text, "Leat")
	s.think(fmt.Sprintf("I'll run several tools on %q at the same time, so that you can see how their outputs grow side by side. The last one will fail on purpose.", clip(text, 40)))
	s.status("Running three tools…")
	in := map[string]string{"text": clip(text, 200)}
	sum := s.call("sha256", "Checksum", in)
	enc := s.call("base64", "Encode", in)
	div := s.call("divide", "Divide by nothing", map[string]int{"dividend": utf8.RuneCountInString(text), "divisor": 0})

	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	encoded := base64.StdEncoding.EncodeToString([]byte(text))
	hashPieces, encodedPieces := pieces(hash, 16), pieces(encoded, 32)
	for i := range max(len(hashPieces), len(encodedPieces)) {
		if i < len(hashPieces) {
			sum.print(hashPieces[i])
		}
		if i < len(encodedPieces) {
			enc.print(encodedPieces[i])
		}
	}
	sum.end()
	div.complain("can't divide by zero")
	div.fail("exit status 1")
	enc.end()
	s.status("Two of three tools have a result")
	s.say("Three tools ran, two have a result:\n\n")
	s.say(table([]string{"Tool", "State", "Result"}, [][]string{
		{"sha256", "done", "`" + hash[:16] + "…`"},
		{"base64", "done", "`" + clip(encoded, 24) + "`"},
		{"divide", "failed", "can't divide by zero"},
	}))
	s.say("\nThe first one on a command line:\n\n```sh\nprintf %s " + shellQuote(clip(text, 60)) + " | sha256sum\n```\n")
}

// pieces splits an ASCII text into lines of n bytes.
func pieces(text string, n int) []string {
	var lines []string
	for chunk := range slices.Chunk([]byte(text), n) {
		lines = append(lines, string(chunk))
	}
	return lines
}

// shellQuote returns a text as one word of a POSIX shell, so that a command that the user copies can't run a
// part of the message.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// approval asks the user for permission and acts on the decision: yes, no, or no with a reason. Ask blocks
// until the user answers. If the gateway is restarted meanwhile, the turn ends as interrupted, since this agent
// can't resume a turn.
func approval(s *stage, q question) {
	text := cmp.Or(q.text, "write a haiku about water")
	s.think("This is something that I should ask about first.")
	s.say(fmt.Sprintf("I'd like to do this: **%s**. I'll wait for your decision.\n\n", clip(text, 200)))
	if s.err != nil {
		return
	}
	a, err := s.emitter.Ask(s.ctx, event.Request{
		ID: "approve", Kind: event.RequestApproval, Tool: "demo", Prompt: "May I " + clip(text, 200) + "?", Options: []string{string(event.Approve), string(event.Deny)},
	})
	s.do(err)
	switch {
	case a.Decision == event.Approve:
		s.say("Thank you. Here it is:\n\n> A leat, cut by hand,\n> carries the stream where it serves:\n> nothing spills, all comes.\n")
	case a.Text != "":
		s.say(fmt.Sprintf("I take that as a no, with a reason: %s\n", a.Text))
	default:
		s.say("All right, I leave it.\n")
	}
}

// The length of long answers, in words.
const (
	// longWords is the default, and maxWords the limit of a number in the message.
	longWords = 600
	maxWords  = 50_000
)

// longAnswer lists numbers with their prime factors until it has about as many words as requested. Its length
// is for tests of long streams, and every line is different, so that a lost or repeated line is noticed.
func longAnswer(s *stage, q question) {
	want := longWords
	for _, w := range wordsOf(q.text) {
		if n, err := strconv.Atoi(w); err == nil {
			want = min(max(n, 1), maxWords)
			break
		}
	}
	s.think(fmt.Sprintf("A long answer is asked for, about %s. I'll take the numbers apart, one after another: that never ends and every line is true.", plural(want, "word")))
	s.say("# The numbers, taken apart\n\n")
	count := 0
	for n := 2; count < want && s.err == nil; n++ {
		line := factors(n)
		count += len(strings.Fields(line))
		s.say("- " + line + "\n")
	}
	s.say(fmt.Sprintf("\nThat was about %s.\n", plural(count, "word")))
}

// factors returns a sentence with the prime factors of a number, which is at least 2. It divides by every
// number up to the square root of what is left; the numbers of longAnswer are small enough for that.
func factors(n int) string {
	var factors []string
	divisors := 1
	for quotient, p := n, 2; quotient > 1; p++ {
		if p*p > quotient {
			p = quotient
		}
		times := 0
		for ; quotient%p == 0; quotient /= p {
			times++
		}
		if times > 0 {
			divisors *= times + 1
			f := strconv.Itoa(p)
			if times > 1 {
				f += "^" + strconv.Itoa(times)
			}
			factors = append(factors, f)
		}
	}
	if divisors == 2 {
		return fmt.Sprintf("**%d** is a prime number: only 1 and itself divide it.", n)
	}
	return fmt.Sprintf("**%d** is %s, and has %d divisors.", n, strings.Join(factors, " × "), divisors)
}

// failure fails in the middle of an answer. The error is retryable, so that clients may offer another attempt.
func failure(s *stage, _ question) {
	s.think("I'm asked to fail. I'll begin as if all were well.")
	s.say("This answer begins well, and would continue for a while if ")
	s.do(&agent.Error{Code: "demo", Message: "the demo agent failed, as it was asked to", Retryable: true})
}

// maxCount bounds the numbers of count, in both directions.
const maxCount = 1000

// askedCount matches the text after "count" if it is a range, such as "to 12" or "down from 5".
var askedCount = regexp.MustCompile(`(?i)^(down\b|to\b|up\b|from\b|-?\d)`)

// isCount reports whether the text after "count" is a range. "count the words in ..." isn't, so that words
// answers it.
func isCount(argument string) bool { return argument == "" || askedCount.MatchString(argument) }

// count counts from one number to another, up or down. A single number is the end of the range, or its start
// after "down". Without numbers it counts to ten. The numbers are limited to maxCount, in both directions.
func count(s *stage, q question) {
	var numbers []int
	for _, w := range wordsOf(q.text) {
		if n, err := strconv.Atoi(w); err == nil {
			numbers = append(numbers, min(max(n, -maxCount), maxCount))
		}
	}
	from, to := 1, 10
	switch len(numbers) {
	case 0:
	case 1:
		to = numbers[0]
		if strings.Contains(strings.ToLower(q.text), "down") {
			from, to = to, 0
		}
	default:
		from, to = numbers[0], numbers[1]
	}
	step := 1
	if to < from {
		step = -1
	}
	s.think(fmt.Sprintf("From %d to %d, one at a time.", from, to))
	for n := from; s.err == nil; n += step {
		if n == to {
			s.say(fmt.Sprintf("**%d**", n))
			break
		}
		s.say(fmt.Sprintf("%d, ", n))
	}
}
