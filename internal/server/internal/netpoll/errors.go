package netpoll

import "errors"

// ErrEmpty reports that no bytes have arrived.
var ErrEmpty = errors.New("netpoll: no bytes have arrived")
