package dialect

import (
	"encoding/json"
	"fmt"

	"github.com/leat-dev/leat/transcript"
)

// mapperState is the stored state of a Mapper. It has only keys and ids; the rest is in the log.
type mapperState struct {
	Turns    []turnState    `json:"turns"`
	Messages []messageState `json:"messages,omitempty"`
}

type turnState struct {
	ID  string `json:"id"`
	Key string `json:"key,omitempty"` // absent if the turn has no key yet
}

type messageState struct {
	ID    string   `json:"id"`
	Turn  int      `json:"turn,omitempty"` // index of its turn
	Key   string   `json:"key"`
	Parts []string `json:"parts,omitempty"` // keys, in the order of their ids
}

// Keys returns the number of known keys. The state changes only if Keys does, so a caller can skip storing an unchanged state.
func (m *Mapper) Keys() int { return m.keys }

// State returns the ids of all keys, as JSON. It leaves out the lengths of texts and which parts have ended: Restore takes these from
// the log's transcript.
func (m *Mapper) State() ([]byte, error) {
	var st mapperState
	index := map[string]int{}
	for i, t := range m.turns {
		index[t.id] = i
		st.Turns = append(st.Turns, turnState{ID: t.id, Key: t.key})
	}
	for _, msg := range m.msgs {
		ms := messageState{ID: msg.id, Turn: index[msg.turn], Key: msg.key}
		for _, p := range msg.parts {
			ms.Parts = append(ms.Parts, p.key)
		}
		st.Messages = append(st.Messages, ms)
	}
	b, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("dialect: state of mapper: %w", err)
	}
	return b, nil
}

// Restore continues from a state that State returned. tr is the log's transcript at that time and must contain all messages of the turn;
// Restore only reads it. Call it on a new Mapper, before Map.
func (m *Mapper) Restore(state []byte, tr *transcript.Transcript) error {
	var st mapperState
	if err := json.Unmarshal(state, &st); err != nil {
		return fmt.Errorf("dialect: restore mapper: %w", err)
	}
	if len(st.Turns) == 0 || st.Turns[0].ID != m.id {
		return fmt.Errorf("dialect: restore mapper: the state is not that of turn %s", m.id)
	}
	r := &Mapper{Flat: m.Flat, id: m.id, newID: m.newID}
	for _, ts := range st.Turns {
		t := &mappedTurn{id: ts.ID, key: ts.Key}
		if t.key != "" {
			r.keys++
		}
		if turn := tr.Turn(ts.ID); turn != nil {
			t.isOver = !turn.Unfinished()
		}
		r.turns = append(r.turns, t)
	}
	for _, ms := range st.Messages {
		if ms.Turn < 0 || ms.Turn >= len(r.turns) {
			return fmt.Errorf("dialect: restore mapper: message %s has no turn", ms.ID)
		}
		from := tr.Message(ms.ID)
		if from == nil {
			return fmt.Errorf("dialect: restore mapper: message %s is not in the log", ms.ID)
		}
		msg := &mappedMessage{turn: r.turns[ms.Turn].id, key: ms.Key, id: ms.ID, isOver: from.Final}
		for i, key := range ms.Parts {
			p := from.Part(partID(i))
			if p == nil {
				return fmt.Errorf("dialect: restore mapper: part %s of message %s is not in the log", partID(i), ms.ID)
			}
			msg.parts = append(msg.parts, restorePart(key, p))
		}
		r.msgs = append(r.msgs, msg)
		r.keys += 1 + len(ms.Parts)
	}
	*m = *r
	return nil
}

// restorePart returns a part with the key from the state and everything else from the transcript.
func restorePart(key string, p *transcript.Part) *mappedPart {
	mp := &mappedPart{key: key, kind: p.Kind, isOver: p.Final}
	for i, f := range transcript.Fields {
		if p.Len(f) > 0 {
			mp.sums[i] = p.Sum(f)
		}
	}
	return mp
}
