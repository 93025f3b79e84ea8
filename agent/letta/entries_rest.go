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
	watch         *restWatch
	runs          map[string]runInfo // the newest ones
	recorded      []string           // runs that were taken before
	awaitsAnswers bool               // the newest run waits for approvals, so that the next one brings them
	entries       []agent.Entry
}

// countedRuns is how many runs of a history the server is asked for the tokens of: those that ended while Leat was away for long are too
// many.
const countedRuns = 10

// addTurn adds what is stored of a turn, after which come so many others.
func (g *collector) addTurn(ctx context.Context, x *storedTurn, newer int) error {
	r, newest := g.watch.agent, newer == 0
	g.entries = append(g.entries, x.messages()...)
	if len(x.runs) == 0 {
		return nil
	}
	g.awaitsAnswers = len(x.openCalls) > 0
	info, err := g.runInfo(ctx, x.runs[len(x.runs)-1], newest)
	if err != nil {
		return err
	}
	// The server leaves a run whose client waits for the whole answer as it was made.
	isOver := info.isOver() || info.Conversation == "" && info.Metadata.Type == blockingType && x.endsRun()
	isLive := !isOver && info.hasStream()
	if !isOver && !isLive {
		if wait := time.Until(x.newest().Date.Add(r.times.queueLimit)); wait > 0 {
			g.watch.readBy(time.Now().Add(wait))
			return nil
		}
		isOver = true // its process has died, most likely
	}
	g.passAnswers(x)
	if slices.ContainsFunc(x.runs, func(run string) bool { return slices.Contains(g.recorded, run) }) {
		x.isComplete = isOver // stored late
		return nil
	}
	x.isComplete = isOver && !(g.awaitsAnswers && newest)
	e := x.entry()
	if g.isShown(x) || len(e.Key) > agent.MaxKey {
		return nil
	}
	if !x.isComplete {
		e.Run.State, err = json.Marshal(&state{Session: g.watch.session, SendCount: 1, NextRun: x.runs[0]})
	} else {
		var usage []byte
		if _, _, isOwn := parseClientID(firstOtid(x)); !isOwn && newer < countedRuns {
			usage = r.usage(ctx, x.runs[len(x.runs)-1])
		}
		e.Run.Ops, err = x.operations(info, usage)
	}
	if err != nil {
		r.log().Warn("a run of another client can't be read", "conversation", g.watch.conversation, "run", x.runs[0], "error", err)
		x.isComplete = true
		return nil
	}
	g.entries = append(g.entries, e)
	return nil
}

func firstOtid(x *storedTurn) string {
	if len(x.users) == 0 {
		return ""
	}
	return x.users[0].Otid
}

// runInfo returns what is known of a run. A run that is not among the newest ones is over, unless it is the last of the history.
func (g *collector) runInfo(ctx context.Context, run string, newest bool) (runInfo, error) {
	if i, ok := g.runs[run]; ok {
		return i, nil
	}
	if newest {
		i, err := g.watch.agent.runInfo(ctx, run)
		var f *failure
		if err == nil || !errors.As(err, &f) || f.status != http.StatusNotFound {
			return i, err
		}
	}
	return runInfo{ID: run, Status: "expired"}, nil // or it was deleted
}

// isShown reports whether a turn of this process shows one of the runs, or has shown it.
func (g *collector) isShown(x *storedTurn) bool {
	return slices.ContainsFunc(x.runs, func(run string) bool {
		turn, _ := g.watch.agent.turnOfRun(run)
		return turn != ""
	})
}

// passAnswers gives the answers of another client to the turn that waits for them.
func (g *collector) passAnswers(x *storedTurn) {
	if len(x.decisions) == 0 {
		return
	}
	r := g.watch.agent
	for i, run := range x.runs {
		_, t := r.turnOfRun(run)
		if t == nil || t.in.Conversation != g.watch.conversation {
			continue
		}
		if at, _ := t.position(); at != run {
			continue // it shows a later one
		}
		c := continuation{decisions: map[string]bool{}}
		for _, w := range t.approvals() {
			if allow, ok := x.decisions[w.Call]; ok {
				c.decisions[w.Call] = allow
			}
		}
		if i+1 < len(x.runs) {
			c.run = x.runs[i+1]
		}
		switch {
		case len(c.decisions) > 0 && !t.mayOwnNewRun():
			select {
			case t.otherAnswers <- c:
			default: // the turn has not taken it yet
			}
		case c.run != "":
			g.watch.readBy(time.Now().Add(r.times.poll)) // it has not come to that yet
		}
		return
	}
}

// addUnstored adds the runs of which the server has stored nothing, since their first step has not ended or has failed.
func (g *collector) addUnstored(turns []*storedTurn) {
	watch, r := g.watch, g.watch.agent
	var newRuns []runInfo
	for _, i := range g.runs {
		turn, _ := r.turnOfRun(i.ID)
		isStored := slices.ContainsFunc(turns, func(x *storedTurn) bool { return slices.Contains(x.runs, i.ID) })
		switch {
		case !watch.hasRun(i):
		case isStored, turn != "", slices.Contains(g.recorded, i.ID):
			delete(watch.newRuns, i.ID)
		case !i.hasStream(), i.isOver() && (!watch.newRuns[i.ID] || i.Stop == "" || i.Status == "completed"):
		default:
			newRuns = append(newRuns, i)
		}
	}
	maps.DeleteFunc(watch.newRuns, func(run string, _ bool) bool { _, isListed := g.runs[run]; return !isListed })
	if len(newRuns) == 0 {
		return
	}
	if g.awaitsAnswers {
		return // it brings the approvals, and is read again when it ends
	}
	if graceEnd := watch.poller.startTime.Add(r.times.resumeGrace); time.Now().Before(graceEnd) {
		watch.readBy(graceEnd)
		return
	}
	if slices.ContainsFunc(r.turnsOf(watch.conversation), (*turn).mayOwnNewRun) {
		watch.readBy(time.Now().Add(r.times.poll)) // it may be the turn's
		return
	}
	slices.SortFunc(newRuns, func(a, b runInfo) int { return a.Created.Compare(b.Created) })
	for _, i := range newRuns {
		raw, err := json.Marshal(&state{Session: watch.session, SendCount: 1, NextRun: i.ID})
		if err != nil {
			return // it is made of strings
		}
		delete(watch.newRuns, i.ID)
		g.entries = append(g.entries, agent.Entry{Key: i.ID, At: i.Created, Source: sourceV1, Run: &agent.Run{State: raw}})
	}
}
