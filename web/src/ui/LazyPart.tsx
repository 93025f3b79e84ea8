import { type ReactNode, Suspense } from "react";

import { Boundary } from "../chat/parts/Boundary";

/**
 * A part of the page whose code is loaded when it is first shown. If loading fails, for example after an upgrade of the gateway,
 * the rest of the page still works. A change of `of` retries.
 */
export function LazyPart({ of, children, fallback = null }: { of: unknown; children: ReactNode; fallback?: ReactNode }) {
  return (
    <Boundary of={of} broken={() => (
      <p className="bad missing" role="alert">This part of the page can’t be loaded. <button type="button" onClick={() => location.reload()}>Reload the page</button></p>
    )}>
      <Suspense fallback={fallback}>{children}</Suspense>
    </Boundary>
  );
}
