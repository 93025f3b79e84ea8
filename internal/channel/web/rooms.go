package web

import (
	"sync"
	"time"
)

const (
	// roomLife is how long a room without connections keeps its frames. A visitor who comes back later gets a history.
	roomLife = 10 * time.Minute
	// maxRooms is how many rooms may exist without connections. When there are more, the oldest are dropped early. So
	// the frames of unused rooms have about 100 MB at most: maxRooms times maxRoom.
	maxRooms = 200
)

// rooms has the rooms of all chats that are in use, or were a short time ago. mu also protects the fields of a room
// that count its users. It is never held together with the lock of a room.
type rooms struct {
	mu     sync.Mutex
	byChat map[string]*room
	swept  time.Time
}

// enter returns the room of a chat, which it creates if necessary. The room exists until leave was called as often as enter.
func (s *rooms) enter(chat string) *room {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byChat[chat]
	if r == nil {
		s.sweep()
		r = newRoom(chat)
		s.byChat[chat] = r
	}
	r.users++
	return r
}

// leave ends what enter began. A room without connections and frames is dropped later. It must be called exactly once
// for each enter.
func (s *rooms) leave(r *room) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.users--
	r.leftAt = time.Now()
}

// sweep drops unused rooms: those beyond roomLife, and the oldest of the others if there are maxRooms. Because it looks at
// every room, it does so once a minute, or when there are too many. It is called with the lock.
func (s *rooms) sweep() {
	at := time.Now()
	unused := 0
	var oldest *room
	if at.Sub(s.swept) < time.Minute && len(s.byChat) < maxRooms {
		return
	}
	s.swept = at
	for chat, r := range s.byChat {
		switch {
		case r.users > 0:
		case at.Sub(r.leftAt) >= roomLife:
			delete(s.byChat, chat)
		default:
			unused++
			if oldest == nil || r.leftAt.Before(oldest.leftAt) {
				oldest = r
			}
		}
	}
	if unused >= maxRooms { // one is dropped for each that is created
		delete(s.byChat, oldest.chat)
	}
}
