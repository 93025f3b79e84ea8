package auth

// The tests compare errors and times with these.
var (
	ErrToken  = errToken
	ErrConfig = errConfig
)

const Leeway = leeway
