package main

import (
	"errors"
	"sync"
	"sync/atomic"
)

// each calls fn with 0 to n-1 from 16 goroutines. A goroutine stops at its first error. each returns these errors.
func each(n int, fn func(i int) error) error {
	// The numbers are handed out by a counter, so that one slow call doesn't hold up the others of its goroutine.
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for w := range errs {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil; i = int(next.Add(1)) - 1 {
				errs[w] = fn(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
