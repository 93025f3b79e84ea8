package discord

import "net/http"

// Routes for [Fault.Route] and [Request.Route].
const (
	CreateMessage = "POST /channels/{channel}/messages"
	EditMessage   = "PATCH /channels/{channel}/messages/{message}"
	DeleteMessage = "DELETE /channels/{channel}/messages/{message}"
	GetMessage    = "GET /channels/{channel}/messages/{message}"
	GetMessages   = "GET /channels/{channel}/messages"
	Typing        = "POST /channels/{channel}/typing"
	GetCommands   = "GET /applications/{application}/commands"
	PutCommands   = "PUT /applications/{application}/commands"
	Callback      = "POST /interactions/{interaction}/{token}/callback"
	EditOriginal  = "PATCH /webhooks/{application}/{token}/messages/@original"
	GatewayBot    = "GET /gateway/bot"
)

// routes returns the routes of the HTTP API.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for route, run := range map[string]func(*call) (any, *refusal){
		"GET /users/@me":                   func(c *call) (any, *refusal) { return s.user(), nil },
		"GET /oauth2/applications/@me":     func(c *call) (any, *refusal) { return s.application(), nil },
		"GET /applications/@me":            func(c *call) (any, *refusal) { return s.application(), nil },
		"GET /gateway":                     func(c *call) (any, *refusal) { return map[string]any{"url": s.gatewayURL()}, nil },
		GatewayBot:                         (*call).gatewayBot,
		"GET /channels/{channel}":          func(c *call) (any, *refusal) { return c.channel.object(), nil },
		CreateMessage:                      (*call).createMessage,
		EditMessage:                        (*call).editMessage,
		DeleteMessage:                      (*call).deleteMessage,
		GetMessage:                         (*call).getMessage,
		GetMessages:                        (*call).getMessages,
		Typing:                             (*call).startTyping,
		"POST /channels/{channel}/threads": (*call).createThread,
		"POST /channels/{channel}/messages/{message}/threads": (*call).createThread,
		GetCommands:                            (*call).getCommands,
		PutCommands:                            (*call).putCommands,
		Callback:                               (*call).callback,
		"POST /webhooks/{application}/{token}": (*call).followUp,
		EditOriginal:                           (*call).editOriginal,
		"GET /webhooks/{application}/{token}/messages/@original":    (*call).getOriginal,
		"DELETE /webhooks/{application}/{token}/messages/@original": (*call).deleteOriginal,
	} {
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, route, run) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		write(w, nil, refuse(http.StatusNotFound, 0, "404: Not Found"))
	})
	return mux
}

// user returns the bot as a user.
func (s *Server) user() map[string]any {
	return map[string]any{"id": botID, "username": s.opt.Username, "discriminator": "0000", "bot": true}
}

// application returns the application of the bot.
func (s *Server) application() map[string]any {
	return map[string]any{"id": applicationID, "name": s.opt.Username, "flags": 0, "bot": s.user()}
}

// object returns a channel as the API does.
func (o *room) object() map[string]any {
	object := map[string]any{"id": o.id, "type": o.kind, "name": o.name}
	if o.guild != "" {
		object["guild_id"] = o.guild
	}
	if o.parent != "" {
		object["parent_id"], object["thread_metadata"] = o.parent, map[string]any{"archived": false, "locked": false}
	}
	return object
}

// createThread begins a thread, at a message if the path has one. Then the thread has the id of the message.
func (c *call) createThread() (any, *refusal) {
	name := c.text("name")
	if n := len([]rune(name)); n < 1 || n > 100 {
		return nil, invalid("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	}
	if c.channel.kind != kindText {
		return nil, refuse(http.StatusBadRequest, 50024, "Cannot execute action on this channel type")
	}
	id := c.value("message")
	if id != "" && c.channel.message(id) == nil {
		return nil, refuse(http.StatusNotFound, 10008, "Unknown Message")
	}
	if id == "" {
		id = c.s.nextID()
	} else if c.s.channels[id] != nil {
		return nil, refuse(http.StatusBadRequest, 160004, "A thread has already been created for this message")
	}
	o := &room{id: id, guild: c.channel.guild, parent: c.channel.id, kind: kindThread, name: name}
	c.s.channels[id] = o
	return o.object(), nil
}

// startTyping shows that the bot is typing, for 10 seconds.
func (c *call) startTyping() (any, *refusal) {
	c.channel.typing = c.at
	return errNone, nil
}
