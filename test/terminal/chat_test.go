//go:build linux

package terminal

import "testing"

func TestLook(t *testing.T) {
	g := serve(t, "--agent", "demo?speed=0")
	s := chat(t, g.url(), t.TempDir(), 80)
	t.Log(s.isReady())
	s.keys("hello\r")
	t.Log(s.isReady("Hello!"))
	s.keys("ask sing a song\r")
	t.Log(s.sees("approves"))
	s.keys("y\r")
	t.Log(s.isReady("approve"))
	s.keys("tools\r")
	t.Log(s.isReady("tools"))
	s.keys("/help\r/open\r/agents\r/foo\r")
	t.Log(s.isReady("Unknown"))
	s.keys("\x04")
	s.ends()
	t.Log(s.text())
}
