import { type ReactNode, Suspense } from "react";

import { Boundary } from "../chat/parts/Boundary";

/**
 * A part of the page that is fetched when it is first wanted. One that can't be fetched, as after an upgrade of the gateway under an
 * open page, leaves the rest as it is. of is what it shows: another one is tried anew.
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
