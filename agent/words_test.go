package agent_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/leat-dev/leat/agent"
)

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                             nil,
		" \t\n":                        nil,
		"python3 agent.py":             {"python3", "agent.py"},
		"  a\tb\nc  ":                  {"a", "b", "c"},
		`sh -c 'echo "$HOME" | cat'`:   {"sh", "-c", `echo "$HOME" | cat`},
		`a "b c" d`:                    {"a", "b c", "d"},
		`a"b c"d`:                      {"ab cd"},
		`'' ""`:                        {"", ""},
		`a\ b \"c\" d\\e`:              {"a b", `"c"`, `d\e`},
		`"a\"b\\c"`:                    {`a"b\c`},
		`'a\'`:                         {`a\`},
		`C:\agents\mine.exe \n`:        {`C:\agents\mine.exe`, `\n`},
		`a\`:                           {`a\`},
		`grüße '→ 🔍'`:                  {"grüße", "→ 🔍"},
		`m='exec:python3 agent.py' b`:  {"m=exec:python3 agent.py", "b"},
		`take=replay:a.json?dialect=x`: {"take=replay:a.json?dialect=x"},
	} {
		got, err := agent.Words(line)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", line, got, err, want)
		}
	}
	for _, line := range []string{`'a`, `"a`, `a"b'c`, `"a\"`} {
		if got, err := agent.Words(line); !errors.Is(err, agent.ErrQuote) {
			t.Errorf("%s: got %q, %v", line, got, err)
		}
	}
}
