package capture

import (
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	m := newMasker([]string{"hunter22", `quo"ted\pass`, "abc", "with space/and"})
	for in, want := range map[string]string{
		"nothing to hide":                                      "nothing to hide",
		`Authorization: Bearer abcdef.123-456`:                 `Authorization: Bearer ***`,
		`{"authorization":"bearer  abcdefghi"}`:                `{"authorization":"***"}`,
		`"Authorization": "Basic dXNlcjpwYXNz"`:                `"Authorization": "***"`,
		`{"api_key":"k","x":1,"text":"the key word"}`:          `{"api_key":"***","x":1,"text":"the key word"}`,
		`{"OPENAI_API_KEY": "value"}`:                          `{"OPENAI_API_KEY": "***"}`,
		`{"a":"{\"apiKey\":\"inner\",\"b\":1}"}`:               `{"a":"{\"apiKey\":\"***\",\"b\":1}"}`,
		`{"token":"hello"}`:                                    `{"token":"hello"}`,
		`{"token":"0123456789abcdef0123456789"}`:               `{"token":"***"}`,
		`{"deviceToken":"x"} {"max_tokens":5,"token_count":7}`: `{"deviceToken":"***"} {"max_tokens":5,"token_count":7}`,
		`{"password":"p\"q"}`:                                  `{"password":"***"}`,
		`https://h/p?api_key=abcdefgh&x=1`:                     `https://h/p?api_key=***&x=1`,
		`sk-ant-api03-0123456789abcdef_x`:                      `sk-***`,
		`task-force-of-the-many-many-people`:                   `task-force-of-the-many-many-people`,
		`AIzaSyA0123456789012345`:                              `AIza***`,
		`ghp_0123456789012345678901`:                           `ghp_***`,
		`xoxb-0123456789-ab`:                                   `xoxb-***`,
		`eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl`:               `eyJ***`,
		`leat-turn.0198-aa.ABCDEFGH234`:                        `leat-turn.0198-aa.***`,
		`my hunter22 and abc`:                                  `my *** and abc`,
		`{"x":"quo\"ted\\pass"} quo"ted\pass`:                  `{"x":"***"} ***`,
		`?q=with+space%2Fand`:                                  `?q=***`,
	} {
		if got := string(m.mask([]byte(in))); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

// Secrets are masked wherever the pieces of a body are split, and nothing else is changed.
func TestMaskPieces(t *testing.T) {
	const secret = "hunter22"
	body := "data: {\"x\":\"" + secret + "\"}\n\ndata: Bearer abcdefghijkl\n\ndata: " + secret
	want := "data: {\"x\":\"***\"}\n\ndata: Bearer ***\n\ndata: ***"
	for cut := range body {
		for second := cut; second <= len(body); second += 7 {
			l := open(t, Options{Dir: t.TempDir()})
			turn := l.Turn(Meta{Turn: "t", Conversation: "c", Secrets: []string{secret}})
			turn.SetDialect("d", true)
			for _, piece := range []string{body[:cut], body[cut:second], body[second:]} {
				turn.Raw(false, []byte(piece))
			}
			turn.Close()
			got := ""
			if err := l.Read(t.Context(), "t", func(e Entry) error {
				if e.Kind == KindReceived {
					got += string(e.Data)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			shut(t, l)
			if got != want {
				t.Fatalf("cut at %d and %d: %q", cut, second, got)
			}
		}
	}
}

// A line that doesn't end is written in pieces, without letting part of a secret through.
func TestMaskLongLine(t *testing.T) {
	const secret = "hunter22-hunter22"
	m := newMasker([]string{secret})
	body := strings.Repeat(`{"a":1},"`+secret+`",`, 3000)
	var out, held []byte
	for len(body) > 0 {
		n := min(len(body), 997)
		held = append(held, body[:n]...)
		body = body[n:]
		w := m.maskable(held)
		out = append(out, m.mask(held[:w])...)
		if held = held[w:]; len(held) > maxPending {
			t.Fatalf("%d bytes are pending", len(held))
		}
	}
	out = append(out, m.mask(held)...)
	if want := strings.Repeat(`{"a":1},"***",`, 3000); string(out) != want {
		t.Errorf("%.200s", out)
	}
}

func FuzzMask(f *testing.F) {
	f.Add([]byte(`{"api_key":"x"} Bearer abcdefgh`), "abcdefgh")
	f.Fuzz(func(t *testing.T, b []byte, secret string) {
		got := newMasker([]string{secret}).mask(b)
		// A value with an asterisk could occur in the masks themselves.
		if len(secret) >= shortest && !strings.Contains(secret, "*") && strings.Contains(string(got), secret) {
			t.Errorf("%q is in %q", secret, got)
		}
	})
}
