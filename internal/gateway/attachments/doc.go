// Package attachments stores the files that messages show, and serves them.
//
// Files arrive in four ways: a client uploads one, a message carries one in a data URL, a message or an agent names one by a path of the
// workspace, or an agent stores one. Each way ends with a copy of the bytes in the file store of the conversation, a record in the
// journal, and media whose URL is the path under which the copy is served. So logs never contain bytes of files.
//
// The gateway uses [Store], which is created first and passed to gateway.Config. HTTP surfaces use [Service], which is created from the
// store and the gateway:
//
//	store := attachments.NewStore(attachments.Config{Journal: j, Files: dir})
//	gw, err := gateway.New(gateway.Config{Journal: j, Attachments: store})
//	service := attachments.NewService(store, gw)
//
// Invariants
//
//   - The bytes of a file are durable before its record is, so a record never refers to missing bytes. Bytes without a record are
//     removed by the next start, or by a sweep after a day.
//   - A file belongs to one conversation and is deleted with it. The same bytes in two conversations are two files.
//   - A file that is part of no message expires after a day. The commit of a message that shows it makes it permanent.
//   - A user reads a file of the workspace only if it is the user's own upload. An agent may show files of agents, and uploads of the
//     user on whose behalf it runs.
//   - A stored file counts for the owner of its conversation, once.
package attachments
