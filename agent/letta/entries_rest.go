// From the messages and runs of a history to the entries of a follower, for the REST API.

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

// collector converts the new part of a conversation's history to entries. It is used for one reading of the history.
type collector struct {
	watch         *restWatch
	runs          map[string]runInfo // the agent's newest runs, by id
	recorded      []string           // runs that were recorded by earlier readings
	awaitsAnswers bool               // the newest turn waits for approvals, so an unknown run probably sends them
	entries       []agent.Entry
}

// countedRuns is how many of the newest runs get their token usage, which takes a request for each. After a long absence of
// Leat there would be too many.
const countedRuns = 10

// addTurn adds the entries of a stored turn. newer is the number of turns after it. A turn that has ended is recorded with its
// events; one that is running is recorded with the state from which Observe shows it live.
//
// A turn that is neither over nor readable as a stream is left for a later reading, until it has been silent for queueLimit:
// then its server process has probably died, and it counts as over. A turn that was recorded before, or that a turn of Leat
// shows, is not recorded again.
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
	// The server never updates the status of a blocking run, so its messages have to show its end.
	isOver := info.isOver() || info.Conversation == "" && info.Metadata.Type == blockingType && x.endsRun()
	isLive := !isOver && info.hasStream()
	if !isOver && !isLive {
		if wait := time.Until(x.newest().Date.Add(r.times.queueLimit)); wait > 0 {
			g.watch.readBy(time.Now().Add(wait))
			return nil
		}
		isOver = true
	}
	// Approvals in the history may answer a turn of Leat, which has to learn of them before the turn is skipped as shown.
	g.passAnswers(x)
	if slices.ContainsFunc(x.runs, func(run string) bool { return slices.Contains(g.recorded, run) }) {
		x.isComplete = isOver // a message of the run was stored after it was recorded
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
		// Leat's own turns have their usage already. For others it takes a request each, so only the newest runs get it.
		var usage []byte
		if _, _, isOwn := parseClientID(firstOtid(x)); !isOwn && newer < countedRuns {
			usage = r.usage(ctx, x.runs[len(x.runs)-1])
		}
		e.Run.Ops, err = x.operations(info, usage)
	}
	if err != nil {
		r.log().Warn("another client's run in the history can't be decoded", "conversation", g.watch.conversation, "run", x.runs[0], "error", err)
		x.isComplete = true
		return nil
	}
	g.entries = append(g.entries, e)
	return nil
}

// firstOtid returns the otid of the message that started the turn.
func firstOtid(x *storedTurn) string {
	if len(x.users) == 0 {
		return ""
	}
	return x.users[0].Otid
}

// runInfo returns what is known about a run. A run that is not in the list is over, unless it is the newest of the history:
// that one may have started after the list was read.
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
	return runInfo{ID: run, Status: "expired"}, nil // the server may also have deleted it
}

// isShown reports whether a turn of this process shows one of the runs, or has shown it.
func (g *collector) isShown(x *storedTurn) bool {
	return slices.ContainsFunc(x.runs, func(run string) bool {
		turn, _ := g.watch.agent.turnOfRun(run)
		return turn != ""
	})
}

// passAnswers passes approvals that another client gave at the server to the turn of Leat that waits for them. A turn that is
// just sending its own approvals gets none, since the answers in the history may be its own.
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
			continue // the turn has moved on to a later run
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
			default: // the turn has not received the previous one yet
			}
		case c.run != "":
			g.watch.readBy(time.Now().Add(r.times.poll)) // the turn has not reached the approval yet
		}
		return
	}
}

// addUnstored adds the runs without stored messages: their first step has not ended, or has failed. They are recorded with a
// state from which Observe reads their stream.
//
// Such a run may also belong to a turn of Leat that doesn't know its name yet. So nothing is added while turns may still be
// resumed after the start (resumeGrace), or while a turn of the conversation awaits its run; the history is read again later.
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
		// Without a stream there is nothing to show. A run that ended without messages is shown only if it failed while Leat watched.
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
		return // the run probably sends the approvals; its end starts another reading
	}
	if graceEnd := watch.poller.startTime.Add(r.times.resumeGrace); time.Now().Before(graceEnd) {
		watch.readBy(graceEnd)
		return
	}
	if slices.ContainsFunc(r.turnsOf(watch.conversation), (*turn).mayOwnNewRun) {
		watch.readBy(time.Now().Add(r.times.poll))
		return
	}
	slices.SortFunc(newRuns, func(a, b runInfo) int { return a.Created.Compare(b.Created) })
	for _, i := range newRuns {
		raw, err := json.Marshal(&state{Session: watch.session, SendCount: 1, NextRun: i.ID})
		if err != nil {
			return // can't happen: the state has only strings
		}
		delete(watch.newRuns, i.ID)
		g.entries = append(g.entries, agent.Entry{Key: i.ID, At: i.Created, Source: sourceV1, Run: &agent.Run{State: raw}})
	}
}
