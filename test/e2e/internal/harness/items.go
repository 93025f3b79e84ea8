//go:build e2e

package harness

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Item is one thing that a conversation shows, in the form in which a storm compares a reader's view with the upstream's history.
type Item struct {
	Kind string // ItemUser, ItemText or ItemTool
	Text string // of a tool: its command and what it printed
}

// The kinds of items.
const (
	ItemUser = "user"
	ItemText = "text"
	ItemTool = "tool"
)

func (i Item) String() string { return i.Kind + " " + fmt.Sprintf("%q", i.Text) }

// Tool returns the item of a tool that ran a command.
func Tool(command, output string) Item {
	return Item{ItemTool, command + " → " + strings.TrimSpace(output)}
}

// Seen returns what a reader sees of a conversation, in order. Empty texts are left out: they were retracted.
func VisibleItems(tr *transcript.Transcript) (items []Item) {
	for _, m := range tr.Messages {
		kind := ItemText
		if m.Role == event.User {
			kind = ItemUser
		}
		for _, p := range m.Parts {
			switch p.Kind {
			case event.KindText:
				if text := strings.TrimSpace(p.Text(event.Text)); text != "" {
					items = append(items, Item{kind, text})
				}
			case event.KindTool:
				var in struct{ Command string }
				_ = json.Unmarshal([]byte(p.Text(event.Input)), &in) // a tool of another shape has no command
				items = append(items, Tool(in.Command, p.Text(event.Output)))
			}
		}
	}
	return items
}

// Compare returns how what a reader sees differs from the upstream's history: items that only one of them has, or one of them
// has more often, and items of the answers in another order. Items for which lost returns true may be missing upstream, or it may have no
// more than their beginning: it forgets what it was doing when it is killed or told to stop.
func Compare(seen, history []Item, lost func(Item) bool) (faults []string) {
	count := map[Item]int{}
	for _, i := range history {
		count[i]++
	}
	both := make([]Item, len(seen)) // as the upstream has them; the zero Item if it does not
	for n, i := range seen {
		if count[i] > 0 {
			count[i]--
			both[n] = i
		}
	}
	for n, i := range seen {
		switch {
		case both[n] == i:
		case !lost(i):
			faults = append(faults, "only the reader has "+i.String())
		default:
			for _, h := range history {
				if count[h] > 0 && h.Kind == i.Kind && strings.HasPrefix(i.Text, h.Text) {
					count[h]--
					both[n] = h
					break
				}
			}
		}
	}
	both = slices.DeleteFunc(both, func(i Item) bool { return i == Item{} })
	for _, i := range history {
		if count[i] > 0 {
			count[i]--
			faults = append(faults, "only the upstream has "+i.String())
		}
	}
	if len(faults) > 0 {
		return faults
	}
	// A message that waits upstream is shown here when it is sent, so only answers are compared by their order.
	answers := func(items []Item) []Item {
		return slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return i.Kind == ItemUser })
	}
	a, b := answers(both), answers(history)
	for n := range a {
		if a[n] != b[n] {
			return []string{fmt.Sprintf("answer %d: the reader has %v, the upstream %v", n, a[n], b[n])}
		}
	}
	return nil
}
