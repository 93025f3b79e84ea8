package openclaw

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

func TestScreen(t *testing.T) {
	tests := []struct {
		text string
		want screened
	}{
		{"", screened{}},
		{"Hello", screened{visible: "Hello"}},
		{"Hello\n", screened{visible: "Hello", buffered: "\n"}},
		{"Hello\n\n  ", screened{visible: "Hello", buffered: "\n\n  "}},
		{"Hello  \nM", screened{visible: "Hello  ", buffered: "\nM"}},
		{"Hello\nME", screened{visible: "Hello", buffered: "\nME"}},
		{"Hello\nMe", screened{visible: "Hello\nMe"}},
		{"MEDIA", screened{buffered: "MEDIA"}},
		{"Hello MEDIA:/a/b.png", screened{visible: "Hello MEDIA:/a/b.png"}},
		{"Hello\nMEDIA:/a/b", screened{visible: "Hello", buffered: "\nMEDIA:/a/b"}},
		{"Hello\nMEDIA:/a/b.png\n", screened{visible: "Hello", buffered: "\n", media: []string{"/a/b.png"}, at: []int{6}}},
		{"Hello\nMEDIA: `./a b.png`\nBye", screened{visible: "Hello\nBye", media: []string{"./a b.png"}, at: []int{6}}},
		{"MEDIA:https://x/y.png\nMEDIA:/z\nBye", screened{visible: "Bye", media: []string{"https://x/y.png", "/z"}, at: []int{0, 0}}},
		{"MEDIA: is a plural\nBye", screened{visible: "MEDIA: is a plural\nBye"}},
		{"MEDIA:https:/\nBye", screened{visible: "MEDIA:https:/\nBye"}},
		{"MEDIA:" + strings.Repeat("/x", maxMedia), screened{visible: "MEDIA:" + strings.Repeat("/x", maxMedia)}},
		{"```\nMEDIA:/a\n```\nMEDIA:/b\nx", screened{visible: "```\nMEDIA:/a\n```\nx", media: []string{"/b"}, at: []int{17}}},
		{"~~~~\n```\nNO_REPLY\n~~~\n[[reply_to_current]]", screened{visible: "~~~~\n```\nNO_REPLY\n~~~\n[[reply_to_current]]"}},
		{"NO", screened{buffered: "NO"}},
		{"NO way", screened{visible: "NO way"}},
		{"NO_REPLY", screened{buffered: "NO_REPLY"}},
		{"Hello\nNO_REPLY\n", screened{visible: "Hello", buffered: "\n", silent: true}},
		{"NO_REPLY to that", screened{visible: "NO_REPLY to that"}},
		{"[", screened{buffered: "["}},
		{"a [", screened{visible: "a ", buffered: "["}},
		{"a [link](b)", screened{visible: "a [link](b)"}},
		{"[[reply_to_cur", screened{buffered: "[[reply_to_cur"}},
		{"[[reply_to_current]", screened{buffered: "[[reply_to_current]"}},
		{"[[reply_to_current]] Hello", screened{visible: "Hello"}},
		{"[[reply_to_current]]\nHello", screened{visible: "Hello"}},
		{"Hello\n[[ reply_to : 17 ]]\n", screened{visible: "Hello", buffered: "\n"}},
		{"a [[audio_as_voice]] b [[ c", screened{visible: "a b [[ c"}},
		{"[[Page]] [[ -f x ]]", screened{visible: "[[Page]] [[ -f x ]]"}},
		{"[[[reply_to_current]]", screened{visible: "["}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, screen(tt.text), cmp.AllowUnexported(screened{})); diff != "" {
			t.Errorf("%.60q (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestRelease(t *testing.T) {
	tests := []struct {
		held        string
		whole, torn string
	}{
		{"\nME", "\nME", "\nME"},
		{"NO", "NO", "NO"},
		{"NO_REP", "NO_REP", ""},
		{"\n\nNO_REPLY", "", ""},
		{"\nMEDIA:/a/b", "", ""},
		{"\nMEDIA: x", "\nMEDIA: x", ""},
		{"[[reply", "[[reply", ""},
		{" \n", "", ""},
	}
	for _, tt := range tests {
		if got := release(tt.held, false).visible; got != tt.whole {
			t.Errorf("%q ended: %q, want %q", tt.held, got, tt.whole)
		}
		r := release(tt.held, true)
		if r.visible != tt.torn || len(r.media) > 0 {
			t.Errorf("%q cut off: %q and media %v, want %q", tt.held, r.visible, r.media, tt.torn)
		}
	}
}

// protocol3 draws a text of a model: words, with control syntax in valid and invalid places.
func protocol3() *rapid.Generator[string] {
	words := rapid.SampledFrom([]string{
		"a", " ", "\n", "\n\n", "NO", "NO_REPLY", "_", "[", "[[", "]", "]]", "reply_to_current", "reply_to:", "[[reply_to_current]]", "[[reply_to: 9]]",
		"MEDIA:", "MED", "/a/b.png", "./c", "https://d/e", "```", "```\n", "~~~", "`", "é", "👍", "Hello", " world", ".", "\t", "\r\n", "[[audio_as_voice]]",
	})
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(words, 0, 12).Draw(t, "words"), "") })
}

// The visible form of a growing text only grows, ends as the form of the whole text, and never contains control syntax.
func TestScreenGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := protocol3().Draw(t, "text")
		before := screened{}
		for n := range len(text) + 1 {
			s := screen(text[:n])
			if !strings.HasPrefix(s.visible, before.visible) {
				t.Fatalf("%q shows %q, after %q", text[:n], s.visible, before.visible)
			}
			if len(s.media) < len(before.media) || before.silent && !s.silent {
				t.Fatalf("%q lost what was found before", text[:n])
			}
			if stripped, _, _, _, _, fenced := strip(text[:n]); !fenced && s.visible+s.buffered != stripped {
				t.Fatalf("%q: %q and %q are not all of %q", text[:n], s.visible, s.buffered, stripped)
			}
			if start := strings.LastIndexByte(text[:n], '\n') + 1; !strings.ContainsAny(text, "`~") {
				line := strings.TrimSpace(text[start:n])
				control := line != "" && strings.HasPrefix(silentToken, line) || strings.HasPrefix(mediaToken, line) || mediaURL(line) != ""
				if control && s.visible != screen(text[:start]).visible {
					t.Fatalf("%q shows %q", text[:n], s.visible)
				}
				raw := text[start:n]
				if at := strings.LastIndex(raw, "[["); at >= 0 && strings.HasPrefix("reply_to_current]", raw[at+2:]) && !strings.HasSuffix(s.buffered, raw[at:]) {
					t.Fatalf("%q shows %q", text[:n], s.visible)
				}
			}
			before = s
		}
		whole, rest := screenWhole(text), release(before.buffered, false)
		if got := strings.TrimRight(before.visible+rest.visible, " \t\r\n"); got != whole.visible {
			t.Fatalf("%q comes to %q in pieces, %q as a whole", text, got, whole.visible)
		}
	})
}

// A run of protocol 3 whose text arrives in arbitrary pieces, followed by the gateway's final.
func TestProtocol3(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := protocol3().Draw(t, "text")
		s := ready("s")
		lines := []string{hello3}
		for rest := []rune(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			lines = append(lines, s.say(string(rest[:n])))
			rest = rest[n:]
		}
		final := strings.TrimSpace(text)
		if rapid.Bool().Draw(t, "folded") {
			final = strings.ReplaceAll(final, "\n\n", "\n")
		}
		lines = append(lines, s.chat("final", final, nil))
		f, err := play3(t, lines)
		if err != nil {
			t.Fatal(err)
		}
		want := screenWhole(text)
		if got := strings.Join(strings.Fields(f.Tr.Visible(s.run)), " "); got != strings.Join(strings.Fields(want.visible), " ") {
			t.Fatalf("%q is shown as %q, want %q", text, f.Tr.Visible(s.run), want.visible)
		}
		media := map[string]bool{}
		for _, url := range want.media {
			media[url] = true
		}
		for _, p := range parts(f.Tr.Message(s.run)) {
			if url, ok := strings.CutPrefix(p, "media "); ok {
				if !media[url] {
					t.Fatalf("%q shows media %q", text, url)
				}
				delete(media, url)
			}
		}
		if len(media) > 0 {
			t.Fatalf("%q lacks media %v", text, media)
		}
	})
}

// However a text with MEDIA: lines is split in three, the visible text is always a prefix of the text without them.
func TestMediaAtEveryCut(t *testing.T) {
	for text, want := range map[string]screened{
		"Look:\nMEDIA:/srv/pic.png\nNice?":                        {visible: "Look:\nNice?", media: []string{"/srv/pic.png"}},
		"MEDIA:./é 👍.png\nBoth.\n MEDIA: `/b.pdf`":                {visible: "Both.", media: []string{"./é 👍.png", "/b.pdf"}},
		"A\r\nMEDIA:/a.b\r\n\r\nMEDIUM ME\nMEDIA: is no path":     {visible: "A\r\n\r\nMEDIUM ME\nMEDIA: is no path", media: []string{"/a.b"}},
		"```\nMEDIA:/in/code\n```\nMEDIA:file:///x/y.z\nafter it": {visible: "```\nMEDIA:/in/code\n```\nafter it", media: []string{"file:///x/y.z"}},
	} {
		runes := []rune(text)
		for i := 1; i < len(runes); i++ {
			for j := i; j < len(runes); j++ {
				s := ready("s")
				lines := []string{hello3, s.say(string(runes[:i]))}
				if j > i {
					lines = append(lines, s.say(string(runes[i:j])))
				}
				lines = append(lines, s.say(string(runes[j:])), s.chat("final", text, nil))
				f := newFolder(t)
				f.each = func(tr *transcript.Transcript, e *event.Event) {
					if now := tr.Visible(s.run); e.Turn != "" && !strings.HasPrefix(want.visible, now) {
						t.Fatalf("cut at %d and %d, %q shows %q", i, j, text, now)
					}
				}
				d := Dialect().Decoder()
				f.decode(d, bytesOf(lines))
				ops, err := d.Close()
				if f.apply(ops); err != nil {
					t.Fatal(err)
				}
				var media []string
				for _, p := range parts(f.Tr.Message(s.run)) {
					if url, ok := strings.CutPrefix(p, "media "); ok {
						media = append(media, url)
					}
				}
				if f.Tr.Visible(s.run) != want.visible || !cmp.Equal(media, want.media) {
					t.Fatalf("cut at %d and %d, %q comes to %q and media %q", i, j, text, f.Tr.Visible(s.run), media)
				}
			}
		}
	}
}

func TestMedia(t *testing.T) {
	tests := []struct {
		name   string
		frames func(*script) []string
		want   []string
	}{
		{"a relative path at the end, of which only mediaUrls tell", func(s *script) []string {
			return []string{
				s.say("Relative one."), s.say("\nME"), s.say("DIA:"),
				s.agent("assistant", fields{"text": "Relative one.", "delta": "", "mediaUrls": []string{"./pic.png"}}), s.chat("final", "Relative one.", nil),
			}
		}, []string{`text "Relative one."`, "media ./pic.png"}},
		{"the frame that brings media may fold the text", func(s *script) []string {
			return []string{
				s.say("A.\n\nB."), s.say("\nMEDIA:"), s.agent("assistant", fields{"text": "A.\nB.", "delta": "", "mediaUrls": []string{"./pic.png"}}), s.chat("final", "A.\nB.", nil),
			}
		}, []string{`text "A.\n\nB."`, "media ./pic.png"}},
		{"a line and mediaUrls are one file", func(s *script) []string {
			return []string{
				s.say("Look:\nMEDIA:./pic.png\n"), s.agent("assistant", fields{"text": "Look:", "delta": "", "mediaUrls": []string{"./pic.png", "./two.png"}}),
				s.chat("final", "Look:", nil),
			}
		}, []string{`text "Look:"`, "media ./pic.png", "media ./two.png"}},
		{"a path at the end is whole with the final", func(s *script) []string {
			return []string{s.say("Look:\nMEDIA:/srv/p"), s.say("ic.png"), s.chat("final", "Look:\nMEDIA:/srv/pic.png", nil)}
		}, []string{`text "Look:"`, "media /srv/pic.png"}},
		{"a frame of the path that was lost comes with the final", func(s *script) []string {
			return []string{s.say("Look:\nMEDIA:/srv/p"), s.chat("final", "Look:\nMEDIA:/srv/pic.png\nNice?", nil)}
		}, []string{`text "Look:\nNice?"`, "media /srv/pic.png"}},
		{"an abort in the middle of a path shows none of it", func(s *script) []string {
			return []string{s.say("Look:\nMEDIA:/srv/p"), s.chat("aborted", "", fields{"stopReason": "rpc"})}
		}, []string{`text "Look:"`}},
		{"a file without a word", func(s *script) []string {
			return []string{s.agent("assistant", fields{"text": "", "delta": "", "mediaUrls": []string{"./pic.png"}}), s.chat("final", "", nil)}
		}, []string{"media ./pic.png"}},
		{"a file shown before the tool is whole there", func(s *script) []string {
			return []string{s.say("Look:\nMEDIA:/srv/pic.png"), s.tool("start", "c", nil), s.tool("result", "c", nil), s.say("Nice?"), s.chat("final", "Nice?", nil)}
		}, []string{`text "Look:"`, "media /srv/pic.png", `tool exec "" done in= out=""`, `text "Nice?"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := ready("s")
			f, err := play3(t, append([]string{hello3}, tt.frames(s)...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, parts(f.Tr.Message(s.run))); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

// play3 decodes a stream of protocol 3 and checks that visible text is never removed.
func play3(t failer, lines []string) (*folder, error) {
	t.Helper()
	f := newFolder(t)
	shown := ""
	f.each = func(tr *transcript.Transcript, e *event.Event) {
		if e.Turn == "" {
			return
		}
		now := tr.Visible(e.Turn)
		if !strings.HasPrefix(now, shown) {
			t.Fatalf("%q was shown, then %q", shown, now)
		}
		shown = now
	}
	d := Dialect().Decoder()
	f.decode(d, bytesOf(lines))
	ops, err := d.Close()
	f.apply(ops)
	return f, err
}
