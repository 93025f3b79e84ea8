package netpoll

import "errors"

// ErrBlocked reports that no bytes have arrived, or that the system takes none for now.
var ErrBlocked = errors.New("netpoll: the call would have to wait")
