package feishu

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// token gives an access token.
func (c *call) token() (any, *failure) {
	switch {
	case c.text("app_id") != c.s.opt.AppID:
		return nil, &failure{status: http.StatusOK, code: 10003, message: "invalid param"}
	case c.text("app_secret") != c.s.opt.AppSecret:
		return nil, &failure{status: http.StatusOK, code: 10014, message: "app secret invalid"}
	}
	token := c.s.id("t-")
	c.s.tokens[token] = time.Now().Add(c.s.opt.TokenLife)
	return flat{"tenant_access_token": token, "expire": int(c.s.opt.TokenLife / time.Second)}, nil
}

// authorize checks the access token.
func (c *call) authorize() *failure {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	token, _ := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	if end, ok := c.s.tokens[token]; !ok || time.Now().After(end) {
		return refuse(codeToken, "Invalid access token for authorization. Please make a test attempt with a valid token.")
	}
	return nil
}

// RevokeTokens makes all access tokens invalid.
func (s *Server) RevokeTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// bot answers with the bot itself.
func (c *call) bot() (any, *failure) {
	return flat{"bot": map[string]any{"activate_status": 2, "app_name": "Leat", "open_id": BotID}}, nil
}

// members answers with the people of a chat, one on each page, so that bots have to read all pages.
func (c *call) members() (any, *failure) {
	o := c.s.chats[c.path[4]]
	if o == nil || o.isClosed {
		return nil, refuse(232011, "Operator can NOT be out of the chat.")
	}
	page, _ := strconv.Atoi(c.r.URL.Query().Get("page_token")) // 0 for the first
	if page < 0 || page >= len(o.people) {
		return nil, refuse(codeParameter, "page_token is invalid")
	}
	id := o.people[page]
	item := map[string]any{"member_id": id, "member_id_type": "open_id", "name": strings.TrimPrefix(id, "ou_"), "tenant_key": "tenant"}
	return map[string]any{"items": []any{item}, "has_more": page+1 < len(o.people), "page_token": strconv.Itoa(page + 1)}, nil
}

// begin finds out which chat a request concerns, records it, checks the rules about its time, and returns the fault that it meets,
// if any.
func (s *Server) begin(c *call) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c.route {
	case RouteSend:
		if c.chat = c.text("receive_id"); len(c.path) > 4 {
			if m := s.messages[c.path[4]]; m != nil {
				c.chat = m.Chat
			}
		}
	case RouteUpdate, RouteDelete:
		if m := s.messages[c.path[4]]; m != nil {
			c.chat, c.target = m.Chat, m.ID
		}
	case RouteContent, RouteSettings:
		if card := s.cards[c.path[4]]; card != nil && card.message != nil {
			c.chat, c.target = card.message.Chat, card.message.ID
		}
	}
	// A request that began at the same time as the penalty could not know about it.
	if c.at.After(s.penaltyBegin) && c.at.Before(s.penalty) {
		s.violations = append(s.violations, fmt.Sprintf("%s %v before the end of a penalty", c.route, s.penalty.Sub(c.at)))
	}
	if o := s.chats[c.chat]; o != nil {
		if c.target != "" && o.inFlight[c.target] {
			s.violations = append(s.violations, "two requests for one message at a time")
		}
		o.inFlight[c.target] = true
	}
	return s.take(c)
}

// end records how a request ended.
func (s *Server) end(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.chats[c.chat]; o != nil {
		delete(o.inFlight, c.target)
	}
	s.requests = append(s.requests, Request{At: c.at, Route: c.route, Chat: c.chat, Body: c.body, Status: c.status})
}

// admit counts an event against a number of events a second, and reports whether it is within.
func admit(times *[]time.Time, rate int) bool {
	at := time.Now()
	*times = slices.DeleteFunc(*times, func(t time.Time) bool { return at.Sub(t) >= time.Second })
	if len(*times) >= rate {
		return false
	}
	*times = append(*times, at)
	return true
}
