//go:build e2e

package harness

import (
	"slices"
	"strings"
)

// Given is an answer that the model has streamed, or its beginning.
type StreamedReply struct {
	Text     string
	Commands []string // of the tools that it called
}

// losses are what the model had answered to upstreams that were killed, and messages sent to them, which their histories did not have: only the
// reader may have them.
type losses struct {
	texts, commands, prompts []string
}

// add adds answers and messages that an upstream had got and its history did not have shortly before it was killed.
func (l *losses) add(given []StreamedReply, prompts []string, history []Item) {
	for _, g := range given {
		if text := strings.TrimSpace(g.Text); text != "" && !slices.Contains(history, Item{ItemText, text}) {
			l.texts = append(l.texts, text)
		}
		for _, c := range g.Commands {
			done := func(i Item) bool { return strings.HasPrefix(i.Text, Tool(c, "").Text) && i != Tool(c, "") }
			if !slices.ContainsFunc(history, done) {
				l.commands = append(l.commands, c)
			}
		}
	}
	for _, p := range prompts {
		if !slices.Contains(history, Item{ItemUser, p}) {
			l.prompts = append(l.prompts, p)
		}
	}
}

// explain reports whether a loss explains that only the reader has an item.
func (l *losses) explain(i Item) bool { return len(l.unexplained([]Item{i})) == 0 }

// unexplained returns the items that no loss explains, if each loss explains one.
func (l *losses) unexplained(items []Item) (left []Item) {
	rest := losses{slices.Clone(l.texts), slices.Clone(l.commands), slices.Clone(l.prompts)}
	// What explains a text explains its beginnings too, but not the other way round.
	items = slices.SortedFunc(slices.Values(items), func(a, b Item) int { return len(b.Text) - len(a.Text) })
	for _, i := range items {
		if !rest.remove(i) {
			left = append(left, i)
		}
	}
	return left
}

// take removes the loss of an item, and reports whether there was one.
func (l *losses) remove(i Item) bool {
	from, is := &l.prompts, func(prompt string) bool { return prompt == i.Text }
	switch i.Kind {
	case ItemText:
		from, is = &l.texts, func(text string) bool { return strings.HasPrefix(text, i.Text) }
	case ItemTool:
		from, is = &l.commands, func(command string) bool { return strings.HasPrefix(i.Text, Tool(command, "").Text) }
	}
	n := slices.IndexFunc(*from, is)
	if n >= 0 {
		*from = slices.Delete(*from, n, n+1)
	}
	return n >= 0
}
