package server_test

import "net/http"

// sight is the rule for which data a route may show to which callers.
type sight int

const (
	// own: the path names a thing. Its owner and, as far as the share permits, the users it is shared with can see it. For
	// all other callers it does not exist: 404.
	own sight = iota + 1
	// scoped: callers see only their own data, and the answer must contain some of it.
	scoped
	// personal: the path names a subject of the caller's tenant. All other subjects are refused.
	personal
	// common: the answer is the same for all callers with a token and has no user's data.
	common
	// operator: only the admin. Users get 403, callers without credentials 401.
	operator
	// open: no token is needed, and the answer has no user's data.
	open
)

// decision is the rule for a route, and what a request to it needs to pass validation.
type decision struct {
	sight  sight
	query  string
	body   string // if empty, "{}" for methods with a body
	header http.Header
	// empty: even the owner gets 404, because the walk creates no such thing.
	empty bool
	// reads: a user with a read share may call it. This is the default for GET; writes means that GET too needs a write
	// share.
	reads, writes bool
	// alone: the thing isn't part of a conversation, so shares don't apply.
	alone bool
}

// decided has the rule of every route; TestWalk fails for a route without one, and tries each route as every caller.
// Names in a path are replaced by the caller's things of walk.belongings.
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
	"POST /api/agents/{name}/discover":        {sight: operator, empty: true}, // TestDiscover of server/native checks the answer
	"GET /api/dialects":                       {sight: common},
	"GET /api/selftest/stream":                {sight: common},
	"GET /api/ws":                             {sight: open}, // takes the token as its first message; see TestWalkSocket

	// Voice. Without the headers of a handshake, callers who may read get 426.
	"GET /api/conversations/{id}/voice":                     {sight: own, header: handshake},
	"GET /api/conversations/{id}/messages/{message}/speech": {sight: own, empty: true},

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
	"POST /api/conversations/cleanup-empty":          {sight: common, body: `{"keepId":"none"}`}, // TestCleanup of server/eliza checks which ones are deleted
	"GET /api/auth/status":                           {sight: open},
	"POST /api/turns/{id}/abort":                     {sight: own},

	// The model APIs. Each caller's messages are in the caller's own conversations.
	"POST /v1/messages":         {sight: scoped, body: `{"model":"a","max_tokens":9,"metadata":{"user_id":"one key for all"},"messages":[{"role":"user","content":"x"}]}`},
	"POST /v1/chat/completions": {sight: scoped, body: `{"model":"a","user":"one key for all","messages":[{"role":"user","content":"x"}]}`},
	"GET /v1/models":            {sight: common},
	// Responses and conversations. TestOthers of server/responses checks whose responses are shown.
	"POST /v1/responses":                         {sight: common, body: `{"model":"a","input":"x"}`},
	"GET /v1/responses/{response}":               {sight: own},
	"DELETE /v1/responses/{response}":            {sight: own},
	"POST /v1/responses/{response}/cancel":       {sight: own},
	"GET /v1/responses/{response}/input_items":   {sight: own},
	"POST /v1/conversations":                     {sight: common},
	"GET /v1/conversations/{id}":                 {sight: own},
	"POST /v1/conversations/{id}":                {sight: own, body: `{"metadata":{"k":"v"}}`},
	"DELETE /v1/conversations/{id}":              {sight: own},
	"GET /v1/conversations/{id}/items":           {sight: own},
	"POST /v1/conversations/{id}/items":          {sight: own, body: `{"items":[{"role":"user","content":"x"}]}`},
	"GET /v1/conversations/{id}/items/{item}":    {sight: own, empty: true},
	"DELETE /v1/conversations/{id}/items/{item}": {sight: own, empty: true},
	"GET /v1/models/{model...}":                  {sight: common},

	// The AI SDK. Each caller's chats are the caller's own conversations. Without an unfinished turn, a resume gets 204, also of a chat that
	// doesn't exist: pages resume new chats too.
	"POST /api/chat":               {sight: scoped, body: `{"id":"one chat for all","messages":[{"id":"","role":"user","parts":[{"type":"text","text":"x"}]}]}`},
	"GET /api/chat":                {sight: common, query: "?sdk=5/none/stream"},
	"GET /api/chat/{id}":           {sight: own, alone: true},
	"GET /api/chat/{id}/stream":    {sight: common}, // TestChatsAreTheirs of server/vercel checks whose answers are streamed
	"DELETE /api/chat/{id}/stream": {sight: own, alone: true},

	// Durable Streams. Views are read-only. Stored streams are scoped by their users, so that all may create one with the same path.
	"GET /v1/stream/conversations/{id}":         {sight: own},
	"PUT /v1/stream/conversations/{path...}":    {sight: common},
	"POST /v1/stream/conversations/{path...}":   {sight: common},
	"DELETE /v1/stream/conversations/{path...}": {sight: common},
	"GET /v1/stream/turns/{turn}":               {sight: own},
	"PUT /v1/stream/turns/{path...}":            {sight: common},
	"POST /v1/stream/turns/{path...}":           {sight: common},
	"DELETE /v1/stream/turns/{path...}":         {sight: common},
	"GET /v1/stream/{path...}":                  {sight: own, alone: true},
	"PUT /v1/stream/{path...}":                  {sight: common, header: http.Header{"Content-Type": {"text/plain"}}}, // TestScope of server/durable checks whose it becomes
	"POST /v1/stream/{path...}":                 {sight: own, alone: true, body: "x", header: http.Header{"Content-Type": {"text/plain"}}},
	"DELETE /v1/stream/{path...}":               {sight: own, alone: true},

	// Subscriptions, which are scoped as well. Workers have separate tokens; TestSubscriptions of server/durable checks them.
	"PUT /v1/stream/__ds/subscriptions/{subscription}":                      {sight: common, body: `{"type":"pull-wake","pattern":"none/*","wake_stream":"wake"}`},
	"GET /v1/stream/__ds/subscriptions/{subscription}":                      {sight: own, alone: true},
	"DELETE /v1/stream/__ds/subscriptions/{subscription}":                   {sight: own, alone: true},
	"POST /v1/stream/__ds/subscriptions/{subscription}/streams":             {sight: own, alone: true, body: `{"streams":["x"]}`},
	"DELETE /v1/stream/__ds/subscriptions/{subscription}/streams/{path...}": {sight: own, alone: true},
	"POST /v1/stream/__ds/subscriptions/{subscription}/claim":               {sight: own, alone: true, body: `{"worker":"w"}`},
	"POST /v1/stream/__ds/subscriptions/{subscription}/ack":                 {sight: open},
	"POST /v1/stream/__ds/subscriptions/{subscription}/callback":            {sight: open},
	"POST /v1/stream/__ds/subscriptions/{subscription}/release":             {sight: open},
	"GET /v1/stream/__ds/jwks.json":                                         {sight: open},

	// AG-UI. Each caller's threads are the caller's own conversations. A page connects to threads that don't exist yet, and may stop them too.
	// Contexts and tasks. TestTasksAreTheirs of server/a2a checks whose tasks are shown, answered and canceled.
	"GET /.well-known/agent-card.json":             {sight: common},
	"GET /.well-known/agent.json":                  {sight: common},
	"GET /a2a/.well-known/agent-card.json":         {sight: common},
	"GET /a2a/{agent}/.well-known/agent-card.json": {sight: common},
	"POST /a2a":                              {sight: scoped, body: `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"one","contextId":"one context for all","role":"ROLE_USER","parts":[{"text":"x"}]}}}`},
	"POST /a2a/{agent}":                      {sight: scoped, body: `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"two","contextId":"one context for all","role":"ROLE_USER","parts":[{"text":"x"}]}}}`},
	"GET /agui/info":                         {sight: common},
	"POST /agui":                             {sight: scoped, body: `{"threadId":"one thread for all","runId":"r","messages":[{"id":"","role":"user","content":"x"}]}`},
	"POST /agui/agent/{agent}/run":           {sight: scoped, body: `{"threadId":"one thread for all","runId":"r","messages":[{"id":"","role":"user","content":"x"}]}`},
	"POST /agui/agent/{agent}/connect":       {sight: common, body: `{"threadId":"x","runId":"r","messages":[]}`}, // TestThreadsAreTheirs of server/agui checks whose are shown
	"POST /agui/agent/{agent}/stop/{thread}": {sight: common},                                                     // TestThreadsAreTheirs of server/agui checks whose are stopped

	// LangGraph. Each caller's threads are the caller's own conversations.
	"GET /langgraph/ok":                               {sight: common},
	"GET /langgraph/info":                             {sight: common},
	"POST /langgraph/assistants/search":               {sight: common},
	"POST /langgraph/assistants/count":                {sight: common},
	"GET /langgraph/assistants/{agent}":               {sight: common},
	"POST /langgraph/threads":                         {sight: common, body: `{"thread_id":"one thread for all","if_exists":"do_nothing"}`}, // TestThreadsAreTheirs of server/langgraph checks whose is created
	"POST /langgraph/threads/search":                  {sight: scoped, body: `{"limit":1000}`},
	"GET /langgraph/threads/{id}":                     {sight: own, alone: true},
	"PATCH /langgraph/threads/{id}":                   {sight: own, alone: true},
	"DELETE /langgraph/threads/{id}":                  {sight: own, alone: true},
	"GET /langgraph/threads/{id}/state":               {sight: own, alone: true},
	"POST /langgraph/threads/{id}/history":            {sight: own, alone: true},
	"POST /langgraph/threads/{id}/commands":           {sight: own, alone: true, body: `{"id":1,"method":"state.get","params":{}}`},
	"POST /langgraph/threads/{id}/stream/events":      {sight: own, alone: true, body: `{"channels":["values"]}`},
	"GET /langgraph/threads/{id}/runs":                {sight: own, alone: true},
	"POST /langgraph/threads/{id}/runs":               {sight: own, alone: true, body: `{"assistant_id":"a","input":{"messages":[{"type":"human","content":"x"}]}}`},
	"POST /langgraph/threads/{id}/runs/stream":        {sight: own, alone: true, body: `{"assistant_id":"a","input":{"messages":[{"type":"human","content":"x"}]}}`},
	"POST /langgraph/threads/{id}/runs/wait":          {sight: own, alone: true, body: `{"assistant_id":"a","multitask_strategy":"reject","input":{"messages":[{"type":"human","content":"x"}]}}`},
	"GET /langgraph/threads/{id}/runs/{turn}":         {sight: own, alone: true},
	"GET /langgraph/threads/{id}/runs/{turn}/stream":  {sight: own, alone: true},
	"GET /langgraph/threads/{id}/runs/{turn}/join":    {sight: own, alone: true},
	"POST /langgraph/runs":                            {sight: common, body: `{"assistant_id":"a","input":{"messages":[{"type":"human","content":"x"}]}}`},
	"POST /langgraph/runs/stream":                     {sight: scoped, body: `{"assistant_id":"a","input":{"messages":[{"type":"human","content":"x"}]}}`},
	"POST /langgraph/runs/wait":                       {sight: scoped, body: `{"assistant_id":"a","input":{"messages":[{"type":"human","content":"x"}]}}`},
	"GET /langgraph/runs/{turn}/stream":               {sight: own, alone: true},
	"POST /langgraph/runs/cancel":                     {sight: common, body: `{"thread_id":"none"}`}, // TestRunsAreTheirs of server/langgraph checks whose are stopped
	"POST /langgraph/threads/{id}/runs/{turn}/cancel": {sight: own, alone: true},

	// Letta. Messages to an agent are in the caller's own conversation with it.
	"GET /letta/v1/health":                                 {sight: common},
	"GET /letta/v1/models":                                 {sight: common},
	"GET /letta/v1/agents":                                 {sight: common},
	"GET /letta/v1/conversations":                          {sight: scoped},
	"POST /letta/v1/conversations":                         {sight: common},
	"GET /letta/v1/runs":                                   {sight: common},
	"GET /letta/v1/health/{$}":                             {sight: common},
	"GET /letta/v1/models/{$}":                             {sight: common},
	"GET /letta/v1/agents/{$}":                             {sight: common},
	"GET /letta/v1/conversations/{$}":                      {sight: scoped},
	"POST /letta/v1/conversations/{$}":                     {sight: common},
	"GET /letta/v1/runs/{$}":                               {sight: common},
	"GET /letta/v1/agents/{agent}":                         {sight: common},
	"PATCH /letta/v1/agents/{agent}":                       {sight: common, body: "{}"},
	"GET /letta/v1/agents/{agent}/messages":                {sight: common},
	"POST /letta/v1/agents/{agent}/messages":               {sight: scoped, body: `{"messages":[{"role":"user","content":"x"}]}`},
	"POST /letta/v1/agents/{agent}/messages/stream":        {sight: scoped, body: `{"messages":[{"role":"user","content":"x"}]}`},
	"POST /letta/v1/agents/{agent}/messages/cancel":        {sight: common},
	"GET /letta/v1/conversations/{conversation}":           {sight: own},
	"PATCH /letta/v1/conversations/{conversation}":         {sight: own, body: `{"summary":"x"}`},
	"DELETE /letta/v1/conversations/{conversation}":        {sight: own},
	"GET /letta/v1/conversations/{conversation}/messages":  {sight: own},
	"POST /letta/v1/conversations/{conversation}/messages": {sight: own, body: `{"messages":[{"role":"user","content":"x"}]}`},
	"POST /letta/v1/conversations/{conversation}/stream":   {sight: own, reads: true},
	"POST /letta/v1/conversations/{conversation}/cancel":   {sight: own},
	"GET /letta/v1/runs/{run}":                             {sight: own},
	"GET /letta/v1/runs/{run}/messages":                    {sight: own},
	"POST /letta/v1/runs/{run}/stream":                     {sight: own, reads: true},
	// OpenClaw's clients. The socket takes the token in its first frame; TestPrincipals of server/openclaw checks whose sessions a client sees.
	"GET /openclaw":           {sight: open},
	"GET /openclaw/{file...}": {sight: open},

	// Files.
	"GET /api/conversations/{id}/files/{media}": {sight: own},
	"POST /api/conversations/{id}/files":        {sight: own, query: "?name=x.txt", body: "x"},
	"GET /api/files/upload":                     {sight: common},
	"POST /api/files/upload":                    {sight: common, query: "?name=x.txt", body: "x"}, // TestUploadsAreTheirs of server/files checks the conversation's owner
	"GET /api/files/upload/{upload}":            {sight: own, alone: true},
	"HEAD /api/files/upload/{upload}":           {sight: own, alone: true},
	"PATCH /api/files/upload/{upload}":          {sight: own, alone: true, body: "x", header: http.Header{"Content-Type": {"application/offset+octet-stream"}, "Upload-Offset": {"0"}}},
	"DELETE /api/files/upload/{upload}":         {sight: own, alone: true},
	"GET /api/files/download":                   {sight: common, query: "?path=none", empty: true}, // TestUploadsAreTheirs checks which files are found

	// Eliza, live.
	"GET /ws":                 {sight: open}, // takes the token as its first message
	"GET /api/status":         {sight: common},
	"GET /api/agent/events":   {sight: common}, // TestSight of server/elizaws checks which signals each user sees
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

	"GET /api/channels":                 {sight: operator},
	"POST /api/channels/allow":          {sight: operator},
	"POST /api/channels/{name}/send":    {sight: operator},
	"POST /api/channels/{name}/attach":  {sight: operator},
	"POST /api/channels/{name}/detach":  {sight: operator},
	"GET /api/channels/{name}/webhook":  {sight: open},
	"POST /api/channels/{name}/webhook": {sight: open},

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

	// Notices. TestUsers of server/notices checks who gets them.
	"GET /api/notifications":    {sight: common},
	"POST /api/notifications":   {sight: common, body: `{"endpoint":"https://push.example.com/walk","keys":{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"}}`},
	"DELETE /api/notifications": {sight: common, body: `{"endpoint":"https://push.example.com/walk"}`},

	// Usage of turns. The answer names tenants, so that the walk can tell alice@t1 from alice@t2.
	"GET /api/usage": {sight: scoped, query: "?by=day,agent,model,tenant,subject"},

	// The page.
	"GET /{$}": {sight: open},
}

// handshake is the header of a request for a WebSocket.
var handshake = http.Header{
	"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
}
