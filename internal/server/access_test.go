package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/app/outputs"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/gateway/inspection"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/gateway/streams"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/auth"
	"github.com/leat-dev/leat/internal/server/channels"
	keepdata "github.com/leat-dev/leat/internal/server/data"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/elizaws"
	keepfiles "github.com/leat-dev/leat/internal/server/files"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/server/notices"
	"github.com/leat-dev/leat/internal/server/ops"
	"github.com/leat-dev/leat/internal/server/plugins"
	"github.com/leat-dev/leat/internal/server/ui"
	"github.com/leat-dev/leat/internal/server/usage"
	"github.com/leat-dev/leat/internal/server/voice"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/service/signals"
	"github.com/leat-dev/leat/internal/service/webpush"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/internal/voice/vad"
	"github.com/leat-dev/leat/internal/voice/wire"
	"github.com/leat-dev/leat/transcript"
)

// person is one of the callers of the walk. Two tenants have a subject of the same name, which must not be confused.
type person struct{ tenant, subject string }

var persons = []person{{"t1", "alice"}, {"t1", "bob"}, {"t2", "alice"}, {"t2", "carol"}}

// mark is in every id, title and text that belongs to a person, so an answer to anyone else must never contain it.
func (p person) mark() string { return p.subject + "-of-" + p.tenant }

func (p person) principal() gateway.Principal {
	return gateway.Principal{Tenant: p.tenant, Subject: p.subject, Scopes: []string{gateway.ScopeAgent}}
}

type talker struct{}

func (talker) Run(_ context.Context, in agent.Input, out *agent.Emitter) error {
	mark := person{in.Principal.Tenant, in.Principal.Subject}.mark()
	if err := out.Text(mark); err != nil {
		return err
	}
	return out.End(event.Completed, "", &event.Usage{Model: mark, Input: 1})
}

const usersSecret = "a secret of the walk's own, as long as it has to be"

// walk is a gateway with every surface over it.
type walk struct {
	t       *testing.T
	gw      *gateway.Gateway
	files   *attachments.Service
	pushes  *push.Service
	streams *streams.Store
	journal journal.Journal
	outputs []outputs.Output
	srv     *server.Server
	ts      *httptest.Server
	cookies map[person]*http.Cookie
	// ids of the last subscriptions: each person may only have some
	subscriptions map[person]string
}

func newWalk(t *testing.T) *walk {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	j := memory.New()
	dir, err := files.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	coming, err := files.OpenUploads(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	space, err := files.OpenWorkspace(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := capture.Open(capture.Options{Dir: t.TempDir(), Retention: capture.DefaultRetention, Size: capture.DefaultSize})
	if err != nil {
		t.Fatal(err)
	}
	attached := attachments.NewStore(attachments.Config{Journal: j, Files: dir, Uploads: coming, Workspace: space})
	dialects := dialect.NewRegistry(elizaactions.Dialect())
	turns := push.NewTurns(push.Config{Journal: j, Dialects: dialects})
	gw, err := gateway.New(gateway.Config{
		Raw: raw, Pusher: turns, Journal: j, Dialects: dialects, Settings: gateway.Settings{Drain: time.Millisecond, Lease: 500 * time.Millisecond}, // what waits behind the pushed turns gets its turn
		Agents: gateway.Agents{"a": {Agent: talker{}}}, DefaultAgent: "a", Attachments: attached,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	users, err := auth.New(auth.Config{Secret: usersSecret, Claims: auth.Claims{Tenant: "tenant", Scopes: "scope"}})
	if err != nil {
		t.Fatal(err)
	}
	service := attachments.NewService(attached, gw)
	srv := server.New(server.Options{Token: token, Users: users})
	pushes := push.NewService(turns, gw)
	native.Register(srv, gw)
	native.RegisterInspection(srv, inspection.New(gw, inspection.Config{Journal: j, Captures: raw, Dialects: dialect.NewRegistry(elizaactions.Dialect())}))
	native.RegisterIngest(srv, gw, pushes)
	ops.Register(srv, gw, prometheus.NewRegistry(), nil)
	ops.RegisterOverview(srv, status.NewOverview())
	ops.RegisterReload(srv, func() (ops.Reloaded, error) { return ops.Reloaded{}, nil })
	if err := ops.RegisterBackup(srv, j, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	eliza.Register(srv, gw, eliza.Options{})
	eliza.RegisterTerminal(srv, eliza.TerminalOptions{})
	eliza.RegisterEmotes(srv, eliza.EmoteOptions{})
	stored := streams.New(gw, j, quiet)
	opt := outputs.Options{ControlUI: t.TempDir()}
	opt.DurableStreams.Wait, opt.DurableStreams.Store = time.Second, stored
	all := outputs.List(opt)
	for _, o := range all {
		o.Register(srv, gw)
	}
	plugins.Register(srv, gw, plugins.Options{})
	channels.Register(srv, gw, channel.New(channel.Config{Journal: j, Log: quiet}), nil)
	told := signals.New(j, quiet)
	if err := told.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	elizaws.Register(srv, gw, elizaws.Options{Signals: told, Hub: hub.New(gw), Agent: status.NewAgent("a", "test"), Restart: func() error { return nil }})
	voice.Register(srv, gw, wire.New(wire.Options{Log: quiet}), true)
	voice.RegisterSpeech(srv, gw, voice.Speech{})
	ui.Register(srv, &vad.Archive{})
	keepfiles.Register(srv, service)
	usage.Register(srv, gw)
	notified, err := webpush.Open(t.Context(), webpush.Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	notices.Register(srv, notified)
	keepdata.Register(srv, gw, keepdata.Options{
		Retention: data.NewRetention(gw, j, data.Ages{}, "a", quiet), Purger: data.NewPurger(gw, j, nil, nil, nil, quiet),
		Exporter: data.NewExporter(gw, j, nil), Importer: data.NewImporter(gw),
	})
	w := &walk{t: t, gw: gw, files: service, pushes: pushes, streams: stored, journal: j, outputs: all, srv: srv, ts: httptest.NewServer(srv), cookies: map[person]*http.Cookie{}, subscriptions: map[person]string{}}
	t.Cleanup(func() {
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := raw.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		w.ts.Close()
	})
	w.spend()
	return w
}

// spend has each person use something.
func (w *walk) spend() {
	w.t.Helper()
	for _, p := range persons {
		c, _, err := w.gw.Create(w.t.Context(), p.principal(), gateway.CreateOptions{ID: "spent-" + p.mark()})
		if err != nil {
			w.t.Fatal(err)
		}
		ack, err := w.gw.Do(w.t.Context(), p.principal(), c.ID, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: p.mark()}})
		if err != nil {
			w.t.Fatal(err)
		}
		f, err := w.gw.Feed(w.t.Context(), p.principal(), c.ID)
		if err != nil {
			w.t.Fatal(err)
		}
		for ended := false; !ended; {
			changed := f.Notify()
			f.View(func(tr *transcript.Transcript) { ended = !tr.Turn(ack.Turn).Unfinished() })
			if !ended {
				<-changed
			}
		}
		f.Release()
	}
}

// logIn gets a cookie for each person.
func (w *walk) logIn() {
	w.t.Helper()
	for _, p := range persons {
		r := w.request(http.MethodPost, "/api/auth/session", "")
		withToken(w, r, p)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			w.t.Fatal(err)
		}
		_ = res.Body.Close()
		if len(res.Cookies()) != 1 {
			w.t.Fatalf("%s logs in: %d %v", p.mark(), res.StatusCode, res.Cookies())
		}
		w.cookies[p] = res.Cookies()[0]
	}
}

// belongings makes a conversation of a person's with a pushed turn that is open, and returns the path values that name them.
func (w *walk) belongings(p person, n string) map[string]string {
	w.t.Helper()
	c, _, err := w.gw.Create(w.t.Context(), p.principal(), gateway.CreateOptions{ID: "conversation-" + p.mark() + n, Title: "title-" + p.mark()})
	if err != nil {
		w.t.Fatal(err)
	}
	id := c.ID
	pr, ack, err := w.pushes.Push(w.t.Context(), p.principal(), id, push.Options{Dialect: "eliza-actions"})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := pr.Write(w.t.Context(), []byte(`{"type":"chunk","text":"text-`+p.mark()+`"}`+"\n")); err != nil {
		w.t.Fatal(err)
	}
	<-pr.Acks()
	// On a machine that stalls for longer than the lease, the turn may have ended already.
	if err := pr.Close(false); err != nil && !errors.Is(err, gateway.ErrTurnOver) {
		w.t.Fatal(err)
	}
	m, err := w.files.PutFile(w.t.Context(), p.principal(), id, agent.File{Name: p.mark() + ".txt"}, strings.NewReader("file-"+p.mark()))
	if err != nil {
		w.t.Fatal(err)
	}
	up, err := w.files.CreateUpload(w.t.Context(), p.principal(), attachments.NewUpload{Name: p.mark() + ".txt", Length: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.files.DropUpload(context.Background(), p.principal(), up.ID) }) // the route may have done it
	path := "stream-" + p.mark() + n
	if _, _, err := w.streams.Create(w.t.Context(), p.principal(), path, streams.Creation{ContentType: "text/plain", Body: []byte("text-" + p.mark())}); err != nil {
		w.t.Fatal(err)
	}
	if last := w.subscriptions[p]; last != "" {
		_ = w.streams.Unsubscribe(w.t.Context(), p.principal(), last) // the route may have done it
	}
	plan := streams.Plan{Type: "pull-wake", Pattern: "none/*", Wake: "wake"}
	if _, _, err := w.streams.Subscribe(w.t.Context(), p.principal(), up.ID, plan, "http://127.0.0.1/v1/stream/"); err != nil {
		w.t.Fatal(err)
	}
	w.subscriptions[p] = up.ID
	return map[string]string{"path": path, "subscription": up.ID, "upload": up.ID, "media": m.URL[strings.LastIndex(m.URL, "/")+1:], "id": id, "conversation": id, "turn": ack.Turn, "response": "resp_" + ack.Turn, "item": "none", "message": "m", "subject": p.subject, "model": "a", "agent": "a", "thread": "none", "run": ack.Turn, "file": "wave.glb", "name": "none"}
}

// by is a way in which a request proves who asks.
type by func(w *walk, r *http.Request, p person)

func withToken(w *walk, r *http.Request, p person) {
	s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": p.subject, "tenant": p.tenant, "scope": gateway.ScopeAgent, "exp": time.Now().Add(time.Hour).Unix(),
	}).SignedString([]byte(usersSecret))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s)
}

func withCookie(w *walk, r *http.Request, p person) {
	r.AddCookie(w.cookies[p])
	r.Header.Set("Origin", w.ts.URL) // as browsers do
}

func actingFor(_ *walk, r *http.Request, p person) {
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set(server.HeaderTenant, p.tenant)
	r.Header.Set(server.HeaderSubject, p.subject)
}

func asNobody(*walk, *http.Request, person) {}

var ways = map[string]by{"token": withToken, "cookie": withCookie, "acting": actingFor}

func (w *walk) request(method, path, body string) *http.Request {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.ts.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

var wildcard = regexp.MustCompile(`\{([a-zA-Z]+)(\.\.\.|\$)?\}`)

// ask makes the route's request as a person. Of a stream that may stay open, it reads only the part that arrives at once; answers to messages,
// which are scoped, end by themselves.
func (w *walk) ask(rt server.Route, values map[string]string, how by, p person) (status int, body string) {
	w.t.Helper()
	name := rt.Method + " " + rt.Pattern
	path := wildcard.ReplaceAllStringFunc(strings.TrimSuffix(rt.Pattern, "{$}"), func(m string) string {
		key := wildcard.FindStringSubmatch(m)[1]
		v, ok := values[key]
		if !ok {
			w.t.Fatalf("%s: the walk does not know what {%s} is: add it to walk.belongings", name, key)
		}
		return v
	})
	d := decided[name]
	if d.body == "" && rt.Method != http.MethodGet && rt.Method != http.MethodHead {
		d.body = "{}"
	}
	r := w.request(rt.Method, path+d.query, d.body)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	for k, v := range d.header {
		r.Header[k] = v
	}
	how(w, r, p)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatalf("%s as %s: %v", name, p.mark(), err)
	}
	defer func() { _ = res.Body.Close() }()
	if rt.Stream && d.sight != scoped && res.StatusCode < 300 {
		first := make([]byte, 64<<10)
		n, err := res.Body.Read(first)
		if err != nil && !errors.Is(err, io.EOF) {
			w.t.Fatalf("%s as %s: %v", name, p.mark(), err)
		}
		return res.StatusCode, string(first[:n])
	}
	all, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatalf("%s as %s: %v", name, p.mark(), err)
	}
	return res.StatusCode, string(all)
}

// silent makes the request and fails the test if the answer contains data of another person.
func (w *walk) silent(rt server.Route, values map[string]string, how by, p person, turns map[string]person) (status int, body string) {
	w.t.Helper()
	status, body = w.ask(rt, values, how, p)
	for _, other := range persons {
		if other != p && strings.Contains(body, other.mark()) {
			w.t.Errorf("the answer to %s contains data of %s: %.300s", p.mark(), other.mark(), body)
		}
	}
	for turn, owner := range turns {
		if owner != p && strings.Contains(body, turn) {
			w.t.Errorf("the answer to %s contains a turn of %s: %.300s", p.mark(), owner.mark(), body)
		}
	}
	return status, body
}

// TestWalk calls every registered route without credentials and as four subjects of two tenants, each of whom owns things: with
// their token, with a cookie, and through a backend that acts for them.
func TestWalk(t *testing.T) {
	w := newWalk(t)
	seen := map[string]bool{}
	for i, rt := range w.srv.Routes() {
		name := rt.Method + " " + rt.Pattern
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			if rt.Method == http.MethodGet && strings.HasPrefix(rt.Pattern, "/ui/") {
				// All users get the same files of the page, so one call is enough.
				if status, _ := w.silent(rt, nil, asNobody, person{}, nil); rt.Access != server.Public || status != http.StatusOK {
					t.Errorf("a file of the page: its access is %q, and without credentials it gets %d", rt.Access, status)
				}
				return
			}
			d, ok := decided[name]
			if !ok {
				t.Fatalf("no decision about what this route may show to whom: add %q to decided in server/access_routes_test.go as own, scoped, personal, common, operator or open, with the query, body and header that a request needs to pass validation", name)
			}
			w.logIn() // the route may end the session
			things, turns := map[person]map[string]string{}, map[string]person{}
			for _, p := range persons {
				things[p] = w.belongings(p, fmt.Sprint("-", i))
				turns[things[p]["turn"]] = p
			}
			public := rt.Access == server.Public || rt.Access == server.InBand
			if public != (d.sight == open) || (rt.Access == server.Admin) != (d.sight == operator) {
				t.Errorf("its access is %q, which is not what was decided", rt.Access)
			}
			if status, _ := w.silent(rt, things[persons[0]], asNobody, person{}, turns); !public && status != http.StatusUnauthorized {
				t.Errorf("without credentials: %d, not 401", status)
			}
			for _, p := range persons {
				for way, how := range ways {
					for _, other := range persons {
						if other == p && (d.sight == own || d.sight == personal) {
							continue // comes last: it may delete the thing
						}
						status, body := w.silent(rt, things[other], how, p, turns)
						switch d.sight {
						case own:
							if status != http.StatusNotFound {
								t.Errorf("%s, by %s, gets %d for what is %s's, not 404", p.mark(), way, status, other.mark())
							}
						case personal:
							if same := p.subject == other.subject; !same && status != http.StatusForbidden && status != http.StatusNotFound {
								t.Errorf("%s, by %s, gets %d for %s", p.mark(), way, status, other.mark())
							}
						case operator:
							if status != http.StatusForbidden {
								t.Errorf("%s, by %s, gets %d, not 403", p.mark(), way, status)
							}
						case scoped:
							if status != http.StatusOK || !strings.Contains(body, p.mark()) {
								t.Errorf("%s, by %s, does not see what is theirs: %d %.300s", p.mark(), way, status, body)
							}
						}
					}
				}
			}
			if d.sight != own && d.sight != personal {
				return
			}
			for i, p := range persons {
				// The owner must reach the thing itself, or the refusals prove nothing.
				way := []string{"token", "cookie", "acting"}[i%3]
				status, body := w.silent(rt, things[p], ways[way], p, turns)
				if status >= 300 && status != http.StatusConflict && (!d.empty || status != http.StatusNotFound) {
					t.Errorf("%s, whose it is, gets %d by %s: %.300s", p.mark(), status, way, body)
				}
			}
		})
	}
	for name := range decided {
		if !seen[name] {
			t.Errorf("%s was decided on, but no surface of the walk has it: take it out of decided, or register its surface in newWalk", name)
		}
	}
}

// TestWalkShared calls what names a conversation as one with whom it is shared for reading, and once that is taken back.
func TestWalkShared(t *testing.T) {
	w := newWalk(t)
	owner, guest, stranger := persons[0], persons[1], persons[3]
	for i, rt := range w.srv.Routes() {
		name := rt.Method + " " + rt.Pattern
		d := decided[name]
		if d.sight != own || d.alone {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			things := w.belongings(owner, fmt.Sprint("-", i))
			share := func(c gateway.Command) {
				if _, err := w.gw.Do(t.Context(), owner.principal(), things["id"], c); err != nil {
					t.Fatal(err)
				}
			}
			share(gateway.Command{Type: gateway.CommandShare, Subject: guest.subject, Access: gateway.AccessRead})
			share(gateway.Command{Type: gateway.CommandShare, Subject: stranger.subject, Access: gateway.AccessWrite}) // the one of that name in the owner's tenant is meant
			status, body := w.ask(rt, things, withToken, guest)
			reads := d.reads || rt.Method == http.MethodGet && !d.writes
			switch {
			case reads && status >= 300 && !(d.empty && status == http.StatusNotFound):
				t.Errorf("a reader gets %d: %.300s", status, body)
			case !reads && status != http.StatusForbidden && !(d.empty && status == http.StatusNotFound):
				t.Errorf("a reader gets %d, not 403: %.300s", status, body)
			}
			if status, _ := w.ask(rt, things, withToken, stranger); status != http.StatusNotFound {
				t.Errorf("one of the same name in another tenant gets %d, not 404", status)
			}
			share(gateway.Command{Type: gateway.CommandUnshare, Subject: guest.subject})
			if status, _ := w.ask(rt, things, withToken, guest); status != http.StatusNotFound {
				t.Errorf("once it is taken back, the guest gets %d, not 404", status)
			}
		})
	}
}

// TestWalkSocket requests the data of other persons over sockets.
func TestWalkSocket(t *testing.T) {
	w := newWalk(t)
	w.logIn()
	things := map[person]map[string]string{}
	for _, p := range persons {
		things[p] = w.belongings(p, "-socket")
	}
	for _, p := range persons {
		for way, how := range ways {
			r := w.request(http.MethodGet, "/api/ws", "")
			how(w, r, p)
			c, _, err := websocket.Dial(t.Context(), w.ts.URL+"/api/ws", &websocket.DialOptions{HTTPHeader: r.Header})
			if err != nil {
				t.Fatalf("%s by %s: %v", p.mark(), way, err)
			}
			// An answer to each: errors and refusals for what is foreign, and in the end the pong.
			var frames []string
			for _, other := range persons {
				if id := things[other]["id"]; other != p {
					frames = append(frames, fmt.Sprintf(`{"type":"subscribe","conversation":%q}`, id), fmt.Sprintf(`{"type":"unsubscribe","conversation":%q}`, id))
					for _, cmd := range []string{
						`{"type":"send","message":{"text":"x"}}`, `{"type":"inject","message":{"text":"x"}}`, `{"type":"stop","turn":"` + things[other]["turn"] + `"}`,
						`{"type":"truncate"}`, `{"type":"restore","seq":1}`, `{"type":"update","title":"x"}`, `{"type":"delete"}`, `{"type":"share","subject":"` + p.subject + `","access":"write"}`,
						`{"type":"unshare","subject":"x"}`, `{"type":"answer","turn":"x","request":"x"}`,
					} {
						frames = append(frames, fmt.Sprintf(`{"type":"command","id":"1","conversation":%q,"command":%s}`, id, cmd))
					}
				}
			}
			for _, f := range frames {
				if err := c.Write(t.Context(), websocket.MessageText, []byte(f)); err != nil {
					t.Fatal(err)
				}
			}
			for refused := 0; refused < 3*10; {
				_, b, err := c.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if bytes.Contains(b, []byte("not_found")) {
					refused++
				} else if !bytes.Contains(b, []byte(`"hello"`)) {
					t.Fatalf("%s by %s is answered %s", p.mark(), way, b)
				}
				for _, other := range persons {
					for _, what := range []string{"title-", "text-"} { // the id is what was asked for
						if other != p && bytes.Contains(b, []byte(what+other.mark())) {
							t.Errorf("%s by %s got data of %s: %s", p.mark(), way, other.mark(), b)
						}
					}
				}
			}
			_ = c.CloseNow()
		}
	}
	for _, p := range persons {
		if s, err := w.gw.Conversation(t.Context(), p.principal(), gateway.ActionRead, things[p]["id"]); err != nil || s.Title != "title-"+p.mark() || len(s.Grants) > 0 {
			t.Errorf("what is %s's was changed: %+v, %v", p.mark(), s, err)
		}
	}
}
