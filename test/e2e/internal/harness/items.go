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

// Item is a message, a text or a tool call in a conversation, reduced to what a storm compares between reader and upstream.
type Item struct {
	Kind string // ItemUser, ItemText or ItemTool
	Text string // for a tool "command → output"
}

// The kinds of items.
const (
	ItemUser = "user"
	ItemText = "text"
	ItemTool = "tool"
)

func (i Item) String() string { return i.Kind + " " + fmt.Sprintf("%q", i.Text) }

// Tool returns the item of a shell tool's call.
func Tool(command, output string) Item {
	return Item{ItemTool, command + " → " + strings.TrimSpace(output)}
}

// VisibleItems returns what a reader sees of a conversation, in order. Empty texts are left out because they were retracted.
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
				_ = json.Unmarshal([]byte(p.Text(event.Input)), &in) // the command stays empty if the input is not a shell tool's
				items = append(items, Tool(in.Command, p.Text(event.Output)))
			}
		}
	}
	return items
}

// Compare returns the differences between what a reader sees and the upstream's history: items that only one of them has or has
// more often, and answers in another order. If lost returns true for an item of the reader, the upstream may lack it or have
// only its beginning, since a runtime forgets unfinished work when it is killed or stopped.
func Compare(seen, history []Item, lost func(Item) bool) (faults []string) {
	count := map[Item]int{}
	for _, i := range history {
		count[i]++
	}
	both := make([]Item, len(seen)) // items of seen that history has too, in its form; otherwise the zero Item
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
	// Only the order of answers is compared: the reader sees a message when it is sent, but the upstream lists it when its turn begins.
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
