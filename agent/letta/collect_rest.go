package letta

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
)

// collector makes entries of what has happened in a session.
type collector struct {
	w       *watched
	runs    map[string]runInfo // the newest ones
	known   []string           // runs that were taken before
	pending bool               // the newest run waits for approvals, so that the next one brings them
	entries []agent.Entry
}

// countedRuns is how many runs of a history the server is asked for the tokens of: those that ended while Leat was away for long are too
// many.
const countedRuns = 10

// chain adds what is stored of a turn, after which come so many others.
func (g *collector) chain(ctx context.Context, x *chain, after int) error {
	r, newest := g.w.p.r, after == 0
	g.entries = append(g.entries, x.messages()...)
	if len(x.runs) == 0 {
		return nil
	}
	g.pending = len(x.open) > 0
	info, err := g.info(ctx, x.runs[len(x.runs)-1], newest)
	if err != nil {
		return err
	}
	// The server leaves a run whose client waits for the whole answer as it was made.
	over := info.over() || info.Conversation == "" && info.Metadata.Type == blocking && x.ended()
	live := !over && info.streams()
	if !over && !live {
		if wait := time.Until(x.last().Date.Add(r.times.held)); wait > 0 {
			g.w.again(time.Now().Add(wait))
			return nil
		}
		over = true // its process has died, most likely
	}
	g.handOn(x)
	if slices.ContainsFunc(x.runs, func(run string) bool { return slices.Contains(g.known, run) }) {
		x.settled = over // stored late
		return nil
	}
	x.settled = over && !(g.pending && newest)
	e := x.entry()
	if g.shown(x) || len(e.Key) > agent.MaxKey {
		return nil
	}
	if !x.settled {
		e.Run.State, err = json.Marshal(&state{Session: g.w.session, Sent: 1, Run: x.runs[0]})
	} else {
		var usage []byte
		if _, _, own := ownIDs(firstOtid(x)); !own && after < countedRuns {
			usage = r.usage(ctx, x.runs[len(x.runs)-1])
		}
		e.Run.Ops, err = x.operations(info, usage)
	}
	if err != nil {
		r.log().Warn("a run of another client can't be read", "conversation", g.w.conversation, "run", x.runs[0], "error", err)
		x.settled = true
		return nil
	}
	g.entries = append(g.entries, e)
	return nil
}

func firstOtid(x *chain) string {
	if len(x.users) == 0 {
		return ""
	}
	return x.users[0].Otid
}

// info returns what is known of a run. A run that is not among the newest ones is over, unless it is the last of the history.
func (g *collector) info(ctx context.Context, run string, newest bool) (runInfo, error) {
	if i, ok := g.runs[run]; ok {
		return i, nil
	}
	if newest {
		i, err := g.w.p.r.run(ctx, run)
		var f *failure
		if err == nil || !errors.As(err, &f) || f.status != http.StatusNotFound {
			return i, err
		}
	}
	return runInfo{ID: run, Status: "expired"}, nil // or it was deleted
}

// shown reports whether a turn of this process shows one of the runs, or has shown it.
func (g *collector) shown(x *chain) bool {
	return slices.ContainsFunc(x.runs, func(run string) bool {
		turn, _ := g.w.p.r.shownBy(run)
		return turn != ""
	})
}

// handOn gives the answers of another client to the turn that waits for them.
func (g *collector) handOn(x *chain) {
	if len(x.answers) == 0 {
		return
	}
	for i, run := range x.runs {
		_, t := g.w.p.r.shownBy(run)
		if t == nil || t.in.Conversation != g.w.conversation {
			continue
		}
		if at, _ := t.place(); at != run {
			continue // it shows a later one
		}
		c := continuation{answers: map[string]bool{}}
		for _, w := range t.waiting() {
			if allow, ok := x.answers[w.Call]; ok {
				c.answers[w.Call] = allow
			}
		}
		if i+1 < len(x.runs) {
			c.run = x.runs[i+1]
		}
		switch {
		case len(c.answers) > 0 && !t.requesting():
			select {
			case t.elsewhere <- c:
			default: // the turn has not taken it yet
			}
		case c.run != "":
			g.w.again(time.Now().Add(g.w.p.r.times.poll)) // it has not come to that yet
		}
		return
	}
}

// unwritten adds the runs of which the server has stored nothing, since their first step has not ended or has failed.
func (g *collector) unwritten(all []*chain) {
	w, r := g.w, g.w.p.r
	var fresh []runInfo
	for _, i := range g.runs {
		turn, _ := r.shownBy(i.ID)
		written := slices.ContainsFunc(all, func(x *chain) bool { return slices.Contains(x.runs, i.ID) })
		switch {
		case !w.shows(i):
		case written, turn != "", slices.Contains(g.known, i.ID):
			delete(w.begun, i.ID)
		case !i.streams(), i.over() && (!w.begun[i.ID] || i.Stop == "" || i.Status == "completed"):
		default:
			fresh = append(fresh, i)
		}
	}
	maps.DeleteFunc(w.begun, func(run string, _ bool) bool { _, listed := g.runs[run]; return !listed })
	if len(fresh) == 0 {
		return
	}
	if g.pending {
		return // it brings the approvals, and is read again when it ends
	}
	if until := w.p.began.Add(r.times.grace); time.Now().Before(until) {
		w.again(until)
		return
	}
	if slices.ContainsFunc(r.running(w.conversation), (*turn).requesting) {
		w.again(time.Now().Add(r.times.poll)) // it may be the turn's
		return
	}
	slices.SortFunc(fresh, func(a, b runInfo) int { return a.Created.Compare(b.Created) })
	for _, i := range fresh {
		raw, err := json.Marshal(&state{Session: w.session, Sent: 1, Run: i.ID})
		if err != nil {
			return // it is made of strings
		}
		delete(w.begun, i.ID)
		g.entries = append(g.entries, agent.Entry{Key: i.ID, At: i.Created, Source: sourceV1, Run: &agent.Run{State: raw}})
	}
}
