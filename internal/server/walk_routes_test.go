package server_test

import "net/http"

// sight says what a route may show to whom.
type sight int

const (
	// own names a thing by its path. Its owner gets it, and so does, as far as it goes, whoever it is shared with; for
	// anybody else it does not exist: 404.
	own sight = iota + 1
	// scoped shows everybody what is theirs, and shows it: something of their own has to be in the answer.
	scoped
	// personal names a subject of the caller's tenant by its path. Others than that subject are refused.
	personal
	// common is the same for all who have a token, and of nobody.
	common
	// operator is the admin's: nobody gets 401, a user 403.
	operator
	// open needs no token, and shows nothing of anybody.
	open
)

// decision is what was decided about a route, and what its request needs to get as far as the decision.
type decision struct {
	sight  sight
	query  string
	body   string // "{}" where it is empty and the method has a body
	header http.Header
	// empty says that the owner is answered 404 here too, because in this walk there is nothing of the kind.
	empty bool
	// reads says that one with whom a conversation is shared for reading may call it. Of GET it need not be said, unless
	// it is not so: writes.
	reads, writes bool
	// alone says that it is no part of a conversation, so that sharing one says nothing of it.
	alone bool
}

// decided are all routes. Whoever adds a route decides here who may see what by it; the walk then tries it as everybody.
// A name in a path is found in walk.belongings.
var decided = map[string]decision{
	// The session: swap a token, or learn that one is needed.
	"GET /api/auth/session":    {sight: open},
	"POST /api/auth/session":   {sight: open},
	"DELETE /api/auth/session": {sight: open},

	// Native.
	"GET /api/conversations/{id}/events":      {sight: own},
	"GET /api/conversations/{id}/transcript":  {sight: own},
	"POST /api/conversations/{id}/commands":   {sight: own, body: `{"type":"inject","message":{"text":"x"}}`},
	"POST /api/conversations/{id}/turns":      {sight: own, query: "?dialect=eliza-actions", body: `{"type":"done"}` + "\n"},
	"POST /api/conversations/{id}/mismatches": {sight: own, body: `{"message":"m","part":"p","seq":1,"have":{"length":1,"crc":1},"want":{"length":2,"crc":2}}`, reads: true},
	"GET /api/turns/{turn}":                   {sight: own},
	"GET /api/turns/{turn}/trace":             {sight: own},
	"GET /api/turns/{turn}/log":               {sight: own},
	"GET /api/turns/{turn}/recording":         {sight: own, writes: true},
	"GET /api/turns/{turn}/explain":           {sight: own, writes: true},
	"HEAD /api/turns/{turn}/ingest":           {sight: own},
	"PATCH /api/turns/{turn}/ingest":          {sight: own, header: http.Header{"Upload-Offset": {"0"}}},
	"GET /api/agents":                         {sight: common},
	"POST /api/agents/check":                  {sight: operator},
	"GET /api/agents/{name}/sessions":         {sight: operator},
	"POST /api/agents/{name}/sessions":        {sight: operator},
	"POST /api/agents/{name}/discover":        {sight: operator, empty: true}, // TestDiscover of server/native tells what is offered
	"GET /api/dialects":                       {sight: common},
	"GET /api/selftest/stream":                {sight: common},
	"GET /api/ws":                             {sight: open}, // takes the token as its first message; TestWalkSocket goes on from there

	// Eliza.
	"GET /api/conversations":                         {sight: scoped},
	"POST /api/conversations":                        {sight: common},
	"GET /api/conversations/{id}":                    {sight: own},
	"PATCH /api/conversations/{id}":                  {sight: own, body: `{"title":"x"}`},
	"DELETE /api/conversations/{id}":                 {sight: own},
	"GET /api/conversations/{id}/messages":           {sight: own},
	"POST /api/conversations/{id}/messages":          {sight: own, body: `{"text":"x"}`},
	"POST /api/conversations/{id}/messages/stream":   {sight: own, body: `{"text":"x"}`},
	"GET /api/conversations/{id}/messages/stream":    {sight: own, empty: true}, // no Eliza turn streams here
	"POST /api/conversations/{id}/messages/truncate": {sight: own, body: `{"messageId":"m"}`, empty: true},
	"POST /api/conversations/{id}/read":              {sight: own, reads: true},
	"POST /api/conversations/{id}/import":            {sight: own, body: `{"messages":[{"role":"user","text":"x"}]}`},
	"POST /api/conversations/{id}/greeting":          {sight: own, reads: true},
	"POST /api/conversations/cleanup-empty":          {sight: common, body: `{"keepId":"none"}`}, // TestCleanup of server/eliza tells whose go
	"GET /api/auth/status":                           {sight: open},
	"POST /api/turns/{id}/abort":                     {sight: own},

	// The model APIs. What somebody says there is answered in a conversation of their own.
	"POST /v1/messages":         {sight: scoped, body: `{"model":"a","max_tokens":9,"metadata":{"user_id":"one key for all"},"messages":[{"role":"user","content":"x"}]}`},
	"POST /v1/chat/completions": {sight: scoped, body: `{"model":"a","user":"one key for all","messages":[{"role":"user","content":"x"}]}`},
	"GET /v1/models":            {sight: common},
	"GET /v1/models/{model...}": {sight: common},

	// Files.
	"GET /api/conversations/{id}/files/{media}": {sight: own},
	"POST /api/conversations/{id}/files":        {sight: own, query: "?name=x.txt", body: "x"},
	"GET /api/files/upload":                     {sight: common},
	"POST /api/files/upload":                    {sight: common, query: "?name=x.txt", body: "x"}, // TestUploadsAreTheirs of server/files tells into whose conversation
	"GET /api/files/upload/{upload}":            {sight: own, alone: true},
	"HEAD /api/files/upload/{upload}":           {sight: own, alone: true},
	"PATCH /api/files/upload/{upload}":          {sight: own, alone: true, body: "x", header: http.Header{"Content-Type": {"application/offset+octet-stream"}, "Upload-Offset": {"0"}}},
	"DELETE /api/files/upload/{upload}":         {sight: own, alone: true},
	"GET /api/files/download":                   {sight: common, query: "?path=none", empty: true}, // TestUploadsAreTheirs tells whose are found

	// Eliza, live.
	"GET /ws":                 {sight: open}, // takes the token as its first message
	"GET /api/status":         {sight: common},
	"GET /api/agent/events":   {sight: common}, // TestSight of server/elizaws tells whose are shown, and whose conversations may be told of
	"POST /api/agent/event":   {sight: common, body: `{"stream":"system"}`},
	"POST /api/signals":       {sight: common, body: `{"type":"training_event","payload":1}`},
	"POST /api/agent/start":   {sight: operator},
	"POST /api/agent/stop":    {sight: operator},
	"POST /api/agent/pause":   {sight: operator},
	"POST /api/agent/resume":  {sight: operator},
	"POST /api/agent/restart": {sight: operator},

	// Avatars.
	"GET /api/emotes":    {sight: common},
	"POST /api/emote":    {sight: common, body: `{"emoteId":"none"}`},
	"GET /emotes/{file}": {sight: open},

	// Plugins.
	"GET /api/plugins":           {sight: operator},
	"POST /api/plugins/install":  {sight: operator},
	"DELETE /api/plugins/{name}": {sight: operator},

	// A shell.
	"POST /api/terminal/run": {sight: operator},

	// Operations.
	"GET /healthz":      {sight: open},
	"GET /readyz":       {sight: open},
	"GET /metrics":      {sight: open}, // asks for the token itself, unless on this machine
	"POST /api/backup":  {sight: operator},
	"GET /api/overview": {sight: operator},

	"POST /api/config/reload": {sight: operator},

	// Keeping and deleting.
	"GET /api/audit":                     {sight: operator},
	"GET /api/holds":                     {sight: operator},
	"POST /api/holds":                    {sight: operator},
	"DELETE /api/holds":                  {sight: operator},
	"GET /api/retention":                 {sight: operator},
	"POST /api/retention":                {sight: operator},
	"DELETE /api/subjects/{subject}":     {sight: operator},
	"GET /api/subjects/{subject}/export": {sight: personal},
	"POST /api/import":                   {sight: operator},

	// What turns used; alice@t1 and alice@t2 must not be mixed up, so tenants are in the answer.
	"GET /api/usage": {sight: scoped, query: "?by=day,agent,model,tenant,subject"},

	// The page.
	"GET /{$}": {sight: open},
}
