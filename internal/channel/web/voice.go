package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/wire"
)

// hearers are what a channel needs of the conversations of its chats to be used by voice. The pipeline implements it.
type hearers interface {
	// MarkChatHeard stores how far the visitor has heard an answer.
	MarkChatHeard(ctx context.Context, channel, chat string, h gateway.HeardMark) error
	// IsChatWatched reports whether other people follow the conversation.
	IsChatWatched(channel, chat string) bool
}

// SpeakWith makes visitors able to use their chats by voice. It is called before Run.
func (c *Channel) SpeakWith(service *wire.Service, source hearers) {
	c.voice, c.hearers = service, source
}

// serveVoice answers GET /voice: the chat of a session by voice. The parameter session is the same as on /ws, and the
// limits are too. A connection by voice counts against the same limits as a socket, and its messages against the same
// rate. A newer connection of the same chat replaces it.
func (c *Channel) serveVoice(w http.ResponseWriter, r *http.Request) {
	run, leave := c.join()
	if run == nil {
		refuseStopped(w)
		return
	}
	defer leave()
	if c.voice == nil {
		refuse(w, http.StatusNotFound, "this chat has no voice")
		return
	}
	request, err := wire.ParseRequest(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	address := addressOf(r)
	if wait, ok := c.limits.connect(address); !ok {
		refuseRate(w, wait)
		return
	}
	defer c.limits.disconnect(address)
	token := r.URL.Query().Get("session")
	chat := chatOf(token)
	if chat == "" {
		token = newToken()
		chat = chatOf(token)
	}
	room := c.rooms.enter(chat)
	defer c.rooms.leave(room)
	if !c.rooms.join(room) {
		refuseRate(w, 0)
		return
	}
	defer c.rooms.quit(room)
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // ServeHTTP has checked the origin
	if err != nil {
		return // Accept has answered
	}
	request.Session, request.Listener = token, c.Name()+"\x00"+chat
	request.Voice = "" // voices have different prices, so the operator chooses
	request.Farewell = func(error) (websocket.StatusCode, string) {
		if run.ctx.Err() != nil || r.Context().Err() != nil {
			return websocket.StatusGoingAway, "the gateway is shutting down"
		}
		return 0, ""
	}
	ctx, cancel := context.WithCancel(run.ctx)
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)() // a server can end the request when it shuts down
	local := isLocal(r)
	s := &socket{c: c, run: run, room: room, isLocal: local, isAdmitted: c.options.Public || local}
	if err := c.voice.Serve(ctx, conn, request, spokenChat{s}); err != nil {
		c.log.Error("voice connection failed", "error", err)
	}
}

// spokenChat is a chat that is used by voice. Its socket has no connection, which the wire owns. The methods of
// socket that write to the connection must not be called.
type spokenChat struct{ *socket }

var _ wire.Conversation = spokenChat{}

// Send implements [wire.Conversation]. A voice message with a key that was used before is handled once, by the inbox.
func (s spokenChat) Send(ctx context.Context, key, text string) (wire.Delivery, error) {
	if wait, ok := s.c.rooms.mayWrite(s.room); !ok {
		return wire.Delivery{}, &wire.Refusal{Message: "Too many messages.", Action: "Wait " + wait.Round(time.Second).String() + "."}
	}
	m := s.message(key)
	m.Content = strings.TrimSpace(text)
	m.Hints.Command, m.Hints.Args = s.command(m.Content)
	m.Hints.ForceSync = m.Hints.Command != ""
	return wire.Delivery{}, s.store(ctx, &m, key)
}

// Stop implements [wire.Conversation]. The visitor's command stops the running turn of the chat, which is the one that was spoken.
func (s spokenChat) Stop(ctx context.Context, turn string) error {
	m := s.message("stop-" + turn)
	m.Content = "/stop"
	m.Hints.Command, m.Hints.ForceSync = "stop", true
	return s.store(ctx, &m, "stop-"+turn)
}

// message returns a message of the visitor without content.
func (s spokenChat) message(key string) channel.InboundMessage {
	m := channel.InboundMessage{
		ID: s.room.chat + "/" + key, Channel: s.c.Name(), ChatID: s.room.chat, SenderID: s.room.chat, SenderName: "Visitor", Timestamp: timeOf(key, time.Now()),
	}
	if s.isAdmitted {
		m.SenderID = Visitor
	}
	return m
}

// MarkHeard implements [wire.Conversation]. Notices belong to no turn, so how far they were heard isn't stored.
func (s spokenChat) MarkHeard(ctx context.Context, h voice.HeardMark) error {
	if strings.HasPrefix(h.Turn, noticePrefix) {
		return nil
	}
	return s.c.hearers.MarkChatHeard(ctx, s.c.Name(), s.room.chat, gateway.HeardMark{Turn: h.Turn, Offset: h.Offset, IsWhole: h.IsWhole})
}

// HasOtherViewers implements [wire.Conversation].
func (s spokenChat) HasOtherViewers() bool { return s.c.hearers.IsChatWatched(s.c.Name(), s.room.chat) }
