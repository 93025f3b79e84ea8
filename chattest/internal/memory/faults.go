package memory

import "context"

// TakeFault removes the first fault of a list that matches a request, and returns it, or nil if no fault matches. match reports whether a fault matches
// the request, and returns its count of matching requests that still pass.
func TakeFault[F any](list *[]*F, match func(*F) (skip *int, ok bool)) *F {
	for i, f := range *list {
		skip, ok := match(f)
		if !ok {
			continue
		}
		if *skip == 0 {
			*list = append((*list)[:i:i], (*list)[i+1:]...)
			return f
		}
		*skip--
	}
	return nil
}

// WaitForRelease delays a request until release is closed, unless that is nil. It returns false if the client has gone meanwhile.
func WaitForRelease(ctx context.Context, release <-chan struct{}) bool {
	if release == nil {
		return true
	}
	select {
	case <-release:
		return true
	case <-ctx.Done():
		return false
	}
}
