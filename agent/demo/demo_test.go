package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/demo"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// sink applies the agent's output to a transcript, as a gateway does, and answers its requests.
type sink struct {
	t      *testing.T
	mapper *dialect.Mapper
	fold   transcript.Transcript
	answer event.Answer
	asked  []event.Request
	ops    int
}

func newSink(t *testing.T) *sink {
	n := 0
	s := &sink{t: t, mapper: dialect.NewMapper("turn", func() string { n++; return fmt.Sprint("id", n) })}
	s.apply([]event.Event{{Seq: 1, Type: event.TurnStart, Turn: "turn", Body: &event.Body{Agent: "demo"}}})
	return s
}

func (s *sink) Emit(ctx context.Context, ops []event.Event, _ json.RawMessage) error {
	if err := ctx.Err(); err != nil {
		return agent.ErrTurnOver
	}
	s.ops += len(ops)
	s.emit(ops)
	return nil
}

func (s *sink) emit(ops []event.Event) {
	events, err := s.mapper.Map(ops, 1)
	if err != nil {
		s.t.Fatalf("operations %v: %v", ops, err)
	}
	s.apply(events)
}

func (s *sink) apply(events []event.Event) {
	for i := range events {
		events[i].Seq = s.fold.Seq + 1
		if err := events[i].Validate(); err != nil {
			s.t.Fatal(err)
		}
		if err := s.fold.Apply(&events[i]); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *sink) Flush(context.Context) error { return nil }
func (s *sink) ReportProgress()             {}

func (s *sink) Wait(_ context.Context, r event.Request) (event.Answer, error) {
	s.asked = append(s.asked, r)
	return s.answer, nil
}

// noon is the time of the tests, on a Friday.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func input(text string, history ...agent.Message) agent.Input {
	return agent.Input{Conversation: "c", Turn: "turn", Message: agent.Message{Role: event.User, Text: text}, History: history}
}

// ask runs one turn at full speed.
func ask(t *testing.T, s *sink, in agent.Input) error {
	t.Helper()
	ctx := t.Context()
	e := agent.NewEmitter(ctx, s)
	err := demo.New(demo.Config{Clock: func() time.Time { return noon }}).Run(ctx, in, e)
	s.emit(e.Close())
	return err
}

func TestAnswers(t *testing.T) {
	tests := []struct {
		ask  string
		want []string
		not  string
	}{
		{"What is 12 * (3 + 4) / 5?", []string{"**12 * (3 + 4) / 5 = 16.8**", "As a fraction it is 84/5.", "| 1 | 3 + 4 | 7 |", "print(12 * (3 + 4) / 5)"}, ""},
		{"2^10", []string{"**2^10 = 1024**", "print(2**10)"}, ""},
		{"what's 15% of 80?", []string{"= 12**"}, ""},
		{"nine minus 3 plus 4.5", []string{"= 7.5**"}, ""},
		{"1,000 + 1", []string{"= 1001**"}, ""},
		{"10 / 3", []string{"≈ 3.333333333333", "10/3"}, ""},
		{"-2^2", []string{"**-2^2 = -4**"}, ""},
		{"-7 % 3", []string{"= 2**"}, ""},
		{"1/0", []string{"can't give a result", "division by zero"}, ""},
		{"9^9^9", []string{"too large"}, ""},
		{"What day is 2027-01-01?", []string{"1 January 2027 is a Friday", "42 days from today"}, ""},
		{"How many days between 2024-02-28 and 2024-03-01?", []string{"it is **2 days**"}, ""},
		{"what time is it?", []string{"**12:00:00** on **Friday, 20 November 2026**"}, ""},
		{`How many r's are in "strawberry"?`, []string{"**r** occurs **3 times** in *strawberry*", "  ^    ^^", "| r | 3 | 3, 8, 9 |"}, ""},
		{"how often does a occur in the word Ananas", []string{"**a** occurs **3 times** in *Ananas*"}, ""},
		{"how many z are in foo", []string{"**z** occurs **0 times**", "nowhere"}, ""},
		{"The cat saw the dog. The dog ran!", []string{"8, of them 5 distinct", "| Sentences | 2 |", "the "}, ""},
		{"Why is the sky blue?", []string{"can't answer a question", "| Words | 5, of them 5 distinct |"}, ""},
		{"Count the words in this text", []string{"| Words | 6"}, "1, 2,"},
		{"count to 5", []string{"1, 2, 3, 4, **5**"}, ""},
		{"Count down from 3", []string{"3, 2, 1, **0**"}, ""},
		{"count from 2 to -1", []string{"2, 1, 0, **-1**"}, ""},
		{"look:\n```go\nfunc main() {\n```", []string{"This is **go**, as the fence says", "{ of line 1 is never closed", "  1  func main() {"}, ""},
		{"```\nprint('a(')\n```", []string{"**python**, judging by its patterns", "all closed"}, ""},
		{"hello", []string{"demo agent", "`count`", "```go"}, ""},
		{"help", []string{"Result"}, ""},
		{"", []string{"Result"}, ""},
		{"status", []string{"Now playing: **Song**"}, "🔍"},
		{"tools Leat", []string{"| sha256 | done |", "TGVhdA==", "can't divide by zero"}, ""},
		{"slow 1+1", []string{"**1+1 = 2**"}, ""},
		{"long 100", []string{"**2** is a prime number", "**12** is 2^2 × 3, and has 6 divisors"}, ""},
		{"what did I say?", []string{"There are no messages before this one"}, ""},
		{"naïve | pipe\x00 `tick` 😀 العربية", []string{"| Words | 4"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.ask, func(t *testing.T) {
			s := newSink(t)
			if err := ask(t, s, input(tt.ask)); err != nil {
				t.Fatal(err)
			}
			got := s.fold.Visible("turn")
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in\n%s", want, got)
				}
			}
			if tt.not != "" && strings.Contains(got, tt.not) {
				t.Errorf("%q is in\n%s", tt.not, got)
			}
			if m := s.fold.Messages[0]; !m.Final {
				t.Error("the message has no end")
			}
			for _, p := range s.fold.Messages[0].Parts {
				if !p.Final || p.State == event.PartRunning {
					t.Errorf("part %s of kind %s is still open", p.ID, p.Kind)
				}
			}
		})
	}
}

// An ordinary answer shows reasoning, tools, statuses and text.
func TestAnswerShowsEverything(t *testing.T) {
	s := newSink(t)
	if err := ask(t, s, input("What is 1 + 2 * 3?")); err != nil {
		t.Fatal(err)
	}
	kinds := map[event.PartKind]int{}
	for _, p := range s.fold.Messages[0].Parts {
		kinds[p.Kind]++
		if p.Kind == event.KindTool && (p.Name == "" || p.Title == "" || p.Len(event.Input) == 0 || p.Len(event.Output) == 0 || p.State != event.PartDone) {
			t.Errorf("tool %+v", p)
		}
	}
	for _, k := range []event.PartKind{event.KindReasoning, event.KindStatus, event.KindTool, event.KindText} {
		if kinds[k] == 0 {
			t.Errorf("no %s", k)
		}
	}
	if h := s.fold.History("turn"); len(h) != 2 {
		t.Errorf("statuses: %q", h)
	}
	if s.ops < 40 {
		t.Errorf("%d operations: too few for a stream", s.ops)
	}
}

func TestToolsFail(t *testing.T) {
	s := newSink(t)
	if err := ask(t, s, input("tools")); err != nil {
		t.Fatal(err)
	}
	states := map[string]event.PartState{}
	for _, p := range s.fold.Messages[0].Parts {
		if p.Kind == event.KindTool {
			states[p.Name] = p.State
			if p.State == event.PartFailed && (p.Text(event.Stderr) == "" || p.Error == nil) {
				t.Errorf("failed tool has no error or no standard error: %+v", p)
			}
		}
	}
	if states["sha256"] != event.PartDone || states["base64"] != event.PartDone || states["divide"] != event.PartFailed {
		t.Errorf("states: %v", states)
	}
}

func TestError(t *testing.T) {
	s := newSink(t)
	err := ask(t, s, input("error please"))
	var shown *agent.Error
	if !errors.As(err, &shown) || !shown.Retryable || shown.Code == "" {
		t.Fatalf("error: %v", err)
	}
	if s.fold.Visible("turn") == "" {
		t.Error("no text before the failure")
	}
}

func TestAsk(t *testing.T) {
	for decision, want := range map[event.Answer]string{
		{Decision: event.Approve}:                 "> carries the stream",
		{Decision: event.Deny}:                    "I leave it",
		{Decision: event.Deny, Text: "too early"}: "with a reason: too early",
	} {
		s := newSink(t)
		s.answer = decision
		if err := ask(t, s, input("ask sing")); err != nil {
			t.Fatal(err)
		}
		if len(s.asked) != 1 || s.asked[0].Prompt != "May I sing?" {
			t.Errorf("asked: %+v", s.asked)
		}
		if got := s.fold.Visible("turn"); !strings.Contains(got, want) {
			t.Errorf("%v: %s", decision, got)
		}
	}
}

func TestRecall(t *testing.T) {
	s := newSink(t)
	err := ask(t, s, input("What did we say?", agent.Message{Role: event.User, Text: "one two"}, agent.Message{Role: event.Assistant, Text: "three | four five"}))
	if err != nil {
		t.Fatal(err)
	}
	got := s.fold.Visible("turn")
	for _, want := range []string{"you said **2 words** and I said **3 words**", `| 2 | assistant | three \| four five |`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// The same question gets the same answer, at every pace.
func TestPace(t *testing.T) {
	answer := func(speed float64) (string, time.Duration) {
		var text string
		var took time.Duration
		synctest.Test(t, func(t *testing.T) {
			s := newSink(t)
			e := agent.NewEmitter(t.Context(), s)
			start := time.Now()
			if err := demo.New(demo.Config{Speed: speed, Clock: func() time.Time { return noon }}).Run(t.Context(), input("How many e are in leat"), e); err != nil {
				t.Fatal(err)
			}
			s.emit(e.Close())
			text, took = s.fold.Visible("turn"), time.Since(start)
		})
		return text, took
	}
	human, at1 := answer(1)
	fast, at10 := answer(10)
	now, at0 := answer(0)
	if human != fast || human != now {
		t.Errorf("the pace changed the answer:\n%s\n%s\n%s", human, fast, now)
	}
	if at1 < 3*time.Second || at1 > time.Minute {
		t.Errorf("at the pace of a person it took %v", at1)
	}
	// Only the rounding of each pause to a nanosecond may differ.
	if d := at1 - 10*at10; d < -time.Millisecond || d > time.Millisecond {
		t.Errorf("%v, ten times as fast %v", at1, at10)
	}
	if at0 != 0 {
		t.Errorf("as fast as possible took %v", at0)
	}
}

// A stopped turn ends at the next word.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		s := newSink(t)
		time.AfterFunc(10*time.Second, func() { cancel(stop) })
		start := time.Now()
		err := demo.New(demo.Config{Speed: 1}).Run(ctx, input("long 5000"), agent.NewEmitter(ctx, s))
		if !errors.Is(err, stop) {
			t.Errorf("error: %v", err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("it stopped after %v", took)
		}
		if said := len(s.fold.Visible("turn")); said == 0 || said > 5000 {
			t.Errorf("it had said %d bytes", said)
		}
	})
}

func TestKind(t *testing.T) {
	kinds := agent.Kinds{demo.Kind()}
	for spec, ok := range map[string]bool{"demo": true, "demo?speed=0": true, "demo?speed=fast": false, "demo:x": false, "demo?pace=1": false} {
		s, err := agent.ParseSpec(spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kinds.Make(s); (err == nil) != ok {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// No message makes it panic, hang, or emit invalid operations.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{"", "1+1", "((((1", "2^-3", "0^-1", "```", "count to 99999", "how many a in a", "2026-02-31", "\xff\xfe", "5 % 0", "1e9", "long 3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := newSink(t)
		err := ask(t, s, input(strings.ToValidUTF8(text, "?")))
		var shown *agent.Error
		if err != nil && !errors.As(err, &shown) {
			t.Fatal(err)
		}
		if s.fold.Visible("turn") == "" {
			t.Fatal("no answer")
		}
	})
}

// The statuses of the demo are those of a callback case, word for word.
func TestCallbacks(t *testing.T) {
	c := agenttest.Cases()[0]
	c.Check(t, agenttest.Play(t, demo.New(demo.Config{}), input("status")))
}
