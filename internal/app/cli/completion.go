// Completion of command lines in shells. The scripts are short: they ask the program, which knows its commands, flags and
// conversations.

package cli

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/leat-dev/leat/internal/app/cli/console"
)

// completionCmd prints the script that makes a shell complete command lines.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// The scripts pass the words up to the cursor to leat complete, which prints a line for each candidate: the word, a tab, and its
// description.
var (
	//go:embed completion/leat.bash
	bashCompletion string
	//go:embed completion/_leat
	zshCompletion string
	//go:embed completion/leat.fish
	fishCompletion string
)

// Run prints the script.
func (c *completionCmd) Run(a *app) error {
	script := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	_, err := io.WriteString(a.stdout, script)
	return err
}

// completeCmd prints the candidates for the last of the words, which may be empty.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints nothing where the shell completes the names of files.
func (c *completeCmd) Run(a *app, k *kong.Kong) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	for _, candidate := range a.complete(k.Model.Node, words) {
		if _, err := fmt.Fprintf(a.stdout, "%s\t%s\n", candidate.word, candidate.help); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a word that can be at the cursor.
type candidate struct{ word, help string }

// complete returns the candidates for the last word: commands, flags, the values of a flag or argument that has a fixed set of them, or the
// ids of conversations.
func (a *app) complete(node *kong.Node, words []string) (candidates []candidate) {
	last := words[len(words)-1]
	add := func(word, help string) {
		if strings.HasPrefix(word, last) {
			candidates = append(candidates, candidate{word, help})
		}
	}
	var pending *kong.Flag // whose value is the next word
	position := 0          // of the next argument
	for _, word := range words[:len(words)-1] {
		switch child := childOf(node, word); {
		case pending != nil:
			pending = nil
		case strings.HasPrefix(word, "-"):
			pending = flagWithValue(node, word)
		case child != nil:
			node = child
		default:
			position++
		}
	}
	switch {
	case pending != nil:
		a.addValues(pending.Value, add)
	case strings.HasPrefix(last, "-"):
		for _, flag := range flags(node) {
			add("--"+flag.Name, flag.Help)
		}
	case len(node.Positional) > 0:
		a.addValues(node.Positional[min(position, len(node.Positional)-1)], add)
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				add(child.Name, child.Help)
			}
		}
	}
	return candidates
}

// childOf returns the command of node with the name, or nil.
func childOf(node *kong.Node, name string) *kong.Node {
	i := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == name })
	if i < 0 {
		return nil
	}
	return node.Children[i]
}

// flags returns the flags that can be used with a command.
func flags(node *kong.Node) (list []*kong.Flag) {
	for _, group := range node.AllFlags(true) {
		list = append(list, group...)
	}
	return list
}

// flagWithValue returns the flag of a word, if its value is the next word.
func flagWithValue(node *kong.Node, word string) *kong.Flag {
	for _, flag := range flags(node) {
		if word == "--"+flag.Name || flag.Short != 0 && word == "-"+string(flag.Short) {
			if flag.IsBool() {
				return nil
			}
			return flag
		}
	}
	return nil
}

// completionLimit is how long a person who pressed the tab key waits for the gateway.
const completionLimit = time.Second

// addValues adds the values of a flag or an argument, if they are known. A gateway that can't be asked has no conversations.
func (a *app) addValues(value *kong.Value, add func(word, help string)) {
	if value.Enum != "" {
		for _, word := range value.EnumSlice() {
			add(word, "")
		}
	}
	if value.Name != "conversation" {
		return
	}
	ctx, cancel := context.WithTimeout(a.ctx, completionLimit)
	defer cancel()
	o := operator{URL: cmp.Or(a.getenv("LEAT_URL"), defaultURL), Token: cmp.Or(a.getenv("LEAT_API_TOKEN"), a.getenv("ELIZA_API_TOKEN"))}
	conversations, err := o.client().Conversations(ctx)
	if err != nil {
		return
	}
	for i := range conversations {
		add(conversations[i].ID, console.Clean(conversations[i].Title))
	}
}
