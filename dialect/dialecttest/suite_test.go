package dialecttest

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// fake is a small dialect of lines {"n":…,"text":"…"} and {"end":true}. fault names the rule that it breaks; it is empty for a
// correct dialect.
type fake struct {
	fault string
	st    fakeState
	bad   error
	kept  []byte
}

type fakeState struct {
	N     int  `json:"n"`
	Begun bool `json:"begun"`
	Ended bool `json:"ended"`
}

func fakeDialect(fault string) dialect.Dialect {
	return dialect.Dialect{Name: "fake", Framing: dialect.Lines, EOF: fault == "is whole too early", Decoder: func() dialect.Decoder { return &fake{fault: fault} }}
}

func (d *fake) Decode(f dialect.Frame) ([]event.Event, error) {
	if d.bad != nil {
		return nil, d.bad
	}
	if d.st.Ended && d.fault != "continues after the end" {
		return nil, nil
	}
	d.st.N++
	var in struct {
		Type, Text string
		End        bool
	}
	if err := json.Unmarshal(f.Data, &in); err != nil && d.fault != "takes anything" {
		d.bad = &dialect.Error{Dialect: "fake", Frame: d.st.N, Reason: "JSON", Err: err}
		if d.fault == "miscounts" {
			d.bad = &dialect.Error{Dialect: "fake", Frame: 7, Reason: "JSON", Err: err}
		}
		return nil, d.bad
	}
	if in.Type != "" {
		if d.fault == "knows all" {
			d.bad = &dialect.Error{Dialect: "fake", Frame: d.st.N, Reason: "unknown"}
		}
		return nil, d.bad
	}
	var ops []event.Event
	if !d.st.Begun {
		d.st.Begun = true
		ops = append(ops,
			event.Event{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
			event.Event{Type: event.PartStart, Message: "m", Part: "p", Body: &event.Body{Kind: event.KindText}})
	}
	text := in.Text
	if d.fault == "keeps the frame" {
		if d.kept != nil {
			text += string(d.kept[:1])
		}
		d.kept = f.Data
	}
	if text != "" || d.fault == "says nothing" {
		ops = append(ops, event.Event{Type: event.PartAppend, Message: "m", Part: "p", Text: text})
	}
	if in.End {
		d.st.Ended = true
		if d.fault == "ends a running tool" {
			ops = append(ops,
				event.Event{Type: event.PartStart, Message: "m", Part: "t", Body: &event.Body{Kind: event.KindTool, Name: "run", State: event.PartRunning}},
				event.Event{Type: event.PartEnd, Message: "m", Part: "t"})
		}
		ops = append(ops, event.Event{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Completed}})
	}
	for i := range ops {
		if d.fault == "stamps" {
			ops[i].Seq = 1
		}
	}
	return ops, nil
}

func (d *fake) Close() ([]event.Event, error) {
	if d.st.Ended || d.fault == "takes a cut for an end" {
		return nil, nil
	}
	if d.fault == "is whole too early" && d.bad == nil {
		d.st.Ended = true
		return []event.Event{{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Completed}}}, nil
	}
	if d.fault == "completes" {
		d.st.Ended = true
		return []event.Event{{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Completed}}}, dialect.ErrCutShort
	}
	return nil, dialect.ErrCutShort
}

func (d *fake) State() ([]byte, error) {
	if d.fault == "forgets" {
		return []byte(`{}`), nil
	}
	return json.Marshal(d.st)
}

func (d *fake) Restore(b []byte) error { return json.Unmarshal(b, &d.st) }

var fakeCorpus = []Stream{
	{Name: "whole", Body: []byte("{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"end\":true}\n")},
	{Name: "cut", Body: []byte("{\"text\":\"a\"}\n{\"text\":\"b\"}\n"), Unfinished: true},
}

const faultVariable = "LEAT_DIALECTTEST_FAULT"

// TestFake passes for the correct dialect. TestSuite runs it again with each fault, in a child process, because it must fail there.
func TestFake(t *testing.T) { Run(t, fakeDialect(os.Getenv(faultVariable)), fakeCorpus) }

// Each fault fails the checks that are for it, so no check passes whatever a decoder does.
func TestSuite(t *testing.T) {
	for fault, checks := range map[string][]string{
		"continues after the end": {"after"},
		"takes anything":          {"invalid"},
		"miscounts":               {"invalid"},
		"knows all":               {"unknown"},
		"keeps the frame":         {"restore"},
		"stamps":                  {"invents"},
		"says nothing":            {"changed nothing"},
		"takes a cut for an end":  {"Close", "and closed: want ErrCutShort, got <nil>"},
		"completes":               {"completes a turn", "and closed: a stream that was cut completes its turn"},
		"forgets":                 {"restore"},
		"is whole too early":      {"there is more than"},
		"ends a running tool":     {"ends the part of a running tool"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFake$")
			cmd.Env = append(os.Environ(), faultVariable+"="+fault)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatal("the suite passes")
			}
			for _, check := range checks {
				if strings.Contains(string(out), "panic:") || !strings.Contains(string(out), check) {
					t.Errorf("the output lacks %q:\n%s", check, out)
				}
			}
		})
	}
}
