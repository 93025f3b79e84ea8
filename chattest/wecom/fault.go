package wecom

// Fault is something that goes wrong with one frame: the first that matches.
type Fault struct {
	Command string // empty matches all but subscriptions and pings
	Skip    int    // how many matching frames pass before
	// Before closes the connection before the frame takes effect, and After when it has. Silent sends no acknowledgement of a frame
	// that has taken effect.
	Before, After, Silent bool
	// Code refuses the frame with this code.
	Code int
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
	for i, f := range s.faults {
		if f.Command != command && (f.Command != "" || isQuiet) {
			continue
		}
		if f.Skip == 0 {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			return f
		}
		f.Skip--
	}
	if s.opt.Chaos != nil && !isQuiet {
		return s.opt.Chaos(command)
	}
	return nil
}
