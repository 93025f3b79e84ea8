//go:build e2e

package harness

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Script is a prompt of a storm with the model's replies.
type Script struct {
	Name    string
	Prompt  string
	Replies []Reply
}

// Scripts returns n different scripts of random shapes. tool returns the call that runs a command.
func Scripts(rng *rand.Rand, n int, tool func(command string) Call) []Script {
	all := make([]Script, n)
	for i := range all {
		name := letters(i)
		text := func(part string) []string {
			words := make([]string, 3+rng.IntN(40))
			for w := range words {
				words[w] = vocabulary[rng.IntN(len(vocabulary))]
			}
			return Words(fmt.Sprintf("%s of %d: %s.", part, i, strings.Join(words, " ")))
		}
		pause := time.Duration(rng.IntN(20)) * time.Millisecond
		var says []Reply
		switch rng.IntN(4) {
		case 0:
			says = []Reply{{Words: text("Answer"), Pause: pause}}
		case 1:
			says = []Reply{{Reasoning: text("Thought"), Words: text("Answer"), Pause: pause}}
		case 2:
			says = []Reply{{Words: text("First"), Calls: []Call{tool(fmt.Sprintf("echo out-%d", i))}, Pause: pause}, {Words: text("Last"), Pause: pause}}
		case 3:
			says = []Reply{
				{Words: text("First"), Calls: []Call{tool(fmt.Sprintf("echo one-%d", i))}, Pause: pause},
				{Words: text("Second"), Calls: []Call{tool(fmt.Sprintf("echo two-%d", i))}, Pause: pause},
				{Words: text("Last"), Pause: pause},
			}
		}
		all[i] = Script{Name: name, Prompt: fmt.Sprintf("prompt %d: please do SCRIPT-%s", i, name), Replies: says}
	}
	return all
}

var vocabulary = strings.Fields("alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike über naïve 漢字 🇩🇪 👩‍🚀 zulu")

// letters encodes a script's number in capital letters, since a script's name may have no others.
func letters(i int) string {
	name := "Q"
	for ; i > 0; i /= 25 {
		name += string(rune('A' + i%25))
	}
	return name + "Z"
}

// command returns the command that a call of a shell tool runs.
func (c Call) command() string {
	var in struct{ Command string }
	_ = json.Unmarshal([]byte(c.Args), &in) // the command stays empty if the tool is not a shell
	return in.Command
}
