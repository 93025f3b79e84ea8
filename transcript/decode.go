package transcript

import (
	"encoding/json"
	"fmt"
)

// UnmarshalJSON decodes a snapshot that AppendJSON has encoded. Unknown keys are ignored, and Earlier is not part of the JSON. Null
// entries and missing ids are errors, because the snapshot may come from a server of another version, and a client would otherwise
// crash on them.
func (s *Snapshot) UnmarshalJSON(b []byte) error {
	var w struct {
		Seq      int64                      `json:"seq"`
		Title    string                     `json:"title"`
		Metadata map[string]json.RawMessage `json:"metadata"`
		Messages []*Message                 `json:"messages"`
		Turns    []*Turn                    `json:"turns"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("transcript: decode: %w", err)
	}
	for i, m := range w.Messages {
		if m == nil || m.ID == "" {
			return fmt.Errorf("transcript: decode: message %d has no id", i)
		}
		for j, p := range m.Parts {
			if p == nil || p.ID == "" {
				return fmt.Errorf("transcript: decode: message %s: part %d has no id", m.ID, j)
			}
		}
	}
	for i, turn := range w.Turns {
		if turn == nil || turn.ID == "" {
			return fmt.Errorf("transcript: decode: turn %d has no id", i)
		}
		for j, r := range turn.Requests {
			if r == nil {
				return fmt.Errorf("transcript: decode: turn %s: request %d is null", turn.ID, j)
			}
		}
		for j := range turn.Answered {
			if turn.Answered[j].ID == "" {
				return fmt.Errorf("transcript: decode: turn %s: answered request %d has no id", turn.ID, j)
			}
		}
	}
	*s = Snapshot{Seq: w.Seq, Title: w.Title, Metadata: w.Metadata, Messages: w.Messages, Turns: w.Turns}
	return nil
}

// UnmarshalJSON decodes a part that MarshalJSON has encoded. Its notes get the seq 0: they are older than every event of the log.
func (p *Part) UnmarshalJSON(b []byte) error {
	type plain Part // has no UnmarshalJSON, which would otherwise call itself
	var w struct {
		*plain
		Text    string   `json:"text"`
		Input   string   `json:"input"`
		Output  string   `json:"output"`
		Stderr  string   `json:"stderr"`
		History []string `json:"history"`
	}
	w.plain = (*plain)(p)
	*p = Part{}
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	// The texts are in the order of Fields.
	for i, text := range [...]string{w.Text, w.Input, w.Output, w.Stderr} {
		p.texts[i].s = text
	}
	p.setNotes(w.History, 0)
	return nil
}
