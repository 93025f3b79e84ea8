// Package serve puts a gateway together from its configuration, runs it, and ends it in order. It is the only place that knows all packages
// of the program.
//
//	app, err := serve.New(ctx, serve.Options{Config: cfg, ...})
//	if err != nil {
//		return err
//	}
//	defer app.Close()
//	if err := app.Start(ctx); err != nil {
//		return err
//	}
//	next, err := app.Wait(ctx, signals)
//
// Invariants:
//
//   - New returns a complete App: no part of it is set later. If New fails, what it opened is closed again.
//   - Start resumes what the last run left unfinished before the first request is answered.
//   - Wait ends turns before readers, and readers before the parts that they use. It returns when no turn is running and no request is
//     being answered.
//   - Close releases everything in the reverse order of New. It is called once, after Wait, and also if Start failed.
//   - Addresses stay open between two Apps of one process ([Sockets]), so a restart refuses no connection.
package serve
