package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/event"
)

// request sends a request and returns the status and the body.
func (s *site) request(method, path, session, kind string, body []byte, header *http.Header) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://localhost"+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if session != "" {
		r.Header.Set(sessionHeader, session)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if len(body) >= MaxUpload { // the server may refuse it without reading the body
		r.Header.Set("Expect", "100-continue")
	}
	response, err := s.client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if header != nil {
		*header = response.Header
	}
	return response.StatusCode, string(b)
}

func TestUploads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, nil)
		v, other := s.dial("session="), s.dial("session=")
		if status, _ := s.request(http.MethodPost, "/files?name=a.txt", "", "text/plain", []byte("x"), nil); status != http.StatusUnauthorized {
			t.Errorf("status %d without a session", status)
		}
		status, body := s.request(http.MethodPost, "/files?name=..%2Fa.txt", v.session, "text/plain; charset=utf-8", []byte("content"), nil)
		var stored struct{ File, Name, MIME string }
		if err := json.Unmarshal([]byte(body), &stored); err != nil || status != http.StatusOK || stored.Name != "a.txt" || stored.MIME != "text/plain" {
			t.Fatalf("status %d, %s", status, body)
		}
		message := `{"type":"message","content":"","files":["` + stored.File + `"]}`
		other.say(message)
		var f frame
		if other.next(&f); f.Type != typeError {
			t.Errorf("the file of another session was accepted: %+v", f)
		}
		v.say(message)
		m := <-s.inbox.messages
		if len(m.Media) != 1 || m.Media[0].Name != "a.txt" || m.Media[0].Size != 7 {
			t.Fatalf("message %+v", m)
		}
		if v.next(&f); len(f.Files) != 1 || f.Files[0].Name != "a.txt" {
			t.Errorf("frame %+v", f)
		}
		r, err := s.FetchMedia(t.Context(), m.Media[0])
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r); err != nil || string(b) != "content" {
			t.Errorf("content %q, error %v", b, err)
		}
		if status, _ := s.request(http.MethodPost, "/files", v.session, "", nil, nil); status != http.StatusBadRequest {
			t.Errorf("status %d of an empty file", status)
		}
		if status, _ := s.request(http.MethodPost, "/files", v.session, "", make([]byte, MaxUpload+1), nil); status != http.StatusRequestEntityTooLarge {
			t.Errorf("status %d of a file that is too large", status)
		}
		// A visitor can use up a share of the space, and several all of it. A share counts for the address, so a new session has no new one.
		fill := func(want int, sessions ...string) {
			t.Helper()
			for i, session := range sessions {
				if status, _ := s.request(http.MethodPost, "/files", session, "", make([]byte, MaxUpload), nil); status != want {
					t.Errorf("status %d of upload %d, want %d", status, i, want)
				}
			}
		}
		fill(http.StatusOK, v.session)
		fill(http.StatusServiceUnavailable, v.session)
		peer := s.peer
		s.peer = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5}
		fill(http.StatusOK, newToken(), newToken())
		fill(http.StatusServiceUnavailable, newToken())
		s.peer = peer
		fill(http.StatusOK, other.session)
		fill(http.StatusServiceUnavailable, newToken())
		time.Sleep(uploadLife + time.Second)
		if status, _ := s.request(http.MethodPost, "/files", v.session, "", []byte("x"), nil); status != http.StatusOK {
			t.Errorf("status %d after the others have expired", status)
		}
		if s.uploads.bytes != 1 || len(s.uploads.byOwner) != 1 {
			t.Errorf("%d bytes are counted, of %v", s.uploads.bytes, s.uploads.byOwner)
		}
		if _, err := s.FetchMedia(t.Context(), m.Media[0]); err == nil {
			t.Error("a file that has expired was found")
		}
	})
}

func TestMedia(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &conversation{}
		s := open(t, Options{}, log)
		v, other := s.dial("session="), s.dial("session=")
		y := s.tell(t.Context(), chatOf(v.session), "t1", log)
		for i, m := range []event.Media{
			{URL: "/files/1", Name: "a.png", MIME: "image/png"},
			{URL: "/files/2", Name: "b.html", MIME: "text/html"},
			{URL: "/files/missing", Name: "c"},
			{URL: "https://elsewhere.example/d.png", Name: "d.png"},
		} {
			y.show(fmt.Sprint(i), m)
		}
		y.end(event.Completed, "")
		list := v.until(typeDone)
		if got := types(list); got != "typing media media media media stream_done" {
			t.Fatalf("frames %s", got)
		}
		var header http.Header
		url := func(i int) string { return "/" + list[i].Files[0].URL }
		status, body := s.request(http.MethodGet, url(1), v.session, "", nil, &header)
		if status != http.StatusOK || body != "stored /files/1" || header.Get("Content-Type") != "image/png" ||
			!strings.HasPrefix(header.Get("Content-Disposition"), "inline") {
			t.Errorf("status %d, %q, %v", status, body, header)
		}
		status, _ = s.request(http.MethodGet, url(2), v.session, "", nil, &header)
		if status != http.StatusOK || header.Get("Content-Type") != "application/octet-stream" || header.Get("X-Content-Type-Options") != "nosniff" ||
			header.Get("Content-Disposition") != "attachment; filename=b.html" {
			t.Errorf("status %d, %v", status, header)
		}
		if status, _ := s.request(http.MethodGet, url(3), v.session, "", nil, nil); status != http.StatusNotFound {
			t.Errorf("status %d of a missing file", status)
		}
		if list[4].Files[0].URL != "https://elsewhere.example/d.png" {
			t.Errorf("file %+v", list[4].Files[0])
		}
		s.source = nil // the other chat has another conversation
		if status, _ := s.request(http.MethodGet, url(1), other.session, "", nil, nil); status != http.StatusNotFound {
			t.Errorf("status %d with the session of another", status)
		}
		s.source = log
		s.rooms.byChat = map[string]*room{} // as after a restart
		if status, _ := s.request(http.MethodGet, url(1), v.session, "", nil, nil); status != http.StatusOK {
			t.Errorf("status %d after a restart", status)
		}
	})
}
