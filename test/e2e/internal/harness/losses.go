//go:build e2e

package harness

import (
	"slices"
	"strings"
)

// StreamedReply is as much of a reply as the model has streamed.
type StreamedReply struct {
	Text     string
	Commands []string // commands of its tool calls
}

// losses are texts, tool calls and prompts that an upstream had received but not stored when it was killed. Only the reader may
// have them.
type losses struct {
	texts, commands, prompts []string
}

// add records replies and prompts that the upstream had received and that its history, read shortly before the kill, does not
// have.
func (l *losses) add(streamed []StreamedReply, prompts []string, history []Item) {
	for _, g := range streamed {
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

// unexplained returns the items without a loss that explains them. Each loss explains one item.
func (l *losses) unexplained(items []Item) (unmatched []Item) {
	unused := losses{slices.Clone(l.texts), slices.Clone(l.commands), slices.Clone(l.prompts)}
	// Longest first: a loss of a text also explains each beginning of it, so a long item must get its match before a short one takes it.
	items = slices.SortedFunc(slices.Values(items), func(a, b Item) int { return len(b.Text) - len(a.Text) })
	for _, i := range items {
		if !unused.remove(i) {
			unmatched = append(unmatched, i)
		}
	}
	return unmatched
}

// remove deletes the loss that explains an item and reports whether there was one.
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
