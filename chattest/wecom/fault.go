package wecom

import (
	"encoding/json"
	"time"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// Fault is something that goes wrong with one frame: the first that matches.
type Fault struct {
	Command string // empty matches all but subscriptions and pings
	Skip    int    // how many matching frames pass before
	// Before closes the connection before the frame takes effect, and After when it has. Silent sends no acknowledgement of a frame
	// that has taken effect.
	Before, After, Silent bool
	// Code refuses the frame with this code.
	Code int
	// Limit refuses all messages and updates in the chat of the frame for this time, with the code 846607. The platform doesn't say how
	// long, so a bot has to try again, but one that tries within 5 s of a refusal violates the rules.
	Limit time.Duration
}

// codeChatRate is the refusal of too many messages in a chat.
const codeChatRate = 846607

// retryGap is the least time after a refusal because of too many messages.
const retryGap = 5 * time.Second

// limit is a time in which a chat takes nothing.
type limit struct {
	end     time.Time
	earlier time.Time // a frame before it violates the rules
}

// Fail adds a fault.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// take returns the fault that a frame meets, or nil. mu must be locked.
func (s *Server) take(command string) *Fault {
	isQuiet := command == "ping" || command == "aibot_subscribe"
	match := func(f *Fault) (skip *int, ok bool) {
		return &f.Skip, f.Command == command || f.Command == "" && !isQuiet
	}
	if f := memory.TakeFault(&s.faults, match); f != nil {
		return f
	}
	if s.opt.Chaos != nil && !isQuiet {
		return s.opt.Chaos(command)
	}
	return nil
}

// chatOf returns the chat that a frame concerns, or "". mu must be locked.
func (s *Server) chatOf(f *frame) string {
	if c := s.callbacks[f.Headers.ID]; c != nil {
		return c.chat
	}
	var v struct {
		Chat string `json:"chatid"`
	}
	if json.Unmarshal(f.Body, &v) != nil {
		return ""
	}
	return v.Chat
}

// checkLimit refuses a frame in a chat that takes nothing, or returns nil. mu must be locked.
func (s *Server) checkLimit(f *frame, fault *Fault) *refusal {
	chat, at := s.chatOf(f), time.Now()
	l := s.limits[chat]
	if fault.Limit > 0 {
		l.end = at.Add(fault.Limit)
	}
	if at.Before(l.earlier) {
		s.violations = append(s.violations, f.Command+" too soon after a refusal because of too many messages")
	}
	if !at.Before(l.end) || chat == "" {
		return nil
	}
	s.limits[chat] = l
	return refuse(codeChatRate, "the chat's rate limit is exceeded")
}

// noteLimit records that the bot knows of a refusal by checkLimit.
func (s *Server) noteLimit(f *frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chat := s.chatOf(f)
	l := s.limits[chat]
	l.earlier = time.Now().Add(retryGap)
	s.limits[chat] = l
}
